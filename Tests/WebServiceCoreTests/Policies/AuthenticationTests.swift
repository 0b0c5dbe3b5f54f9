import Dispatch
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// A server that accepts one token, records the tokens it receives and responds on another thread.
private final class TokenServer: Session {
    struct State {
        var accepted: String?
        var seen: [String?] = []
    }

    let state: Mutex<State>
    /// Contains one element for each request.
    let arrivals = Collected<Void>()
    private let status: Int

    init(accepts token: String?, refusal: Int = 401) {
        state = Mutex(State(accepted: token))
        status = refusal
    }

    var seen: [String?] { state.withLock { $0.seen } }
    func accept(_ token: String?) { state.withLock { $0.accepted = token } }

    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        HandSession { [self] exchange in
            let request = exchange.request.urlRequestValue
            let token = request.value(forHTTPHeaderField: "Authorization")
            let isAccepted = state.withLock { state in
                state.seen.append(token)
                return token == state.accepted.map { "Bearer \($0)" }
            }
            DispatchQueue.global().async { exchange.respond("{}", status: isAccepted ? 200 : self.status) }
            arrivals.add(())
        }.dataTask(request: request, completion: completion)
    }
}

@Suite("Authentication", .permit(minutes: 60))
struct AuthenticationTests {
    private let session = HandSession(text: "x")
    private let hand = HandSession()

    /// Issues the tokens t2, t3 and so on, one for each refresh.
    private final class Issuer: Sendable {
        private let count = Mutex(0)
        var refreshes: Int { count.withLock { $0 } }
        func next() -> Credential {
            .bearer("t\(count.withLock { count -> Int in count += 1; return count } + 1)")
        }
    }

    private func service(_ session: any Session, _ authentication: Authentication, clock: (any Timekeeper)? = nil)
        -> WebService
    {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [authentication]
        return service
    }

    private func code<Value>(_ result: Result<Value, any Error>) -> WebServiceError.Code? {
        if case .failure(let error) = result { (error as? WebServiceError)?.code } else { nil }
    }

    // MARK: Sending

    @Test("Bearer, Basic and custom credentials are read at each send and do not replace a field of the caller")
    func sending() async throws {
        let tokens = Collected<Int>()
        let service = service(
            session,
            Authentication(
                TokenSource {
                    tokens.add(1)
                    return .bearer("t\(tokens.values.count)")
                }))
        for _ in 0..<2 { _ = try await service.GET("/x").data().value }
        _ = try await service.GET("/x").setHeaderValue("mine", forName: "authorization").data().value
        service.interceptors = [Authentication(TokenSource(try .basic(user: "Ann", password: "pä:ss")))]
        _ = try await service.GET("/x").data().value
        service.interceptors = [Authentication(TokenSource(Credential(header: "X-Api-Key", value: "k")))]
        _ = try await service.GET("/x").data().value
        let sent = session.exchanges.values.map { $0.request.urlRequestValue }
        #expect(
            sent.map { $0.value(forHTTPHeaderField: "Authorization") } == [
                "Bearer t1", "Bearer t2", "mine", "Basic QW5uOnDDpDpzcw==", nil,
            ])
        #expect(sent.last?.value(forHTTPHeaderField: "X-Api-Key") == "k")
    }

    @Test(
        "Basic credentials reject user names with a colon and control characters",
        arguments: [("a:b", "c"), ("a\n", "c"), ("a", "c\r\n")])
    func badBasic(user: String, password: String) async {
        #expect(throws: WebServiceError.self) { try Credential.basic(user: user, password: password) }
        let service = WebService.make(session)
        service.interceptors = [.basic(user: user, password: password)]
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/x").data().value }
        #expect(error?.code == .encoding)
        #expect(session.exchanges.values.isEmpty)
    }

    @Test("The interceptor for Basic authentication sends the user and the password in UTF-8 to the base URL only")
    func basic() async throws {
        let service = WebService.make(session)
        service.interceptors = [.basic(user: "test", password: "123\u{A3}")]
        for path in ["/x", "https://other/x"] { _ = try await service.GET(path).data().value }
        let sent = session.exchanges.values.map {
            $0.request.urlRequestValue.value(forHTTPHeaderField: "Authorization")
        }
        #expect(sent == ["Basic dGVzdDoxMjPCow==", nil])  // RFC 7617, section 2.1
    }

    @Test(
        "Credentials are sent only to the origin of the base URL and to the allowed origins",
        arguments: [
            ("/x", true), ("https://h/other", true), ("https://h:443/x", true), ("http://h/x", false),
            ("https://h:8443/x", false),
            ("https://h.evil/x", false), ("https://evil.h/x", false), ("https://ok/x", true),
        ])
    func origins(path: String, sends: Bool) async throws {
        let origin = try #require(Origin("https://ok"))
        let service = service(session, Authentication(TokenSource(.bearer("secret")), origins: [origin]))
        _ = try await service.GET(path).data().value
        let sent = try #require(session.exchanges.values.first).request.urlRequestValue
        #expect((sent.value(forHTTPHeaderField: "Authorization") != nil) == sends)
    }

    // MARK: Refreshing

    private enum Refresh: String, CaseIterable, Sendable {
        case succeeds, fails, hangs, answersAtOnce, answersTwice
    }

    @Test(
        "Up to 10,000 simultaneous 401 responses cause one refresh, and each request ends once",
        arguments: Refresh.allCases)
    private func storm(kind: Refresh) async throws {
        let thorough = kind == .succeeds ? 10_000 : 4_000
        let count = amount(1_000, thorough: thorough, soak: 10_000) / CancelRaceTests.scale
        let rounds = amount(1, thorough: 1, soak: 25)
        for _ in 0..<rounds {
            let server = TokenServer(accepts: "t2")
            let refreshes = Collected<Int>()
            let held = Collected<@Sendable (Result<Credential, any Error>) -> Void>()
            let read: @Sendable () async throws -> Credential? = { .bearer("t1") }
            // The refresh waits until every request has received a 401, so that all of them wait.
            let allRefused: @Sendable () async -> Void = { await server.arrivals.wait(for: count) }
            let source: TokenSource =
                switch kind {
                case .succeeds:
                    TokenSource(read) { _ in
                        refreshes.add(1)
                        await allRefused()
                        return .bearer("t2")
                    }
                case .fails:
                    TokenSource(read) { _ in
                        refreshes.add(1)
                        await allRefused()
                        throw TestError(name: "refresh")
                    }
                case .hangs:
                    TokenSource(
                        read,
                        refreshWithCallback: { _, done in
                            held.add(done)
                            refreshes.add(1)
                        })
                case .answersAtOnce:
                    TokenSource(
                        read,
                        refreshWithCallback: { _, done in
                            refreshes.add(1)
                            done(.success(.bearer("t2")))
                        })
                case .answersTwice:
                    TokenSource(
                        read,
                        refreshWithCallback: { _, done in
                            refreshes.add(1)
                            DispatchQueue.concurrentPerform(iterations: 8) { _ in done(.success(.bearer("t2"))) }
                        })
                }
            let clock = ManualTimekeeper()
            let service = service(server, Authentication(source, refreshLimit: .seconds(5)), clock: clock)
            let results = Collected<String>()
            for _ in 0..<count {
                service.GET("/x")
                    .response { _, response in results.add("\((response as? HTTPURLResponse)?.statusCode ?? 0)") }
                    .responseError { error in results.add(((error as? WebServiceError)?.code ?? .encoding).description)
                    }
                    .resume()
            }
            if kind == .hangs {
                await refreshes.wait()
                await allRefused()
                // Every request waits for the refresh once none is in flight.
                await eventually { service.parkedRequests >= count }
                clock.advance(by: .seconds(5))
            }
            let values = await results.wait(for: count)
            #expect(values.count == count)
            #expect(refreshes.values.count == 1)
            let expected = kind == .fails || kind == .hangs ? "authenticationFailed" : "200"
            #expect(values.allSatisfy { $0 == expected })
            let replayed = kind == .fails || kind == .hangs ? 0 : count
            #expect(server.seen.filter { $0 == "Bearer t2" }.count == replayed)
        }
    }

    @Test("A request with a late 401 for an older credential is sent again without a refresh")
    func lateRefusal() async {
        let issuer = Issuer()
        let service = service(hand, Authentication(TokenSource({ .bearer("t1") }) { _ in issuer.next() }))
        let done = Collected<Int>()
        let tasks = (0..<2).map { index in service.GET("/\(index)").response { _, _ in done.add(index) }.resume() }
        let first = await hand.exchanges.wait(for: 2)
        first[0].respond(status: 401)
        let replay = await hand.exchanges.wait(for: 3)[2]
        #expect(replay.request.urlRequestValue.value(forHTTPHeaderField: "Authorization") == "Bearer t2")
        replay.respond()
        await done.wait()
        first[1].respond(status: 401)
        let late = await hand.exchanges.wait(for: 4)[3]
        #expect(late.request.urlRequestValue.value(forHTTPHeaderField: "Authorization") == "Bearer t2")
        late.respond()
        await done.wait(for: 2)
        #expect(issuer.refreshes == 1)
        // The requests of the two tasks are sent in any order.
        let isSwapped = first[0].request.urlRequestValue.url?.path.hasSuffix("/1") == true
        #expect(
            tasks.map { $0.timeline.events.filter { $0.kind == .refresh }.count } == (isSwapped ? [0, 1] : [1, 0]))
    }

    @Test(
        "Only 401 rejects the credential; any other status is the response and causes no refresh",
        arguments: [400, 403, 407, 419, 498])
    func otherStatuses(status: Int) async throws {
        let server = TokenServer(accepts: "t2", refusal: status)
        let issuer = Issuer()
        let service = service(server, Authentication(TokenSource({ .bearer("t1") }) { _ in issuer.next() }))
        #expect(try await service.GET("/x").data().response.status == status)
        #expect(issuer.refreshes == 0)
        #expect(server.seen == ["Bearer t1"])
    }

    @Test(
        "With endless 401 responses, each request is sent twice, and the refreshes per window are limited")
    func endlessRefusal() async {
        let server = TokenServer(accepts: nil)
        let issuer = Issuer()
        let clock = ManualTimekeeper()
        let service = service(
            server, Authentication(TokenSource({ .bearer("t1") }) { _ in issuer.next() }), clock: clock)
        for attempt in 1...5 {
            let response = try? await service.GET("/x").data().response  // an error counts as no response
            #expect(response?.status == 401)
            #expect(server.seen.count == 2 * attempt)
        }
        #expect(issuer.refreshes == 5)
        #expect(code(await service.GET("/x").data().validateNothing().result) == .excessiveRefresh)
        clock.advance(by: .seconds(31))
        _ = await service.GET("/x").data().result
        #expect(issuer.refreshes == 6)
    }

    @Test("Without a refresh, every 401 is the response, and the refresh limit does not apply")
    func withoutRefresh() async throws {
        let service = service(
            TokenServer(accepts: nil), Authentication(TokenSource(.bearer("fixed")), maximumRefreshes: 2))
        for _ in 0..<8 { #expect(try await service.GET("/x").data().response.status == 401) }
    }

    @Test("A 401 from another origin after a redirect causes no refresh and no second attempt")
    func refusalFromElsewhere() async throws {
        let issuer = Issuer()
        let elsewhere = try #require(URL(string: "https://other/x"))
        let session = HandSession { exchange in
            let request = exchange.request.urlRequestValue
            let isHome = request.url?.host == "h"
            let response = request.url.flatMap {
                HTTPURLResponse(
                    url: $0, statusCode: isHome ? 302 : 401, httpVersion: "HTTP/1.1",
                    headerFields: isHome ? ["Location": elsewhere.absoluteString] : [:])
            }
            exchange.completion(Data(), response, nil)
        }
        let service = service(session, Authentication(TokenSource({ .bearer("t1") }) { _ in issuer.next() }))
        #expect(try await service.GET("/x").data().response.status == 401)
        #expect(issuer.refreshes == 0)
        let sent = session.exchanges.values.map {
            $0.request.urlRequestValue.value(forHTTPHeaderField: "Authorization")
        }
        #expect(sent == ["Bearer t1", nil])
    }

    @Test("A request to another origin reads no credential and causes no refresh")
    func requestElsewhere() async throws {
        let (issuer, reads) = (Issuer(), Collected<Void>())
        let expired = Date(timeIntervalSince1970: 0)
        let source = TokenSource({
            reads.add(())
            return .bearer("t1", expires: expired)
        }) { _ in issuer.next() }
        let service = service(HandSession(text: "x", status: 401), Authentication(source))
        #expect(try await service.GET("https://other/x").data().response.status == 401)
        #expect(reads.values.isEmpty)
        #expect(issuer.refreshes == 0)
    }

    @Test("If a proactive refresh fails, an unexpired credential is sent, and an expired one fails the request")
    func failedProactiveRefresh() async throws {
        let server = TokenServer(accepts: "t1")
        let now = Date(timeIntervalSince1970: 1_000)
        for (expires, status) in [(10.0, 200), (-1, nil)] as [(Double, Int?)] {
            let service = service(
                server,
                Authentication(
                    TokenSource({ .bearer("t1", expires: now.addingTimeInterval(expires)) }) { _ in
                        throw TestError(name: "refresh")
                    }), clock: TestTimekeeper(date: { now }))
            let task = service.GET("/x").data()
            if let status {
                #expect(try await task.response.status == status)
            } else {
                #expect(code(await task.result) == .authenticationFailed)
            }
        }
    }

    @Test("A failed refresh fails the waiting request, and the next request refreshes again")
    func failingRefresh() async throws {
        let server = TokenServer(accepts: "t2")
        let attempts = Collected<Int>()
        let service = service(
            server,
            Authentication(
                TokenSource({ .bearer("t1") }) { _ in
                    attempts.add(1)
                    if attempts.values.count == 1 { throw TestError(name: "refresh") }
                    return .bearer("t2")
                }))
        let failed = await service.GET("/x").data().result
        #expect(code(failed) == .authenticationFailed)
        if case .failure(let error) = failed {
            #expect((error as? WebServiceError)?.underlying as? TestError == TestError(name: "refresh"))
        }
        #expect(try await service.GET("/x").data().response.status == 200)
        #expect(attempts.values.count == 2)
    }

    @Test("A refresh that releases its completion handler without calling it fails")
    func forgottenCompletion() async {
        let service = service(
            TokenServer(accepts: "t2"), Authentication(TokenSource({ .bearer("t1") }, refreshWithCallback: { _, _ in }))
        )
        #expect(code(await service.GET("/x").data().result) == .authenticationFailed)
    }

    @Test("A refresh that sends its request with the same service does not wait for itself")
    func recursion() async throws {
        let server = TokenServer(accepts: "t2")
        let box = Collected<WebService>()
        let service = service(
            server,
            Authentication(
                TokenSource({ .bearer("t1") }) { _ in
                    let answer = try await box.values[0].POST("/token").data().response
                    #expect(answer.status == 401)
                    return .bearer("t2")
                }))
        box.add(service)
        #expect(try await service.GET("/x").data().response.status == 200)
        #expect(server.seen == ["Bearer t1", nil, "Bearer t2"])
    }

    @Test("A credential that is about to expire is refreshed once for all requests before it is sent")
    func proactive() async throws {
        let server = TokenServer(accepts: "t2")
        let issuer = Issuer()
        let now = Date(timeIntervalSince1970: 1_000)
        let service = service(
            server,
            Authentication(
                TokenSource({ .bearer("t1", expires: now.addingTimeInterval(29)) }) { _ in issuer.next() }),
            clock: TestTimekeeper(date: { now }))
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<50 { group.addTask { try await service.GET("/x").data().response.status } }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(statuses == [200])
        #expect(issuer.refreshes == 1)
        #expect(server.seen.allSatisfy { $0 == "Bearer t2" })
    }

    @Test("Cancelling a waiting request ends only that request")
    func cancelledWaiter() async {
        let server = TokenServer(accepts: "t2")
        let finish = Collected<@Sendable (Result<Credential, any Error>) -> Void>()
        let service = service(
            server, Authentication(TokenSource({ .bearer("t1") }, refreshWithCallback: { _, done in finish.add(done) }))
        )
        let first = service.GET("/a").data()
        let second = service.GET("/b").data()
        first.resume()
        second.resume()
        await eventually { service.parkedRequests >= 2 }
        first.cancel()
        let cancelled = await first.result
        #expect(throws: URLError(.cancelled)) { try cancelled.get() }
        let done = await finish.wait()[0]
        done(.success(.bearer("t2")))
        #expect((try? await second.response.status) == 200)  // an error counts as no status
        #expect(server.seen.filter { $0 == "Bearer t2" }.count == 1)
    }

    // MARK: Logout

    @Test(
        "Logout fails waiting requests, ignores the running refresh and sends no request of the old account")
    func clear() async {
        let server = TokenServer(accepts: "new")
        let finish = Collected<@Sendable (Result<Credential, any Error>) -> Void>()
        let account = Mutex<Credential?>(.bearer("old"))
        let authentication = Authentication(
            TokenSource({ account.withLock { $0 } }, refreshWithCallback: { _, done in finish.add(done) }))
        let service = service(server, authentication)
        let task = service.GET("/x").data()
        task.resume()
        await eventually { service.parkedRequests >= 1 }
        account.withLock { $0 = .bearer("new") }
        authentication.clear()
        #expect(code(await task.result) == .authenticationFailed)
        let done = await finish.wait()[0]
        done(.success(.bearer("late, of the old account")))
        #expect((try? await service.GET("/y").data().response.status) == 200)  // an error counts as no status
        #expect(server.seen == ["Bearer old", "Bearer new"])
    }

    @Test(
        "A request with a 401 after logout is not sent again with the credential of the next account")
    func refusalAfterClear() async {
        let authentication = Authentication(TokenSource({ .bearer("t") }) { _ in .bearer("next") })
        let service = service(hand, authentication)
        let task = service.GET("/x").data()
        task.resume()
        let exchange = await hand.exchanges.wait()[0]
        authentication.clear()
        authentication.update(.bearer("other account"))
        exchange.respond(status: 401)
        #expect(code(await task.result) == .authenticationFailed)
        #expect(hand.exchanges.values.count == 1)
    }

    @Test("A request is not retried after logout")
    func retryAfterClear() async {
        let clock = ManualTimekeeper()
        let authentication = Authentication(TokenSource({ .bearer("t") }) { _ in .bearer("next") })
        let service = service(hand, authentication, clock: clock)
        service.interceptors = [.retry(), authentication]
        let task = service.GET("/x").data()
        task.resume()
        let exchange = await hand.exchanges.wait()[0]
        exchange.respond(status: 503)
        await eventually { clock.pending >= 2 }  // the deadline and the pause before the next attempt
        authentication.clear()
        clock.advance(by: .seconds(60))
        #expect(code(await task.result) == .authenticationFailed)
        #expect(hand.exchanges.values.count == 1)
    }

    @Test("update() immediately resumes the waiting requests with the new credential")
    func update() async throws {
        let server = TokenServer(accepts: "given")
        let held = Collected<@Sendable (Result<Credential, any Error>) -> Void>()
        let authentication = Authentication(
            TokenSource({ .bearer("t1") }, refreshWithCallback: { _, done in held.add(done) }))
        let service = service(server, authentication)
        let task = service.GET("/x").data()
        task.resume()
        await eventually { service.parkedRequests >= 1 }
        authentication.update(.bearer("given"))
        #expect(try await task.response.status == 200)
        #expect(task.task.timeline.events.map(\.kind).contains(.refresh))
    }

    @Test("No description of a credential contains its value")
    func descriptions() {
        let credential = Credential.bearer("canary")
        var dumped = ""
        dump(credential, to: &dumped)
        #expect(!"\(credential) \(String(reflecting: credential)) \(dumped)".contains("canary"))
    }
}

extension WebService {
    /// The number of requests that wait for a refresh.
    fileprivate var parkedRequests: Int {
        interceptors.compactMap { ($0 as? Authentication)?.parkedRequests }.reduce(0, +)
    }
}
