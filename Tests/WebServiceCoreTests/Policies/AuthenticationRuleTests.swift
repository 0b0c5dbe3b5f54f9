import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Rules for rejected credentials", .permit)
struct AuthenticationRuleTests {
    private final class Issuer: Sendable {
        private let count = Mutex(1)
        var refreshes: Int { count.withLock { $0 } - 1 }
        func next() -> Credential { .bearer("t\(count.withLock { $0 += 1; return $0 })") }
    }

    private let issuer = Issuer()

    private func authentication(
        expires: Date? = nil, isUnauthorized: @escaping @Sendable (Response) -> Bool = { $0.status == 401 }
    ) -> Authentication {
        Authentication(
            TokenSource({ .bearer("t1", expires: expires) }, refresh: { [issuer] _ in issuer.next() }),
            isUnauthorized: isUnauthorized)
    }

    @Test("A custom rule determines which responses refresh the credential")
    func rule() async throws {
        let script = ScriptedSession([.status(200, body: "expired"), .status(200, body: "ale"), .status(401)])
        let service = WebService.make(script)
        service.interceptors = [authentication { $0.data == Data("expired".utf8) }]
        #expect(try await service.GET("/x").string().value == "ale")
        #expect(script.sent.map { $0.value(forHTTPHeaderField: "Authorization") } == ["Bearer t1", "Bearer t2"])
        #expect(try await service.GET("/x").data().validateNothing().response.status == 401)
        #expect(issuer.refreshes == 1)
    }

    @Test("Work that is not a request waits for one refresh and runs again, once", arguments: [1, 1_000])
    func work(count: Int) async throws {
        let authentication = authentication()
        let runs = Collected<String>()
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await authentication.withCredential(refreshingAfter: { $0 as? TestError == TestError() }) {
                        let value = $0?.value ?? "-"
                        runs.add(value)
                        if value == "Bearer t1" { throw TestError() }
                        return value
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: "Bearer t2", count: count))
        #expect(issuer.refreshes == 1)
        #expect(runs.values.count <= 2 * count)
    }

    @Test("Work and requests share a refresh and the credential")
    func shared() async throws {
        let authentication = authentication()
        let script = ScriptedSession([.status(401), .status(200)])
        let service = WebService.make(script)
        service.interceptors = [authentication]
        _ = try await service.GET("/x").data().value
        let value = try await authentication.withCredential(refreshingAfter: { _ in true }) { $0?.value }
        #expect(value == "Bearer t2")
        #expect(issuer.refreshes == 1)
    }

    @Test("Other errors, a second rejection and the absence of another credential end the work with its error")
    func failures() async {
        let authentication = authentication()
        let runs = Collected<String?>()
        await #expect(throws: TestError(name: "other")) {
            try await authentication.withCredential(refreshingAfter: { $0 as? TestError == TestError() }) {
                runs.add($0?.value)
                throw TestError(name: "other")
            }
        }
        await #expect(throws: TestError()) {
            try await authentication.withCredential(refreshingAfter: { _ in true }) {
                runs.add($0?.value)
                throw TestError()
            }
        }
        #expect(runs.values == ["Bearer t1", "Bearer t1", "Bearer t2"])
        #expect(issuer.refreshes == 1)
        let fixed = Authentication(TokenSource(.bearer("t")))
        await #expect(throws: TestError()) {
            try await fixed.withCredential(refreshingAfter: { _ in true }) { _ in throw TestError() }
        }
    }

    @Test("A credential that expires is refreshed before the work; after a log-out, the work does not run again")
    func expiry() async throws {
        let soon = authentication(expires: Date(timeIntervalSinceNow: 1))
        #expect(try await soon.withCredential(refreshingAfter: { _ in true }) { $0?.value } == "Bearer t2")
        let authentication = authentication()
        let error = await #expect(throws: WebServiceError.self) {
            try await authentication.withCredential(refreshingAfter: { _ in true }) { _ in
                authentication.clear()
                throw TestError()
            }
        }
        #expect(error?.code == .authenticationFailed)
    }

    @Test("Work inside a refresh runs without a credential instead of waiting for the refresh")
    func insideRefresh() async throws {
        let box = Once<Authentication>()
        let source = TokenSource({ .bearer("t1") }) { _ in
            let inner = try await box.value.withCredential(refreshingAfter: { _ in true }) { $0?.value ?? "none" }
            return .bearer(inner)
        }
        let authentication = Authentication(source)
        box.set(authentication)
        let value = try await authentication.withCredential(refreshingAfter: { $0 is TestError }) {
            if $0?.value == "Bearer t1" { throw TestError() }
            return $0?.value
        }
        #expect(value == "Bearer none")
    }
}
