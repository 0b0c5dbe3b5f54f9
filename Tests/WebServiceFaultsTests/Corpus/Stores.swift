import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceOffline

extension CorpusClient {
    static let stores = [droppedChange, eagerQuotes]

    // Source: SandeepVashishtha/Eventra 10691.
    // 409: `onFailure` drops whatever the server refuses, so the change is gone without a trace.
    static let droppedChange = CorpusClient(
        name: "dropped change", kind: "outbox that drops a 409", source: "SandeepVashishtha/Eventra 10691",
        plans: .at("PUT /todos/7#1", ["401", "403", "409", "redirected"])
    ) { explore in
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
            let outbox = try mock.service.outbox(in: folder) { _ in .drop }
            let updates = outbox.updates
            var request = mock.service.request(.PUT, path: "/todos/7")
            try request.serialize(["title": "Buy hops"])
            _ = try await outbox.submit(request, entity: "todo/7")
            await settle(updates, within: .seconds(900), of: mock.service.clock)
            let isPending = await !outbox.entries.isEmpty
            await outbox.close()
            try Task.checkCancellation()
            return isPending
        } check: { run in
            guard let isPending = run.output else { return }
            try run.require(isPending || run.model.value == "Buy hops", "the change is lost")
        }
    }

    // Source: DouglasdeMoura/chroncal 105.
    // 429, lasting: the client ignores Retry-After, and sends fifty requests without a pause.
    static let eagerQuotes = CorpusClient(
        name: "eager quotes", kind: "Retry-After ignored in a tight loop", source: "DouglasdeMoura/chroncal 105",
        plans: .lasting("GET /quotes#1", ["429", "429retry", "503"])
    ) { explore in
        await explore { mock in
            mock.on(.GET, "/quotes", .json(["ale": 4.5]))
        } client: { mock in
            let quotes = QuoteClient(service: mock.service)
            return try await withCheckedThrowingContinuation { continuation in
                quotes.load { continuation.resume(with: $0) }
            }
        } check: { run in
            try run.require(run.requests.count <= 10, "the client sends requests although the server is overloaded")
        }
    }
}

/// Waits until the only entry of an outbox has been sent, removed or blocked, or the time is over.
func settle(_ updates: AsyncStream<Outbox.Update>, within limit: Duration, of clock: any Clock<Duration>) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask {
            for await case .entry(let entry) in updates where [.sent, .removed, .blocked].contains(entry.state) {
                break
            }
        }
        group.addTask { try? await clock.sleep(for: limit) }
        await group.next()
        group.cancelAll()
    }
}

private final class QuoteClient: Sendable {
    private let service: WebService

    init(service: WebService) { self.service = service }

    func load(attempt: Int = 1, completion: @escaping @Sendable (Result<Double, any Error>) -> Void) {
        service.GET("/quotes").json().onCompletion { [self] result in
            switch result {
            case .success(let quotes):
                completion(.success(quotes["ale"]?.double ?? 0))
            case .failure(let error as WebServiceError) where [429, 503].contains(error.status) && attempt < 50:
                load(attempt: attempt + 1, completion: completion)
            case .failure(let error):
                completion(.failure(error))
            }
        }.resume()
    }
}
