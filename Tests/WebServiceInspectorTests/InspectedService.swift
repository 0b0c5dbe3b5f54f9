import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

@testable import WebServiceInspector

/// A service over a mock session whose exchanges a store records.
struct InspectedService {
    let session: MockSession
    let service: WebService
    let store: ExchangeStore

    /// - Parameter clock: The clock of the service and of the session; `nil` for the system clock.
    init(
        maximumExchanges: Int = 100, bodyLimit: Int = 1000, memoryLimit: Int = 1_000_000, clock: TestClock? = nil
    ) {
        session = clock.map { MockSession(clock: $0) } ?? MockSession()
        let service = WebService(baseURLString: "https://h.example.com", clock: clock)
        self.service = service
        store = ExchangeStore(
            maximumExchanges: maximumExchanges, bodyLimit: bodyLimit, memoryLimit: memoryLimit, redaction: .standard
        ) { request in
            _ = service.sessionTask(request: request).data().resume()
        }
        service.session = session
        service.observers = [store]
    }

    /// Sends a request to a path with a response, and returns its exchange when it has ended.
    @discardableResult
    func send(_ path: String, _ response: MockResponse = .text("body")) async throws -> RecordedExchange {
        session.on(.GET, path, response)
        return try await send(Request(url: "https://h.example.com\(path)"))
    }

    @discardableResult
    func send(_ request: Request) async throws -> RecordedExchange {
        let before = store.exchanges().last?.number ?? 0
        _ = await service.sessionTask(request: request).data().result
        await eventually { store.exchanges().last.map { $0.number > before && $0.phase == .ended } ?? false }
        return try #require(store.exchanges().last)
    }
}

extension Encodable {
    /// The JSON that the page receives.
    var pageJSON: String { PageJSON.data(self).map { String(decoding: $0, as: UTF8.self) } ?? "" }
}
