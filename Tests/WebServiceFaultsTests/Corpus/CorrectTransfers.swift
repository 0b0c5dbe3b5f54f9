import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceOffline
import WebServiceSockets
import WebServiceTransfers

extension CorpusClient {
    static let correctTransfers = [
        completeDownload, terminatedChat, continuedEvents, keptChange, subscribedSocket, keptEvents,
    ]

    static let completeDownload = CorpusClient(name: "complete download", kind: "final name after the last byte") {
        explore in
        await explore { mock in
            let file = Data(String(repeating: "Long Trail Ale\n", count: 400).utf8)
            mock.on(.GET, "/menu.bin", MockResponse(statusCode: 200, data: file).header(.eTag, "\"1\""))
            return file
        } client: { mock in
            let service = mock.service
            service.interceptors = [.retry()]
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("menu \(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: folder) }
            let file = folder.appendingPathComponent("menu.bin")
            _ = try? await service.GET("/menu.bin").download(to: file, createsFolders: true).value
            return try? Data(contentsOf: file)
        } check: { run in
            if let data = run.output ?? nil { try run.require(data == run.model, "a partial file has the final name") }
        }
    }

    static let terminatedChat = CorpusClient(name: "terminated chat", kind: "end of a stream is verified") { explore in
        await explore { mock in
            mock.on(
                .POST, "/chat",
                .events([
                    ServerSentEvent(data: "A pale "), ServerSentEvent(data: "ale."), ServerSentEvent(data: "[DONE]"),
                ]))
        } client: { mock in
            var text = ""
            let chat = mock.service.POST("/chat").setJSON(["prompt": "Describe an ale."])
            for try await event in chat.events(until: "[DONE]") where event.data != "[DONE]" { text += event.data }
            try Task.checkCancellation()
            return text
        } check: { run in
            if let text = run.output {
                try run.require(text == "A pale ale.", "a truncated response counts as complete")
            }
        }
    }

    static let continuedEvents = CorpusClient(name: "continued events", kind: "events continue after the last one") {
        explore in
        await explore { mock in
            VisitServer(mock)
        } client: { mock in
            var visits: [String] = []
            let events = mock.service.GET("/visits").events(
                .reconnecting(baseDelay: .seconds(1), maximumAttempts: 4), until: { $0.data == "end" })
            for try await event in events where event.data != "end" { visits.append(event.data) }
            try Task.checkCancellation()
            return visits
        } check: { run in
            if let visits = run.output {
                try run.require(visits == ["1", "2", "3"], "a visit is missing or counted twice")
            }
        }
    }

    static let keptChange = CorpusClient(name: "kept change", kind: "outbox that keeps what is refused") { explore in
        await explore { mock in
            let title = Shared("")
            mock.on(.PUT, "/todos/7") { request in
                title.value = try request.json()["title"]?.string ?? ""
                return .status(204)
            }
            return title
        } client: { mock in
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("outbox \(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: folder) }
            let outbox = try mock.service.outbox(in: folder)
            let updates = outbox.updates
            var request = mock.service.request(.PUT, path: "/todos/7")
            try request.serialize(["title": "Buy hops"])
            _ = try await outbox.submit(request, entity: "todo/7")
            await settle(updates, within: .seconds(900), of: mock.service.clock)
            let isPending = await !outbox.entries.isEmpty
            await outbox.close()
            return isPending
        } check: { run in
            guard let isPending = run.output else { return }
            try run.require(isPending || run.model.value == "Buy hops", "the change is lost")
        }
    }

    static let subscribedSocket = CorpusClient(name: "subscribed socket", kind: "subscription on each connection") {
        explore in
        await explore { mock in
            PriceServer(mock)
        } client: { mock in
            let socket = mock.service.reconnectingWebSocket(
                "/prices", reconnection: .reconnecting(maximumAttempts: 3),
                onOpen: { socket in try await socket.send("subscribe") })
            var prices: [String] = []
            while prices.count < 3 {
                guard case .text(let price)? = try await socket.message(within: .seconds(300)) else {
                    throw URLError(.timedOut)
                }
                prices.append(price)
            }
            try await socket.close()
            return prices
        } check: { run in
            if let prices = run.output { try run.require(prices.count == 3, "prices are missing") }
        }
    }

    static let keptEvents = CorpusClient(name: "kept events", kind: "buffer emptied after the response") { explore in
        await explore { mock in
            let received = Shared<Set<String>>([])
            mock.on(.POST, "/batch") { request in
                let events = try request.decode([String].self)
                received.update { $0.formUnion(events) }
                return .status(202)
            }
            return received
        } client: { mock in
            let buffer = EventBuffer(service: mock.service)
            for event in ["open", "scroll", "close"] { await buffer.add(event) }
            for attempt in 1...3 where await !buffer.pending.isEmpty {
                try? await buffer.flush()
                try? await mock.service.clock.sleep(for: .seconds(attempt))
            }
            return await buffer.pending
        } check: { run in
            guard let pending = run.output else { return }
            try run.require(run.model.value.union(pending) == ["open", "scroll", "close"], "an event is lost")
        }
    }
}

private actor EventBuffer {
    private(set) var pending: Set<String> = []
    private let service: WebService

    init(service: WebService) { self.service = service }

    func add(_ event: String) { pending.insert(event) }

    func flush() async throws {
        let batch = pending
        try await service.POST("/batch").setJSON(batch.sorted()).empty().value
        pending.subtract(batch)
    }
}
