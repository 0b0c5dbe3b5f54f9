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
        "POST and PATCH requests have a key, and all attempts the same one", .covers("H-357"),
        arguments: ["POST", "PATCH"])
    func attempts(method: String) async throws {
        let keys = try await keys([.idempotencyKey(), Self.retry], Request.Method(rawValue: method))
        #expect(keys.count == 2)
        #expect(Set(keys).count == 1)
        let key = try #require(keys.first ?? nil)
        #expect(key.first == "\"")
        #expect(UUID(uuidString: String(key.dropFirst().dropLast())) != nil)
    }

    @Test("Two requests have different keys", .covers("H-357"))
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

    @Test("After a retry policy, the request is refused with an error that names the right order", .covers("H-357"))
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
