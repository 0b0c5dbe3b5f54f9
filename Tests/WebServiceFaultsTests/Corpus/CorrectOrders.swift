import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

extension CorpusClient {
    static let correctOrders = [
        keyedOrder, patientForm, numberedTransfer, carefulBooking, honestForm, tolerantRelease, likeButton,
    ]

    static let keyedOrder = CorpusClient(name: "keyed order", kind: "one key for all attempts") { explore in
        await explore { mock in
            PaymentServer(mock, path: "/orders")
        } client: { mock in
            let service = mock.service
            service.interceptors = [.retry()]
            return try await service.POST("/orders").setJSON(["beer": "ale"])
                .setHeaderValue("order-1", forName: "Idempotency-Key").json().value["id"]?.int ?? 0
        } check: { run in
            try run.require(run.model.count <= 1, "ordered twice")
            if run.output != nil { try run.require(run.model.count == 1, "success without an order") }
        }
    }

    static let patientForm = CorpusClient(name: "patient form", kind: "key of the draft survives a cancellation") {
        explore in
        await explore { mock in
            PaymentServer(mock)
        } client: { mock in
            let form = await PatientForm(service: mock.service)
            do {
                try await form.pay()
            } catch  where Task.isCancelled {
                try await Task { try await form.pay() }.value
            }
        } check: { run in
            try run.require(run.model.count <= 1, "paid twice")
            if run.output != nil { try run.require(run.model.count == 1, "success without a payment") }
        }
    }

    static let numberedTransfer = CorpusClient(name: "numbered transfer", kind: "one idempotent request") { explore in
        await explore { mock in
            let balances = Shared(["a": 100, "b": 0])
            let ids = Shared<Set<String>>([])
            mock.on(.PUT, "/transfers/{id}") { request in
                let id = request.pathParameters["id"] ?? ""
                guard ids.update({ $0.insert(id).inserted }) else { return .status(200) }
                balances.update {
                    $0["a", default: 0] -= 30
                    $0["b", default: 0] += 30
                }
                return .status(201)
            }
            return balances
        } client: { mock in
            let service = mock.service
            service.interceptors = [RetryPolicy(maximumAttempts: 5, baseDelay: .seconds(1))]
            try await service.PUT("/transfers/{id}", pathParameters: ["id": "t 1"])
                .setJSON(["from": "a", "to": "b", "amount": "30"]).empty().value
        } check: { run in
            let balances: [String: Int] = run.model.value
            try run.require(balances.values.reduce(0, +) == 100, "money is missing")
            try run.require(balances["b"] == 0 || balances["b"] == 30, "transferred twice")
            if run.output != nil { try run.require(balances["b"] == 30, "success without a transfer") }
        }
    }

    static let carefulBooking = CorpusClient(name: "careful booking", kind: "compensation is verified") { explore in
        await explore { mock in
            let isBooked = Shared(false)
            mock.on(.POST, "/rooms") { _ in
                isBooked.value = true
                return .json(["id": 1], status: 201)
            }
            mock.on(.DELETE, "/rooms/1") { _ in
                isBooked.value = false
                return .status(204)
            }
            mock.on(.POST, "/flights", .status(201))
            return isBooked
        } client: { mock in
            try await CarefulAgent(service: mock.service).book()
        } check: { run in
            if case .roomCancelled? = run.error as? CarefulAgent.BookingError {
                try run.require(!run.model.value, "the room is booked, but the client says that it is cancelled")
            }
            if run.output != nil { try run.require(run.model.value, "success without a room") }
        }
    }

    static let honestForm = CorpusClient(name: "honest form", kind: "success only after the response") { explore in
        await explore { mock in
            let name = Shared("Ann")
            mock.on(.PUT, "/profile") { request in
                name.value = try request.json()["name"]?.string ?? ""
                return .status(204)
            }
            return name
        } client: { mock in
            let form = await HonestForm(service: mock.service)
            await form.save(name: "Anna")
            return await form.message
        } check: { run in
            if run.output == "Saved" { try run.require(run.model.value == "Anna", "the form was not saved") }
        }
    }

    static let tolerantRelease = CorpusClient(name: "tolerant release", kind: "404 after a DELETE is a success") {
        explore in
        await explore { mock in
            let addresses = Shared<Set<String>>(["52"])
            mock.on(.DELETE, "/ips/{id}") { request in
                let id = request.pathParameters["id"] ?? ""
                return addresses.update { $0.remove(id) } == nil ? .status(404) : .status(204)
            }
            return addresses
        } client: { mock in
            let service = mock.service
            service.options.attemptTimeout = .seconds(40)
            service.interceptors = [.retry()]
            try await service.DELETE("/ips/52").configure { $0.options.redirectPolicy = .manual }.empty()
                .recover { error in
                    guard (error as? WebServiceError)?.status == 404 else { throw error }
                }
                .value
        } check: { run in
            try run.require((run.error as? WebServiceError)?.status != 404, "a deleted address is reported as missing")
            if run.output != nil { try run.require(run.model.value.isEmpty, "success, but the address exists") }
        }
    }

    static let likeButton = CorpusClient(name: "like button", kind: "optimistic change is rolled back") { explore in
        await explore { mock in
            let isLiked = Shared(false)
            mock.on(.PUT, "/posts/3/like") { _ in
                isLiked.value = true
                return .status(204)
            }
            return isLiked
        } client: { mock in
            let button = await LikeButton(service: mock.service)
            await withCheckedContinuation { continuation in
                Task { @MainActor in button.like { continuation.resume() } }
            }
            return await button.isLiked
        } check: { run in
            if run.output == true { try run.require(run.model.value, "the button shows a like that does not exist") }
        }
    }
}

@MainActor private final class PatientForm {
    private(set) var isPaid = false
    private let key = "draft 8"
    private let service: WebService

    init(service: WebService) { self.service = service }

    func pay() async throws {
        _ = try await service.POST("/payments").setJSON(["ticket": 4])
            .setHeaderValue(key, forName: "Idempotency-Key").json().value
        isPaid = true
    }
}

private struct CarefulAgent: Sendable {
    enum BookingError: Error { case roomCancelled, roomRemains }

    let service: WebService

    func book() async throws {
        let room = try await service.POST("/rooms").setJSON(["nights": 2])
            .setHeaderValue("trip-1", forName: "Idempotency-Key").json().value
        do {
            try await service.POST("/flights").setHeaderValue("trip-1", forName: "Idempotency-Key").empty().value
        } catch {
            let cancellation = Task {
                try await service.DELETE("/rooms/\(room["id"]?.int ?? 0)").intercepted(by: .retry()).empty().value
            }
            do {
                try await cancellation.value
            } catch {
                throw BookingError.roomRemains
            }
            throw BookingError.roomCancelled
        }
    }
}

@MainActor private final class HonestForm {
    private(set) var message = ""
    private let service: WebService

    init(service: WebService) { self.service = service }

    func save(name: String) async {
        do {
            try await service.PUT("/profile").setJSON(["name": name]).empty().value
            message = "Saved"
        } catch {
            message = "The profile may not have been saved."
        }
    }
}

@MainActor private final class LikeButton {
    private(set) var isLiked = false
    private let service: WebService

    init(service: WebService) { self.service = service }

    func like(completion: @escaping @MainActor @Sendable () -> Void) {
        isLiked = true
        service.PUT("/posts/3/like").data()
            .updateUI { _ in completion() }
            .updateErrorUI { [weak self] _ in
                self?.isLiked = false
                completion()
            }
            .resume()
    }
}
