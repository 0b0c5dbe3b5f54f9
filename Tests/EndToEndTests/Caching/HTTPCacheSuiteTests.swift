import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The public suite http-cache-tests over a real server.
@Suite("The public HTTP cache suite", .permit)
struct HTTPCacheSuiteTests {
    /// Required cases that do not apply and are not run.
    private static let inapplicable = [
        "cc-resp-private-shared": "about shared caches: this one is private",
        "freshness-s-maxage-shared": "about shared caches",
        "freshness-max-age-s-maxage-shared-longer": "about shared caches",
        "freshness-max-age-s-maxage-shared-longer-multiple": "about shared caches",
        "freshness-max-age-s-maxage-shared-longer-reversed": "about shared caches",
        "partial-use-headers": "about caches that serve ranges, which is optional: range requests pass through",
        "partial-use-stored-headers": "about caches that serve ranges",
    ]

    /// Required cases that do not pass over a session.
    private static let failing = [
        "headers-store-Set-Cookie": "Set-Cookie is not stored, so that a cookie is set once",
        "headers-store-Transfer-Encoding": "sessions refuse the unknown transfer coding of the case",
        "headers-store-Content-Encoding": "sessions refuse the unknown content coding of the case",
        "other-authorization": "the suite's number in each request requires an account, which replaces credentials",
    ]

    /// Optional cases, about the efficiency of a cache, that do not pass.
    private static let notOptimal = [
        "cc-resp-immutable-fresh": "immutable is not supported",
        "conditional-lm-fresh-no-lm": "the date of the response is later than the one in the request",
        "freshness-max-age-s-maxage-shared-shorter": "about shared caches",
        "freshness-max-age-s-maxage-shared-shorter-expires": "about shared caches",
        "method-POST": "responses to POST are not stored",
        "other-authorization-smaxage": "about shared caches",
        "partial-store-complete-reuse-partial": "range requests pass through",
        "partial-store-complete-reuse-partial-no-last": "range requests pass through",
        "partial-store-complete-reuse-partial-suffix": "range requests pass through",
        "partial-store-partial-complete": "partial responses are not stored",
        "partial-store-partial-reuse-partial": "partial responses are not stored",
        "partial-store-partial-reuse-partial-absent": "partial responses are not stored",
        "partial-store-partial-reuse-partial-byterange": "partial responses are not stored",
        "partial-store-partial-reuse-partial-suffix": "partial responses are not stored",
        "status-500-fresh": "errors that another attempt can resolve are not stored",
        "status-502-fresh": "errors that another attempt can resolve are not stored",
        "status-503-fresh": "errors that another attempt can resolve are not stored",
        "status-504-fresh": "errors that another attempt can resolve are not stored",
        "vary-normalise-lang-order": "servers may interpret the order as an order of preference",
        "vary-normalise-lang-select": "languages are not negotiated",
        "vary-normalise-space": "spaces in unknown fields may be significant",
    ]

    @Test(
        "Every applicable required case passes, except for those listed here",
        .enabled(if: HTTPCacheSuite.file != nil, "WEBSERVICE_CORPORA must name the folder of the corpora"),
        arguments: RealSession.allCases)
    func required(over session: RealSession) async throws {
        let tests = try HTTPCacheSuite.tests().filter { $0.cdn_only != true && $0.isRequired }
        let applicable = tests.filter { Self.inapplicable[$0.id] == nil }
        #expect(tests.count - applicable.count == Self.inapplicable.count)
        let failures = try await failures(of: applicable, over: session)
        let passed = applicable.count - failures.count
        print("http-cache-tests: \(passed) of \(applicable.count) required cases that apply pass over \(session)")
        expect(failures, Self.failing)
        #expect(applicable.count > 100)
        #expect(Double(passed) >= 0.95 * Double(applicable.count))
    }

    @Test(
        "Every case about an optimal cache passes, except for those listed here",
        .enabled(if: HTTPCacheSuite.file != nil, "WEBSERVICE_CORPORA must name the folder of the corpora"),
        arguments: RealSession.allCases)
    func optimal(over session: RealSession) async throws {
        let tests = try HTTPCacheSuite.tests().filter { $0.cdn_only != true && $0.kind == "optimal" }
        let failures = try await failures(of: tests, over: session)
        print("http-cache-tests: \(tests.count - failures.count) of \(tests.count) optimal cases pass over \(session)")
        expect(failures, Self.notOptimal)
    }

    private func expect(_ failures: [String: [String]], _ expected: [String: String]) {
        for (id, complaints) in failures where expected[id] == nil { Issue.record("\(id): \(complaints)") }
        for id in expected.keys where failures[id] == nil { Issue.record("\(id) passes now") }
    }

    private func failures(of tests: [HTTPCacheSuite.Test], over session: RealSession) async throws -> [String: [String]]
    {
        let runs = Dictionary(uniqueKeysWithValues: tests.map { ($0.id, HTTPCacheRun($0)) })
        let server = try MockServer { request in
            let id = request.path.split(separator: "/").first.map(String.init) ?? ""
            return runs[id]?.answer(request) ?? MockResponse(statusCode: 404)
        }
        defer { server.stop() }
        var failures: [String: [String]] = [:]
        let service = try session.service(server)
        for test in tests {
            let complaints = await runs[test.id]?.play(with: service) ?? []
            if !complaints.isEmpty { failures[test.id] = complaints }
        }
        return failures
    }
}
