import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

extension CorpusClient {
    static let streams = [chatAnswer, visitCounter, tickerSocket]

    // Source: ltmoerdani/opencode-copilot-chat 170.
    // cut: the text that arrived counts as the whole response.
    static let chatAnswer = CorpusClient(
        name: "chat answer", kind: "stream whose end is not checked", source: "ltmoerdani/opencode-copilot-chat 170",
        plans: .at("POST /chat#1", ["cut"])
    ) { explore in
        await explore { mock in
            mock.on(
                .POST, "/chat",
                .events([
                    ServerSentEvent(data: "A pale "), ServerSentEvent(data: "ale "),
                    ServerSentEvent(data: "with hops."),
                    ServerSentEvent(data: "[DONE]"),
                ]))
        } client: { mock in
            try await ChatClient(service: mock.service).ask("Describe an ale.")
        } check: { run in
            if let text = run.output {
                try run.require(text == "A pale ale with hops.", "a truncated response counts as complete")
            }
        }
    }

    // Source: bigskysoftware/htmx-extensions 184.
    // cut: the new request has no Last-Event-ID, so the server sends the first events again.
    static let visitCounter = CorpusClient(
        name: "visit counter", kind: "events processed twice after reconnection",
        source: "bigskysoftware/htmx-extensions 184",
        plans: .once("GET /visits#1", ["cut"])
    ) { explore in
        await explore { mock in
            VisitServer(mock)
        } client: { mock in
            try await VisitCounter(service: mock.service).count()
        } check: { run in
            if let visits = run.output { try run.require(visits == ["1", "2", "3"], "a visit was counted twice") }
        }
    }

    // Source: nomeida/hyperliquid 76 (and absinthe-graphql/absinthe-socket 22).
    // cut: the connection is opened again, but the client does not subscribe, so no price arrives.
    // The same happens if the connection is lost after the subscription.
    static let tickerSocket = CorpusClient(
        name: "ticker socket", kind: "no subscription after reconnection", source: "nomeida/hyperliquid 76",
        plans: (2...4).flatMap { [String].at("GET /prices#1.\($0)", ["cut", "lost", "reset"]) }
            + .at("GET /prices#1", ["cut"]) + .at("GET /prices#1.1", ["lost"])
    ) { explore in
        await explore { mock in
            PriceServer(mock)
        } client: { mock in
            try await Ticker(service: mock.service).prices(3)
        } check: { run in
            if let prices = run.output { try run.require(prices.count == 3, "prices are missing") }
            try run.require(!(run.error is Ticker.Silence), "the server is silent, because there is no subscription")
        }
    }
}

/// A server with three events, which sends those after `Last-Event-ID`.
struct VisitServer: Sendable {
    init(_ mock: MockService) {
        mock.on(.GET, "/visits") { request in
            let last = Int(request.headers["Last-Event-ID"] ?? "") ?? 0
            let events = (1...3).filter { $0 > last }.map { ServerSentEvent(data: "\($0)", id: "\($0)") }
            return .events(events + [ServerSentEvent(data: "end", id: "4")])
        }
    }
}

/// A server that sends prices to a connection with a subscription.
struct PriceServer: Sendable {
    init(_ mock: MockService) {
        let price = Shared(100)
        mock.on(
            .GET, "/prices",
            .webSocket { socket in
                while let message = try await socket.next() {
                    guard message == .text("subscribe") else { continue }
                    for _ in 1...3 { try await socket.send("\(price.update { $0 += 1; return $0 })") }
                }
            })
    }
}

private struct ChatClient: Sendable {
    let service: WebService

    func ask(_ prompt: String) async throws -> String {
        var text = ""
        let events = service.POST("/chat").setJSON(["prompt": prompt])
            .setHeaderValue("chat-1", forName: "Idempotency-Key").events()
        var isFirst = true
        do {
            for try await event in events {
                isFirst = false
                if event.data == "[DONE]" { break }
                text += event.data
            }
        } catch  where !isFirst && !Task.isCancelled {
            // The server closes the connection after the response.
        }
        return text
    }
}

private struct VisitCounter: Sendable {
    let service: WebService

    func count() async throws -> [String] {
        var visits: [String] = []
        for attempt in 1...5 {
            do {
                for try await event in service.GET("/visits").events() {
                    if event.data == "end" { return visits }
                    visits.append(event.data)
                }
            } catch  where attempt < 5 && !Task.isCancelled {
                try await service.clock.sleep(for: .seconds(3))
            }
        }
        throw URLError(.networkConnectionLost)
    }
}

private struct Ticker: Sendable {
    struct Silence: Error {}

    let service: WebService

    func prices(_ count: Int) async throws -> [String] {
        let socket = service.reconnectingWebSocket("/prices", reconnection: .reconnecting(maximumAttempts: 3))
        let states = socket.states
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await state in states {
                    if case .open = state { return }
                    if case .closed(let error?) = state { throw error }
                }
            }
            try await group.waitForAll()
        }
        try await socket.send("subscribe")
        var prices: [String] = []
        while prices.count < count {
            guard case .text(let price)? = try await socket.message(within: .seconds(300)) else { throw Silence() }
            prices.append(price)
        }
        try await socket.close()
        return prices
    }
}
