import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

@Suite("IdempotencyKey", .permit)
struct IdempotencyKeyTests {
    /// Returns the keys that the attempts of a request had.
    private func keys(
        _ interceptors: [any Interceptor], _ method: Request.Method = .POST, key: String? = nil
    ) async throws -> [String?] {
        let session = ScriptedSession([.status(503), .status(200)])
        let service = WebService.make(session, timekeeper: nil)
        service.interceptors = interceptors
        var request = service.request(method, path: "/orders")
        if let key { request.headers["Idempotency-Key"] = key }
        _ = try await service.sessionTask(request: request).data().validateNothing().value
        return session.sent.map { $0.headers["Idempotency-Key"] }
    }

    private static let retry = RetryPolicy(baseDelay: .zero)

    @Test(
        "POST and PATCH requests have a key, and all attempts the same one",
        arguments: ["POST", "PATCH"])
    func attempts(method: String) async throws {
        let keys = try await keys([.idempotencyKey(), Self.retry], Request.Method(rawValue: method))
        #expect(keys.count == 2)
        #expect(Set(keys).count == 1)
        let key = try #require(keys.first ?? nil)
        #expect(key.first == "\"")
        #expect(UUID(uuidString: String(key.dropFirst().dropLast())) != nil)
    }

    @Test("Two requests have different keys")
    func requests() async throws {
        let first = try await keys([.idempotencyKey()])
        let second = try await keys([.idempotencyKey()])
        #expect(first != second)
    }

    @Test("The key can be sent without quotation marks")
    func quotes() async throws {
        let keys = try await keys([.idempotencyKey(isQuoted: false)])
        #expect(keys.first.flatMap { $0 }.flatMap(UUID.init) != nil)
    }

    @Test("A key of the program and requests with other methods are not changed")
    func unchanged() async throws {
        #expect(try await keys([.idempotencyKey()], key: "mine") == ["mine"])
        #expect(try await keys([.idempotencyKey()], .PUT) == [nil])
        #expect(try await keys([.idempotencyKey(for: [.PUT])], .POST) == [nil])
    }

    @Test(
        "An exchange has one key, whatever sends its requests",
        arguments: [ScriptedSession.Answer.status(503), .error(.networkConnectionLost), .status(401)])
    func exchange(first: ScriptedSession.Answer) async throws {
        let session = ScriptedSession([first, .error(.cannotConnectToHost), .status(503), .status(401), .status(200)])
        let service = WebService.make(session, timekeeper: nil)
        let repeating: any Interceptor = .closure { request, next in
            var result = await Result.catching { try await next(request) }
            for _ in 0..<4 {
                if let response = try? result.get(), response.status == 200 { return response }  // or the next error
                result = await Result.catching { try await next(request) }
            }
            return try result.get()
        }
        service.interceptors = [repeating, .idempotencyKey()]
        #expect(try await service.POST("/orders").data().validateNothing().response.status == 200)
        let keys = session.sent.map { $0.headers["Idempotency-Key"] }
        #expect(keys.count == 5)
        #expect(Set(keys).count == 1)
        #expect(keys.first.flatMap(\.self) != nil)
    }

    @Test("Waiting for a network before the key repeats the request with the same key")
    func documentedOrder() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let count = Mutex(0)
        mock.session.addStub { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number <= 3 ? URLError(.cannotConnectToHost) : MockResponse(statusCode: number == 4 ? 503 : 200)
        }
        let checks = Mutex(0)
        let wait = ConnectivityWait { _ in
            checks.withLock { checks in
                checks += 1
                return checks > 2
            }
        }
        mock.service.interceptors = [wait, .idempotencyKey(), .retry()]
        let task = mock.service.POST("/orders").data().resume()
        await clock.advance(by: .seconds(60))
        #expect(try await task.response.status == 200)
        let keys = mock.receivedRequests.map { $0.headers["Idempotency-Key"] }
        #expect(keys.count == 5)
        #expect(Set(keys).count == 1)
        #expect(task.timeline.events.contains { $0.kind == .wait && $0.detail == "for a network" })
    }

    @Test("The key of a request precedes the retry policy of the service")
    func ownKey() async throws {
        let session = ScriptedSession([.status(503), .status(200)])
        let service = WebService.make(session, timekeeper: nil)
        service.interceptors = [Self.retry]
        let task = service.POST("/orders").intercepted(by: .idempotencyKey(isQuoted: false)).data()
        #expect(try await task.response.status == 200)
        #expect(session.sent.count == 2)
        #expect(Set(session.sent.map { $0.headers["Idempotency-Key"] }).count == 1)
    }

    @Test("After a retry policy, the request is refused with an error that names the right order")
    func order() async throws {
        let session = ScriptedSession([.status(200)])
        let service = WebService.make(session, timekeeper: nil)
        service.interceptors = [Self.retry, .idempotencyKey()]
        let error = await #expect(throws: WebServiceError.self) { try await service.POST("/orders").data().value }
        #expect(error?.code == .interceptorOrder)
        #expect(error?.message.contains("place .idempotencyKey() before .retry()") == true)
        #expect(session.sent.isEmpty)
    }
}
