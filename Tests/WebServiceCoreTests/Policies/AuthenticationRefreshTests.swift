import Dispatch
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Verifies refreshes that fail, complete late or are abandoned.
@Suite("Authentication: Refreshes", .permit)
struct AuthenticationRefreshTests {
    private let refreshes = Collected<Completion>()

    private typealias Completion = @Sendable (Result<Credential, any Error>) -> Void

    /// Returns a session that accepts one token and responds with 401 to any other.
    private func server(accepting token: String) -> HandSession {
        HandSession { exchange in
            let isAccepted =
                exchange.request.urlRequestValue.value(forHTTPHeaderField: "Authorization") == "Bearer \(token)"
            DispatchQueue.global().async { exchange.respond(status: isAccepted ? 200 : 401) }
        }
    }

    private func service(
        _ session: HandSession, _ authentication: Authentication, _ clock: any Timekeeper = ManualTimekeeper()
    ) -> WebService {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [authentication]
        return service
    }

    private func tokens(_ session: HandSession) -> [String?] {
        session.exchanges.values.map { $0.request.urlRequestValue.value(forHTTPHeaderField: "Authorization") }
    }

    private func code<Value>(_ result: Result<Value, any Error>) -> WebServiceError.Code? {
        if case .failure(let error) = result { (error as? WebServiceError)?.code } else { nil }
    }

    private func status(_ task: SessionTask) async -> Int? {
        try? await task.data().response.status  // an error counts as no status
    }

    @Test("If the refresh of a token has failed, later requests with that token fail with the same error")
    func sharedFailure() async throws {
        let session = HandSession()
        let count = Collected<Int>()
        let authentication = Authentication(
            TokenSource({ .bearer("old") }) { _ in
                count.add(1)
                throw TestError()
            })
        let service = service(session, authentication)
        var tasks = [service.GET("/a").data().resume()]
        await session.exchanges.wait()  // both are sent with the old token, in this order
        tasks.append(service.GET("/b").data().resume())
        let exchanges = await session.exchanges.wait(for: 2)
        for (task, exchange) in zip(tasks, exchanges) {
            exchange.respond(status: 401)
            #expect(code(await task.result) == .authenticationFailed)
        }
        #expect(count.values.count == 1)
    }

    private func parked(_ authentication: Authentication, _ count: Int) async {
        await eventually { authentication.parkedRequests >= count }
    }

    @Test(
        "The error of a failed refresh describes the reason without secrets",
        arguments: [
            (400, #"{"error":"bad_refresh_token"}"#, ": status 400, bad_refresh_token"),
            (401, #"{"error":"invalid_grant","error_description":"canary"}"#, ": status 401, invalid_grant"),
            (400, #"{"error":"Token canary-7f3a9"}"#, ": status 400"),
            (400, #"{"error":{"code":"canary"}}"#, ": status 400"), (503, "canary", ": status 503"),
            (200, "canary", ": decoding"), (0, "", ": URLError -1001"), (1, "", ": TestError"),
        ])
    func reasons(status: Int, body: String, reason: String) async throws {
        struct Tokens: Decodable { var token: String }
        let session = HandSession { exchange in
            switch exchange.request.urlRequestValue.url?.path {
            case "/v1/token" where status == 0: exchange.completion(nil, nil, URLError(.timedOut))
            case "/v1/token": exchange.respond(body, status: status)
            default: exchange.respond("", status: 401)
            }
        }
        let service = WebService.make(session)
        let login = service.clone()
        service.interceptors = [
            Authentication(
                TokenSource({ .bearer("old") }) { _ in
                    guard status != 1 else { throw TestError(name: "canary") }
                    return .bearer(try await login.POST("/token").decode(Tokens.self).value.token)
                })
        ]
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/x").data().value }
        #expect(error?.code == .authenticationFailed)
        #expect(error?.message == "the credential could not be refreshed\(reason); see the underlying error")
        #expect(error.map { !"\($0)".contains("canary") } == true)
    }

    @Test("The result of a refresh that exceeded its limit is ignored while the next refresh runs")
    func lateResult() async {
        let session = server(accepting: "good")
        let clock = ManualTimekeeper()
        let authentication = Authentication(
            TokenSource({ .bearer("t1") }, refreshWithCallback: { _, done in refreshes.add(done) }),
            refreshLimit: .seconds(5))
        let service = service(session, authentication, clock)
        let first = service.GET("/a").data()
        first.resume()
        await refreshes.wait()
        await parked(authentication, 1)
        clock.advance(by: .seconds(5))
        #expect(code(await first.result) == .authenticationFailed)
        let second = service.GET("/b").data()
        second.resume()
        let completions = await refreshes.wait(for: 2)
        await parked(authentication, 1)
        completions[0](.success(.bearer("late")))
        // A Swift task handles or ignores the result of the first refresh.
        for _ in 0..<1_000 { await Task.yield() }
        #expect(authentication.parkedRequests == 1)
        completions[1](.success(.bearer("good")))
        #expect((try? await second.response.status) == 200)  // an error counts as no status
        #expect(!tokens(session).contains("Bearer late"))
    }

    @Test(
        "A credential about to expire is neither refreshed nor sent if clear() is called while it is read")
    func clearWhileReading() async {
        let session = server(accepting: "old account")
        let reads = Collected<CheckedContinuation<Credential?, Never>>()
        let now = Date(timeIntervalSince1970: 1_000)
        let authentication = Authentication(
            TokenSource({ await withCheckedContinuation { reads.add($0) } }) { _ in .bearer("other account") })
        let task = service(session, authentication, TestTimekeeper(date: { now })).GET("/x").data()
        task.resume()
        let read = await reads.wait()[0]
        authentication.clear()
        read.resume(returning: .bearer("old account", expires: now.addingTimeInterval(10)))
        #expect(code(await task.result) == .authenticationFailed)
        #expect(tokens(session) == [])
    }

    @Test(
        "A credential passed to update() is sent instead of refreshing an expiring one that is being read"
    )
    func updateWhileReading() async {
        let session = server(accepting: "given")
        let (reads, refreshes) = (Collected<CheckedContinuation<Credential?, Never>>(), Collected<Void>())
        let now = Date(timeIntervalSince1970: 1_000)
        let source = TokenSource({ await withCheckedContinuation { reads.add($0) } }) { _ in
            refreshes.add(())
            return .bearer("refreshed")
        }
        let authentication = Authentication(source)
        let task = service(session, authentication, TestTimekeeper(date: { now })).GET("/x").data()
        task.resume()
        let read = await reads.wait()[0]
        authentication.update(.bearer("given"))
        read.resume(returning: .bearer("old", expires: now.addingTimeInterval(10)))
        #expect((try? await task.response.status) == 200)  // an error counts as no status
        #expect(tokens(session) == ["Bearer given"])
        #expect(refreshes.values.isEmpty)
    }

    @Test(
        "The credential of the next account is not sent if clear() is called during the second read"
    )
    func clearWhileReadingAgain() async {
        let session = server(accepting: "new account")
        let reads = Collected<CheckedContinuation<Credential?, Never>>()
        // The refresh returns no credential, so the credential is read again.
        let authentication = Authentication(
            TokenSource({ await withCheckedContinuation { reads.add($0) } }) { _ in nil })
        let task = service(session, authentication).GET("/x").data()
        task.resume()
        (await reads.wait()[0]).resume(returning: .bearer("old account"))
        let second = await reads.wait(for: 2)[1]
        authentication.clear()
        second.resume(returning: .bearer("new account"))
        #expect(code(await task.result) == .authenticationFailed)
        #expect(tokens(session) == ["Bearer old account"])
    }

    @Test("After clear(), the late result of a running refresh is ignored")
    func clearDuringRefresh() async {
        let session = server(accepting: "never")
        let authentication = Authentication(
            TokenSource({ .bearer("old") }, refreshWithCallback: { _, done in refreshes.add(done) }))
        let service = service(session, authentication)
        let old = service.GET("/x").data()
        old.resume()
        let done = await refreshes.wait()[0]
        await parked(authentication, 1)
        authentication.clear()
        #expect(code(await old.result) == .authenticationFailed)
        let new = service.GET("/y").data()
        new.resume()
        let next = await refreshes.wait(for: 2)[1]
        await parked(authentication, 1)
        done(.success(.bearer("of the old account")))
        for _ in 0..<1_000 { await Task.yield() }
        #expect(authentication.parkedRequests == 1)
        next(.success(.bearer("of the new account")))
        _ = await new.result
        #expect(tokens(session) == ["Bearer old", "Bearer old", "Bearer of the new account"])
    }

    @Test("If a refresh returns the rejected credential, the 401 is the response, and nothing is sent again")
    func sameCredential() async {
        let session = server(accepting: "other")
        let authentication = Authentication(TokenSource({ .bearer("t1") }) { rejected in rejected })
        let task = service(session, authentication).GET("/x")
        #expect(await status(task) == 401)
        #expect(tokens(session) == ["Bearer t1"])
        #expect(!task.timeline.events.contains { $0.kind == .retry })
    }

    @Test("Failing refreshes are repeated only after a back-off that doubles, not for every request")
    func backOff() async {
        let session = server(accepting: "none")
        let clock = ManualTimekeeper()
        let refreshes = Collected<Int>()
        let authentication = Authentication(
            TokenSource({ .bearer("t1") }) { _ in
                refreshes.add(1)
                throw TestError(name: "refresh")
            }, maximumRefreshes: 100, refreshWindow: .seconds(3))
        let service = service(session, authentication, clock)
        func fail(_ count: Int) async {
            for _ in 0..<count { #expect(code(await service.GET("/x").data().result) == .authenticationFailed) }
        }
        await fail(20)
        #expect(refreshes.values.count == 2)
        clock.advance(by: .milliseconds(999))
        await fail(5)
        #expect(refreshes.values.count == 2)
        clock.advance(by: .milliseconds(1))
        await fail(5)
        #expect(refreshes.values.count == 3)
        clock.advance(by: .seconds(2))
        await fail(5)
        #expect(refreshes.values.count == 4)
        // The back-off never exceeds the window.
        clock.advance(by: .seconds(3))
        await fail(5)
        #expect(refreshes.values.count == 5)
        authentication.update(.bearer("none"))
        #expect(await status(service.GET("/x")) == 200)
        authentication.clear()
        await fail(1)
        #expect(refreshes.values.count == 6)
    }

    @Test(
        "A refresh continues if all waiting requests are cancelled, and the next request uses its credential")
    func allCancelled() async {
        let session = server(accepting: "t2")
        let authentication = Authentication(
            TokenSource({ .bearer("t1") }, refreshWithCallback: { _, done in refreshes.add(done) }))
        let service = service(session, authentication)
        let tasks = (0..<20).map { service.GET("/\($0)").data() }
        for task in tasks { task.resume() }
        await parked(authentication, 20)
        for task in tasks { task.cancel() }
        for task in tasks {
            let result = await task.result
            #expect(throws: URLError(.cancelled)) { try result.get() }
        }
        await eventually("no request waits") { authentication.parkedRequests == 0 }
        let next = service.GET("/next").data()
        next.resume()
        await parked(authentication, 1)
        (await refreshes.wait()[0])(.success(.bearer("t2")))
        #expect((try? await next.response.status) == 200)  // an error counts as no status
        #expect(refreshes.values.count == 1)
    }

    @Test("A waiting request completes if its service is released during the refresh")
    func deallocatedService() async {
        let session = server(accepting: "t2")
        let authentication = Authentication(
            TokenSource({ .bearer("t1") }, refreshWithCallback: { _, done in refreshes.add(done) }))
        let statuses = Collected<Int?>()
        service(session, authentication).GET("/x")
            .response { _, response in statuses.add((response as? HTTPURLResponse)?.statusCode) }
            .resume()
        await parked(authentication, 1)
        (await refreshes.wait()[0])(.success(.bearer("t2")))
        #expect(await statuses.wait() == [200])
    }

    @Test("After too many refreshes, the error contains that of the last one if it failed", arguments: [true, false])
    func excessiveRefreshCause(lastFails: Bool) async {
        let refreshes = Collected<Int>()
        let authentication = Authentication(
            TokenSource({ .bearer("t0") }) { _ in
                refreshes.add(1)
                guard refreshes.values.count == 2, lastFails else { return .bearer("t\(refreshes.values.count)") }
                throw URLError(.timedOut)
            }, maximumRefreshes: 2)
        let service = service(server(accepting: "none"), authentication, ManualTimekeeper())
        for _ in 0..<2 { _ = await service.GET("/x").data().result }
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/x").data().value }
        #expect(error?.code == .excessiveRefresh)
        let cause = error?.underlying as? WebServiceError
        #expect(cause?.code == (lastFails ? .authenticationFailed : nil))
    }

    @Test(
        "A refresh can start as soon as the window since the first one has passed, to the nanosecond",
        arguments: [-1, 0, 1])
    func window(nanoseconds: Int) async {
        let session = server(accepting: "none")
        let clock = ManualTimekeeper()
        let refreshes = Collected<Int>()
        let authentication = Authentication(
            TokenSource({ .bearer("t0") }) { _ in
                refreshes.add(1)
                return .bearer("t\(refreshes.values.count)")
            }, maximumRefreshes: 2, refreshWindow: .seconds(30))
        let service = service(session, authentication, clock)
        #expect(await status(service.GET("/x")) == 401)
        clock.advance(by: .seconds(10))
        #expect(await status(service.GET("/x")) == 401)
        clock.advance(by: .seconds(20) + .nanoseconds(nanoseconds))
        let third = await service.GET("/x").data().result
        #expect((code(third) == .excessiveRefresh) == (nanoseconds < 0))
        #expect(refreshes.values.count == (nanoseconds < 0 ? 2 : 3))
    }

    @Test(
        "A refresh request from a Dispatch queue does not wait for itself if it bypasses the authentication"
    )
    func dispatchQueue() async {
        let session = server(accepting: "t2")
        let clock = ManualTimekeeper()
        let box = Collected<(WebService, Authentication)>()
        let queue = DispatchQueue(label: "refresh")
        let authentication = Authentication(
            TokenSource(
                { .bearer("t1") },
                refreshWithCallback: { _, done in
                    queue.async {
                        let (service, authentication) = box.values[0]
                        authentication.bypassing {
                            service.POST("/token").response { _, _ in done(.success(.bearer("t2"))) }
                                .responseError { done(.failure($0)) }
                                .resume()
                        }
                    }
                }), refreshLimit: .seconds(5))
        let service = service(session, authentication, clock)
        box.add((service, authentication))
        #expect(await status(service.GET("/x")) == 200)
        #expect(tokens(session) == ["Bearer t1", nil, "Bearer t2"])
    }

    @Test("A refresh whose request waits for it ends at the refresh limit, and both fail")
    func refreshThatWaitsForItself() async {
        let session = server(accepting: "t2")
        let clock = ManualTimekeeper()
        let box = Collected<WebService>()
        let authentication = Authentication(
            TokenSource(
                { .bearer("t1") },
                refreshWithCallback: { _, done in
                    DispatchQueue.global().async {
                        box.values[0].POST("/token").response { _, _ in done(.success(.bearer("t2"))) }.responseError {
                            done(.failure($0))
                        }.resume()
                    }
                }), refreshLimit: .seconds(5))
        let service = service(session, authentication, clock)
        box.add(service)
        let task = service.GET("/x").data()
        task.resume()
        await parked(authentication, 2)
        clock.advance(by: .seconds(5))
        #expect(code(await task.result) == .authenticationFailed)
        #expect(authentication.parkedRequests == 0)
    }
}
