import Foundation
import TestSupport
import Testing

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache: Stale responses", .permit)
struct ResponseCacheStaleTests {
    private let fixture = CacheFixture()

    @Test(
        "Must-revalidate and no-cache prevent the use of stale responses",
        arguments: ["max-age=5, must-revalidate", "max-age=5, no-cache"])
    func forbidden(directives: String) async throws {
        fixture.serve(
            ["Cache-Control": "\(directives), stale-if-error=99, stale-while-revalidate=99"], "one", tag: "\"1\"")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        #expect(try await fixture.text("/a", ["Cache-Control": "max-stale"]) == "revalidated one")
        fixture.advance(by: 6)
        fixture.serve { _ in CacheFixture.Reply(error: URLError(.networkConnectionLost)) }
        await #expect(throws: URLError.self) { try await fixture.get() }
        fixture.serve([:], "", status: 503)
        #expect(try await fixture.get().status == 503)
    }

    @Test(
        "Stale-if-error applies to server errors and connection errors within its duration (RFC 5861)")
    func staleIfError() async throws {
        fixture.serve(["Cache-Control": "max-age=5, stale-if-error=10"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 15)
        for status in [500, 502, 503, 504] {
            fixture.serve([:], "down", status: status)
            let response = try await fixture.get()
            #expect(response.source == .cache)
            #expect(response.data == Data("one".utf8))
            #expect(response.age == .seconds(15))
            #expect(response.attempts == 1)
        }
        fixture.serve { _ in CacheFixture.Reply(error: URLError(.timedOut)) }
        #expect(try await fixture.text() == "cache one")
        #expect(try await fixture.text(method: .HEAD) == "cache ")
        let error = await #expect(throws: URLError.self) {
            try await fixture.get(policy: .reloadIgnoringLocalCacheData)
        }
        #expect(error?.code == .timedOut)
        fixture.serve { _ in CacheFixture.Reply(error: URLError(.serverCertificateUntrusted)) }
        await #expect(throws: URLError.self) { try await fixture.get() }
        fixture.serve([:], "gone", status: 403)
        #expect(try await fixture.text() == "network gone")
        fixture.serve([:], "unsupported", status: 505)
        #expect(try await fixture.text() == "network unsupported")
        fixture.serve([:], "down", status: 503)
        fixture.advance(by: 1)
        #expect(try await fixture.text() == "network down")
        #expect(try await fixture.text("/a", ["Cache-Control": "stale-if-error=11"]) == "cache one")
    }

    @Test(
        "Stale-if-error applies to requests that a later interceptor does not send",
        arguments: [("circuitOpen", true), ("concurrencyLimitExceeded", true), ("rateLimitExceeded", true)]
            + [("interceptorOrder", false), ("invalidHeader", false)])
    func staleIfRefused(code: String, isStale: Bool) async throws {
        fixture.serve(["Cache-Control": "max-age=5, stale-if-error=10"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.service.interceptors.append(
            .closure { _, _ in throw WebServiceError(WebServiceError.Code(code), "not sent") })
        for method in [Request.Method.GET, .HEAD] {
            let response = try? await fixture.get(method: method)
            #expect(response?.source == (isStale ? .cache : nil))
        }
        fixture.advance(by: 10)
        let error = await #expect(throws: WebServiceError.self) { try await fixture.get() }
        #expect(error?.code.description == code)
    }

    @Test("A response too old for the request is used instead of an error only with stale-if-error")
    func tooOldForRequest() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 10)
        fixture.serve([:], "down", status: 503)
        for directive in ["max-age=9", "min-fresh=51"] {
            #expect(try await fixture.text("/a", ["Cache-Control": directive]) == "network down")
            #expect(try await fixture.text("/a", ["Cache-Control": "\(directive), stale-if-error=0"]) == "cache one")
        }
        fixture.serve { _ in CacheFixture.Reply(error: URLError(.timedOut)) }
        let error = await #expect(throws: URLError.self) { try await fixture.get("/a", ["Cache-Control": "max-age=0"]) }
        #expect(error?.code == .timedOut)
    }

    @Test("Stale-while-revalidate returns immediately, and one validation runs in a separate exchange")
    func staleWhileRevalidate() async throws {
        fixture.serve(["Cache-Control": "max-age=5, stale-while-revalidate=10"], "one", tag: "\"1\"")
        _ = try await fixture.get("/a", ["Authorization": "Bearer 1"])
        fixture.advance(by: 15)
        let gate = Once<Bool>()
        fixture.serve { _ in
            _ = await gate.value
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=5"], body: "two")
        }
        let headers: Headers = ["Authorization": "Bearer 1"]
        for _ in 0..<5 {
            let response = try await fixture.get("/a", headers)
            #expect(response.source == .cache)
            #expect(response.attempts == 0)
            #expect(response.age == .seconds(15))
            #expect(response.data == Data("one".utf8))
        }
        let validation = try #require(await fixture.sent.wait(for: 2).last)
        #expect(validation.headers[.ifNoneMatch] == "\"1\"")
        #expect(validation.headers[.authorization] == "Bearer 1")
        gate.set(true)
        // only-if-cached starts no validation; another request could start one after the first.
        let asking: Headers = ["Authorization": "Bearer 1", "Cache-Control": "only-if-cached"]
        try await eventually("the response is replaced") { try await fixture.text("/a", asking) == "cache two" }
        #expect(try await fixture.text("/a", headers) == "cache two")
        #expect(fixture.sent.values.count == 2)
        fixture.advance(by: 16)
        fixture.serve([:], "three")
        #expect(try await fixture.text("/a", headers) == "network three")
    }

    @Test("A background validation does not end with the scope of the request that caused it")
    func validationAfterScope() async throws {
        let clock = ManualTimekeeper()
        let fixture = CacheFixture(timekeeper: clock)
        fixture.serve(["Cache-Control": "max-age=5, stale-while-revalidate=10"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        let gate = Once<Bool>()
        fixture.serve { _ in
            _ = await gate.value
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=50"], body: "two")
        }
        let stale = try await fixture.service.withDeadline(.seconds(2)) { try await fixture.text() }
        #expect(stale == "cache one")
        await fixture.sent.wait(for: 2)
        clock.advance(by: .seconds(3))
        gate.set(true)
        let stored: Headers = ["Cache-Control": "only-if-cached"]
        try await eventually("the response is replaced") { try await fixture.text("/a", stored) == "cache two" }
        #expect(fixture.sent.values.count == 2)
    }

    @Test("Only-if-cached returns a response within stale-while-revalidate without a validation")
    func staleOnlyIfCached() async throws {
        fixture.serve(["Cache-Control": "max-age=5, stale-while-revalidate=10"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 15)
        var request = fixture.service.request(.GET, path: "/a")
        request.headers[.cacheControl] = "only-if-cached"
        let task = fixture.service.sessionTask(request: request)
        let response = try await task.data().response
        #expect(response.source == .cache)
        #expect(response.data == Data("one".utf8))
        #expect(task.timeline.events.map { "\($0.kind): \($0.detail)" } == ["cache: stored, 15 s old"])
        #expect(fixture.sent.values.count == 1)
    }

    @Test("A background validation is bound to the account of its request")
    func validationAfterSignOut() async throws {
        fixture.signIn("ann")
        let requests = Collected<String>()
        let changing = ClosureInterceptor { [unowned fixture] request, next in
            // The account changes between the response and its validation.
            if request.options.cachePolicy == .reloadRevalidatingCacheData { fixture.signIn("bob") }
            defer { requests.add("\(request.options.cachePolicy.rawValue)") }
            return try await next(request)
        }
        fixture.service.interceptors = [changing, fixture.cache]
        fixture.serve(["Cache-Control": "max-age=5, stale-while-revalidate=10"], "ann's")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        #expect(try await fixture.text() == "cache ann's")
        await requests.wait(for: 3)
        #expect(fixture.sent.values.count == 1)
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test("A request that an interceptor starts during a background validation is not bound to its account")
    func begunByValidation() async throws {
        fixture.signIn("ann")
        let (gate, results) = (Once<Bool>(), Collected<String>())
        let beginning = ClosureInterceptor { [unowned fixture] request, next in
            if request.options.cachePolicy == .reloadRevalidatingCacheData {
                Task {
                    _ = await gate.value
                    do { results.add(try await fixture.text("/b")) } catch { results.add("\(error)") }
                }
            }
            return try await next(request)
        }
        fixture.service.interceptors = [beginning, fixture.cache]
        fixture.serve(["Cache-Control": "max-age=5, stale-while-revalidate=10"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        #expect(try await fixture.text() == "cache one")
        await fixture.sent.wait(for: 2)
        fixture.signIn("bob")
        gate.set(true)
        #expect(await results.wait(for: 1) == ["network one"])
    }

    @Test(
        "A background validation passes through all interceptors, so a rejected token is refreshed"
    )
    func validationRefreshes() async throws {
        let authentication = Authentication(TokenSource({ .bearer("old") }) { _ in .bearer("new") })
        fixture.service.interceptors = [authentication, fixture.cache]
        fixture.signIn("ann")
        fixture.serve(["Cache-Control": "max-age=5, stale-while-revalidate=10"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve {
            $0.headers[.authorization] == "Bearer new"
                ? CacheFixture.Reply(body: "two") : CacheFixture.Reply(status: 401)
        }
        #expect(try await fixture.text() == "cache one")
        let sent = await fixture.sent.wait(for: 3)
        #expect(sent.map { $0.headers[.authorization] } == ["Bearer old", "Bearer old", "Bearer new"])
    }
}
