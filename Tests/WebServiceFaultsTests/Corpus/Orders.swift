import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

/// A server that accepts each payment once for each `Idempotency-Key`, and each without a key.
final class PaymentServer: Sendable {
    private let keys = Shared<[String]>([])

    /// The number of payments.
    var count: Int { keys.value.count }

    init(_ mock: MockService, path: String = "/payments") {
        mock.on(.POST, path) { [keys] request in
            let key = request.headers["Idempotency-Key"]
            let number: Int = keys.update { keys in
                if let key, let place = keys.firstIndex(of: key) { return place + 1 }
                keys.append(key ?? "none")
                return keys.count
            }
            return .json(["id": number], status: 201)
        }
    }
}

extension CorpusClient {
    static let orders = [ticketForm, cardCharge, accountTransfer, profileForm, commentRetry]

    // Source: mozilla/fxa 4386 (and akash-network/console 3449).
    // cancelledAfter: the payment exists, and the second tap sends another one with a new key.
    static let ticketForm = CorpusClient(
        name: "ticket form", kind: "double submit after cancellation", source: "mozilla/fxa 4386",
        plans: .at("POST /payments#1", ["cancelledAfter"])
    ) { explore in
        await explore { mock in
            PaymentServer(mock)
        } client: { mock in
            let form = await TicketForm(service: mock.service)
            do {
                try await form.pay()
            } catch  where Task.isCancelled {
                try await Task { try await form.pay() }.value  // the user closes the dialog, and taps again
            }
        } check: { run in
            try run.require(run.model.count <= 1, "paid twice")
            if run.output != nil { try run.require(run.model.count == 1, "success without a payment") }
        }
    }

    // Source: square/square-mcp-server 31 (and Adyen/adyen-commercetools 1305).
    // lost: each attempt has a key of its own, so the server takes the retry for another payment.
    static let cardCharge = CorpusClient(
        name: "card charge", kind: "idempotency key renewed for each attempt", source: "square/square-mcp-server 31",
        plans: .at("POST /payments#1", ["lost", "cut", "stalledAfter", "500After"])
    ) { explore in
        await explore { mock in
            PaymentServer(mock)
        } client: { mock in
            try await CardTerminal(service: mock.service).charge(cents: 995)
        } check: { run in
            try run.require(run.model.count <= 1, "charged twice")
            if run.output != nil { try run.require(run.model.count == 1, "success without a charge") }
        }
    }

    // Source: mojaloop/project 4232.
    // refused at the credit: the debit remains, but the client says that nothing was transferred.
    static let accountTransfer = CorpusClient(
        name: "account transfer", kind: "debit without credit", source: "mojaloop/project 4232",
        plans: .at("POST /accounts/a/debits#1", Faults.after + ["cancelledAfter"])
            + .at("POST /accounts/b/credits#1", Faults.failures + ["cancelled", "cancelledAfter"])
    ) { explore in
        await explore { mock in
            let bookings = Shared<[String: Int]>([:])  // by key
            mock.on(.POST, "/accounts/{account}/{kind}") { request in
                let isDebit = request.pathParameters["kind"] == "debits"
                let key = request.headers["Idempotency-Key"] ?? "none"
                bookings.update { $0[key] = isDebit ? -30 : 30 }
                return .status(201)
            }
            return bookings
        } client: { mock in
            try await Bank(service: mock.service).transfer(30, from: "a", to: "b")
        } check: { run in
            let sum = run.model.value.values.reduce(0, +)
            if case .nothingTransferred? = run.error as? Bank.TransferError {
                try run.require(run.model.value.isEmpty, "money has moved, but the client denies it")
            }
            if run.output != nil { try run.require(sum == 0 && run.model.value.count == 2, "a debit without credit") }
        }
    }

    // Source: Sachinchaurasiya360/InternHack 2108.
    // Any failure without an effect: the error is only logged, and the user reads "Saved".
    static let profileForm = CorpusClient(
        name: "profile form", kind: "swallowed error reported as success",
        source: "Sachinchaurasiya360/InternHack 2108",
        plans: .at("PUT /profile#1", Faults.before + Faults.refusals)
    ) { explore in
        await explore { mock in
            let name = Shared("Ann")
            mock.on(.PUT, "/profile") { request in
                name.value = try request.json()["name"]?.string ?? ""
                return .status(204)
            }
            return name
        } client: { mock in
            let form = await ProfileForm(service: mock.service)
            await form.save(name: "Anna")
            try Task.checkCancellation()
            return await form.message
        } check: { run in
            if run.output == "Saved" { try run.require(run.model.value == "Anna", "the form was not saved") }
        }
    }

    // Source: pax8labs/pax8-cli 463.
    // lost: `retriesAnyMethod` sends the comment again, so the discussion has it twice.
    static let commentRetry = CorpusClient(
        name: "comment retry", kind: "retry of every method", source: "pax8labs/pax8-cli 463",
        plans: .at("POST /comments#1", ["lost", "cut", "stalledAfter", "500After", "duplicated"])
    ) { explore in
        await explore { mock in
            PaymentServer(mock, path: "/comments")
        } client: { mock in
            let service = mock.service
            service.options.attemptTimeout = .seconds(40)
            var retry = RetryPolicy(maximumAttempts: 4)
            retry.retriesAnyMethod = true
            service.interceptors = [retry]
            return try await service.POST("/comments").setJSON(["text": "+1"]).json().value["id"]?.int ?? 0
        } check: { run in
            try run.require(run.model.count <= 1, "the comment appears twice")
            if run.output != nil { try run.require(run.model.count == 1, "success without a comment") }
        }
    }
}

@MainActor private final class TicketForm {
    private(set) var state = "open"
    private let service: WebService

    init(service: WebService) { self.service = service }

    func pay() async throws {
        state = "paying"
        do {
            _ = try await service.POST("/payments").setJSON(["ticket": 4])
                .setHeaderValue(UUID().uuidString, forName: "Idempotency-Key").json().value
            state = "paid"
        } catch {
            state = "open"
            throw error
        }
    }
}

private actor CardTerminal {
    private let service: WebService

    init(service: WebService) { self.service = service }

    func charge(cents: Int) async throws -> Int {
        for attempt in 1...3 {
            let task = service.POST("/payments").setJSON(["cents": cents])
                .setHeaderValue(UUID().uuidString, forName: "Idempotency-Key").json()
            do {
                return try await task.value["id"]?.int ?? 0
            } catch let error as WebServiceError where (error.status ?? 0) < 500 {
                throw error
            } catch  where attempt < 3 && !Task.isCancelled {
                try await service.clock.sleep(for: .seconds(2 * attempt))
            }
        }
        return 0
    }
}

private struct Bank: Sendable {
    enum TransferError: Error { case nothingTransferred }

    let service: WebService

    func transfer(_ amount: Int, from source: String, to target: String) async throws {
        do {
            try await book(amount, "debits", of: source)
            try await book(amount, "credits", of: target)
        } catch {
            throw TransferError.nothingTransferred
        }
    }

    private func book(_ amount: Int, _ kind: String, of account: String) async throws {
        try await service.POST("/accounts/\(account)/\(kind)").setJSON(["amount": amount])
            .setHeaderValue("7-\(kind)", forName: "Idempotency-Key").empty().value
    }
}

@MainActor private final class ProfileForm {
    private(set) var message = ""
    private var log: [String] = []
    private let service: WebService

    init(service: WebService) { self.service = service }

    func save(name: String) async {
        do {
            try await service.PUT("/profile").setJSON(["name": name]).empty().value
        } catch {
            log.append("\(error)")
        }
        message = "Saved"
    }
}
