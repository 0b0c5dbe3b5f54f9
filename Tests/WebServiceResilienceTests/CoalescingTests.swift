import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Coalescing", .permit)
struct CoalescingTests {
    private let clock = ManualTimekeeper()
    private let session = HandSession()
    private let service: WebService

    init() {
        service = WebService.make(session, timekeeper: clock).withoutDataSource
        service.interceptors = [.coalescing()]
    }

    private func waits(_ task: TypedTask<Data>) -> Bool {
        task.timeline.events.contains {
            $0.kind == .coalescing && $0.detail == "waits for the response to an identical request"
        }
    }

    /// Starts a request, and waits until it is sent or waits for another one.
    private func begin(
        _ path: String = "/beer", _ method: Request.Method = .GET, of service: WebService? = nil,
        _ change: (inout Request) -> Void = { _ in }
    ) async -> TypedTask<Data> {
        let service = service ?? self.service
        var request = service.request(method, path: path)
        change(&request)
        let count = session.exchanges.values.count
        let task = service.sessionTask(request: request).data().validateNothing().resume()
        await eventually { session.exchanges.values.count > count || waits(task) || task.settled != nil }
        return task
    }

    /// Starts two requests.
    ///
    /// - Returns: The number of requests that were sent.
    private func count(
        _ first: (inout Request) -> Void, _ second: (inout Request) -> Void
    ) async -> Int {
        let before = session.exchanges.values.count
        let tasks = [await begin("/beer", .GET, of: nil, first), await begin("/beer", .GET, of: nil, second)]
        let count = session.exchanges.values.count - before
        for task in tasks { task.cancel() }
        await eventually { session.exchanges.values.allSatisfy { $0.log.last == "cancel" } }
        return count
    }

    private func separations(_ task: TypedTask<Data>) -> [String] {
        task.timeline.events.filter { $0.kind == .coalescing }.map(\.detail)
    }

    // MARK: Sharing

    @Test("Identical requests in flight are sent once, and all tasks receive the response")
    func shared() async throws {
        let tasks = [await begin(), await begin(), await begin()]
        #expect(session.exchanges.values.count == 1)
        session.exchanges.values[0].respond("ale")
        for task in tasks { #expect(try await task.value == Data("ale".utf8)) }
        var sources: [Response.Source] = []
        for task in tasks { sources.append(try await task.response.source) }
        #expect(sources == [.network, .joined, .joined])
        #expect(tasks.map { $0.timeline.events.filter { $0.kind == .attempt }.map(\.status) } == [[200], [200], [200]])
        #expect(try await tasks[2].response.attempts == 1)
        #expect(service.exchanges.isEmpty)
    }

    @Test("A request that begins after the response is sent again")
    func later() async throws {
        let first = await begin()
        session.exchanges.values[0].respond("ale")
        #expect(try await first.value == Data("ale".utf8))
        let second = await begin()
        #expect(session.exchanges.values.count == 2)
        session.exchanges.values[1].respond("stout")
        #expect(try await second.value == Data("stout".utf8))
    }

    @Test("An error is that of all tasks")
    func error() async throws {
        let tasks = [await begin(), await begin()]
        session.exchanges.values[0].completion(nil, nil, URLError(.networkConnectionLost))
        for task in tasks {
            let error = await #expect(throws: URLError.self) { try await task.value }
            #expect(error?.code == .networkConnectionLost)
        }
        #expect(session.exchanges.values.count == 1)
    }

    @Test("A response with an error status is that of all tasks")
    func status() async throws {
        let tasks = [await begin(), await begin()]
        session.exchanges.values[0].respond("no", status: 404)
        for task in tasks { #expect(try await task.response.status == 404) }
    }

    // MARK: Cancellation

    @Test("A cancelled task ends only its own wait, even if it began the sending", arguments: 0..<3)
    func cancelled(index: Int) async throws {
        let tasks = [await begin(), await begin(), await begin()]
        tasks[index].cancel()
        let error = await #expect(throws: URLError.self) { try await tasks[index].value }
        #expect(error?.code == .cancelled)
        let late = await begin()
        #expect(waits(late))
        session.exchanges.values[0].respond("ale")
        for (number, task) in (tasks + [late]).enumerated() where number != index {
            #expect(try await task.value == Data("ale".utf8))
        }
        #expect(session.exchanges.values.map(\.log) == [["resume"]])
    }

    @Test("When all tasks are cancelled, the sending is cancelled, and the next request is sent")
    func allCancelled() async throws {
        let tasks = [await begin(), await begin()]
        for task in tasks { task.cancel() }
        await eventually { session.exchanges.values[0].log == ["resume", "cancel"] }
        let next = await begin()
        #expect(session.exchanges.values.count == 2)
        session.exchanges.values[1].respond("ale")
        #expect(try await next.value == Data("ale".utf8))
    }

    @Test("Each task has its own deadline")
    func deadline() async throws {
        let first = await begin { $0.options.deadline = .seconds(1) }
        let second = await begin()
        #expect(waits(second))
        clock.advance(by: .seconds(2))
        let error = await #expect(throws: WebServiceError.self) { try await first.value }
        #expect(error?.code == .deadline)
        session.exchanges.values[0].respond("ale")
        #expect(try await second.value == Data("ale".utf8))
    }

    @Test("Tasks that wait for one sending, of which all begin and end at the same time, all end")
    func concurrent() async throws {
        let session = HandSession(text: "ale")
        service.session = session
        let tasks = Mutex<[TypedTask<Data>]>([])
        Thread.concurrently(8) { [service] number in
            for round in 0..<25 {
                let task = service.GET("/beer").data().resume()
                if (number + round).isMultiple(of: 5) { task.cancel() }
                tasks.withLock { $0.append(task) }
            }
        }
        var texts: Set<String> = []
        for task in tasks.withLock({ $0 }) {
            do { texts.insert(String(decoding: try await task.value, as: UTF8.self)) } catch {
                #expect((error as? URLError)?.code == .cancelled)
            }
        }
        #expect(texts == ["ale"])
        #expect(session.exchanges.values.count <= 200)
    }

    // MARK: Accounts

    @Test(
        "Requests with other credentials are never shared",
        arguments: ["Authorization", "X-Api-Key", "Cookie", "X-Session-Token"])
    func credentials(name: String) async {
        for interceptor in [Coalescing(), Coalescing { _ in "the same" }] {
            service.interceptors = [interceptor]
            #expect(await count({ $0.headers[name] = "ann" }, { $0.headers[name] = "ben" }) == 2)
            #expect(await count({ $0.headers[name] = "ann" }, { _ in }) == 2)
            #expect(await count({ $0.headers[name] = "ann" }, { $0.headers[name] = "ann" }) == 1)
        }
    }

    @Test("The credential of an Authentication that precedes is compared")
    func authentication() async throws {
        let token = Mutex("ann")
        service.interceptors = [
            Authentication(TokenSource { Credential.bearer(token.withLock { $0 }) }), .coalescing(),
        ]
        #expect(await count({ _ in }, { _ in }) == 1)
        #expect(await count({ _ in }, { _ in token.withLock { $0 = "ben" } }) == 2)
    }

    @Test("Requests are sent separately if an interceptor that may add credentials follows")
    func laterCredentials() async throws {
        let following: [any Interceptor] = [
            .bearer("t"), .basic(user: "u", password: "p"), .digest(user: "u", password: "p"),
            .closure { try await $1($0) },
        ]
        for interceptor in following {
            service.interceptors = [.coalescing(), interceptor]
            #expect(await count({ _ in }, { _ in }) == 2, "\(type(of: interceptor))")
        }
        let task = await begin()
        #expect(
            separations(task) == [
                "sent separately, because an interceptor of type ClosureInterceptor follows, which may add credentials"
            ])
        task.cancel()
    }

    private final class Delegate: PartialDelegate {}

    private final class CredentialSession: Session {
        let inner: HandSession
        init(_ inner: HandSession) { self.inner = inner }
        func addsCredentials(to url: URL) -> Bool { true }
        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask { inner.dataTask(request: request, completion: completion) }
    }

    @Test("Requests are sent separately if the delegate or the session may add credentials")
    func otherCredentials() async throws {
        let delegate = Delegate()
        let delegated = WebService.make(session, delegate: delegate, timekeeper: clock)
        let added = WebService.make(CredentialSession(session), timekeeper: clock).withoutDataSource
        for (service, reason) in [(delegated, "delegate"), (added, "session")] {
            service.interceptors = [.coalescing()]
            let count = session.exchanges.values.count
            let tasks = [await begin(of: service), await begin(of: service)]
            #expect(session.exchanges.values.count - count == 2)
            #expect(separations(tasks[1]) == ["sent separately, because the \(reason) may add credentials"])
            for task in tasks { task.cancel() }
        }
        withExtendedLifetime(delegate) {}
    }

    @Test("Requests are not shared if the cookies of the jar have changed")
    func cookies() async throws {
        let (jar, url) = (CookieJar(), try #require(URL(string: "https://h/")))
        service.cookieJar = jar
        jar.store(["session=ann; Path=/"], from: url)
        #expect(await count({ _ in }, { _ in }) == 1)
        #expect(await count({ _ in }, { _ in jar.store(["session=ben; Path=/"], from: url) }) == 2)
    }

    @Test("Requests of two services, and those before and after a change of a service, are not shared")
    func services() async {
        let coalescing = Coalescing()
        let other = WebService.make(session, timekeeper: clock).withoutDataSource
        (service.interceptors, other.interceptors) = ([coalescing], [coalescing])
        let tasks = [await begin(), await begin(of: other)]
        #expect(session.exchanges.values.count == 2)
        service.cookieJar = CookieJar()
        let third = await begin()
        #expect(session.exchanges.values.count == 3)
        for task in tasks + [third] { task.cancel() }
    }

    // MARK: Keys

    @Test("Requests that differ in a property that can change the response are not shared")
    func differences() async {
        let changes: [(inout Request) -> Void] = [
            { $0.method = .HEAD }, { $0.queryParameters = ["a": "b"] }, { $0.headers["Accept"] = "text/plain" },
            { $0.headers["X-Tenant"] = "a" }, { $0.headers["Range"] = "bytes=0-1" },
            { $0.options.shouldHandleCookies = false }, { $0.options.cachePolicy = .reloadIgnoringLocalCacheData },
            { $0.options.maximumResponseBytes = 7 }, { $0.options.redirectPolicy = .manual },
            { $0.options.timeout = .seconds(7) }, { $0.options.attemptTimeout = .seconds(7) },
        ]
        for (index, change) in changes.enumerated() {
            #expect(await count({ _ in }, change) == 2, "change \(index)")
            #expect(await count(change, change) == 1, "change \(index)")
        }
    }

    @Test("Requests that differ only in their trace are shared")
    func trace() async {
        #expect(await count({ $0.headers["traceparent"] = "00-1" }, { $0.headers["traceparent"] = "00-2" }) == 1)
    }

    @Test("A custom key replaces the URL, and nil sends the request separately")
    func customKey() async throws {
        service.interceptors = [.coalescing { $0.url?.path == "/v1/own" ? nil : $0.url?.path }]
        let tasks = [
            await begin("/beer?nonce=1"), await begin("/beer?nonce=2"), await begin("/own"), await begin("/own"),
        ]
        #expect(session.sentPaths == ["/v1/beer", "/v1/own", "/v1/own"])
        for task in tasks { task.cancel() }
    }

    @Test("Requests that may change something, with a body or with interceptors of their own are not shared")
    func kinds() async {
        let changes: [(inout Request) -> Void] = [
            { $0.method = .POST }, { $0.method = .PUT }, { $0.method = .DELETE },
            {
                $0.method = .QUERY
                $0.body = Data("ale".utf8)
            },
            { $0.options.interceptors = [.closure { try await $1($0) }] },
        ]
        for (index, change) in changes.enumerated() { #expect(await count(change, change) == 2, "change \(index)") }
    }

    @Test("Streams are not shared")
    func streams() async {
        let tasks = [service.GET("/beer").stream().resume(), service.GET("/beer").stream().resume()]
        await session.exchanges.wait(for: 2)
        for task in tasks { task.cancel() }
    }

    // MARK: Other interceptors

    @Test("The standard set after the interceptor retries a shared request once for all tasks")
    func standardSet() async throws {
        let clock = TestClock()
        let calls = Mutex(0)
        let mock = MockService(clock: clock)
        let service = mock.service.withoutDataSource
        mock.on(.GET, "/beer") { _ in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            return call == 1
                ? MockResponse(statusCode: 503).after(.milliseconds(10)) : .text("ale").after(.milliseconds(10))
        }
        service.interceptors = [.coalescing()] + .standardResilience()
        let tasks = (0..<3).map { _ in service.GET("/beer").string().resume() }
        await clock.advance(by: .seconds(5))
        for task in tasks { #expect(try await task.value == "ale") }
        #expect(mock.receivedRequests.count == 2)
        #expect(try await tasks[0].response.attempts == 2)
    }

    @Test("A hedging interceptor that precedes is refused, and one that follows hedges the shared request")
    func hedging() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let service = mock.service.withoutDataSource
        mock.on(.GET, "/beer", [.text("late").after(.seconds(1)), .text("ale")])
        service.interceptors = [.hedging(), .coalescing()]
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/beer").string().value }
        #expect(error?.code == .interceptorOrder)
        #expect(error?.message.contains("place .coalescing() before .hedging()") == true)
        service.interceptors = [.coalescing(), .hedging(after: .fixed(.milliseconds(50)))]
        let tasks = (0..<2).map { _ in service.GET("/beer").string().resume() }
        await clock.advance(by: .seconds(2))
        for task in tasks { #expect(try await task.value == "ale") }
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("The interceptor of a request shares it with others")
    func ofRequest() async {
        service.interceptors = []
        let coalescing = Coalescing()
        #expect(
            await count({ $0.options.interceptors = [coalescing] }, { $0.options.interceptors = [coalescing] }) == 1)
    }

    @Test("A task that waits sends its request itself if the sending ends with a cancellation")
    func endedSending() async throws {
        let tasks = [await begin(), await begin()]
        session.exchanges.values[0].completion(nil, nil, URLError(.cancelled))
        await session.exchanges.wait(for: 2)
        session.exchanges.values[1].respond("ale")
        #expect(try await tasks[1].value == Data("ale".utf8))
        let error = await #expect(throws: URLError.self) { try await tasks[0].value }
        #expect(error?.code == .cancelled)
    }
}

extension HandSession {
    fileprivate var sentPaths: [String] {
        exchanges.values.map { $0.request.urlRequestValue.url?.path ?? "" }
    }
}

extension WebService {
    /// A service that ignores the data source of delegates, which other tests of the process have.
    fileprivate var withoutDataSource: WebService {
        WebService(owning: ServiceCore(copying: core, suppliesDelegate: false))
    }
}
