import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// Verifies that `suspend()` after `resume()` changes the state and defers unsent requests and
/// handlers that have not started.
@Suite("Suspending a task", .permit)
struct SuspendTests {
    private let session = HandSession()

    /// The stage at which a task is suspended before its next request is sent.
    enum Place: CaseIterable {
        case bodyProvider, interceptor, requestInterceptor, retry, redirect, refresh, reply

        /// The number of requests that are sent before the deferred one.
        var sentBefore: Int {
            switch self {
            case .bodyProvider, .interceptor, .requestInterceptor: 0
            case .retry, .redirect, .refresh, .reply: 1
            }
        }

        var status: Int {
            switch self {
            case .retry: 503
            case .redirect: 307
            case .refresh: 401
            case .bodyProvider, .interceptor, .requestInterceptor, .reply: 200
            }
        }
    }

    enum Kind: CaseIterable { case hand, mock }

    /// A task that is suspended at one stage.
    private final class Bench: Sendable {
        let task: SessionTask
        let clock = ManualTimekeeper()
        let sent = Collected<URLRequest>()
        let handlers = Collected<String>()
        let modified = Collected<Int>()
        private let service: WebService
        private let delegate: Delegate

        init(_ place: Place, _ kind: Kind) throws {
            let box = Box()
            let (sent, handlers) = (sent, handlers)
            let reply: @Sendable (URLRequest) -> (status: Int, headers: [String: String]) = { request in
                sent.add(request)
                guard sent.values.count == 1, place.sentBefore == 1 else { return (200, [:]) }
                if place == .redirect || place == .reply { box.suspend() }
                return (place.status, place == .redirect ? ["Location": "/y"] : [:])
            }
            let session: any Session
            switch kind {
            case .hand:
                session = HandSession { exchange in
                    let request = exchange.request.urlRequestValue
                    let (status, headers) = reply(request)
                    let url = request.url ?? URL(fileURLWithPath: "/")
                    let response = HTTPURLResponse(
                        url: url, statusCode: status, httpVersion: nil, headerFields: headers)
                    exchange.completion(Data("{}".utf8), response, nil)
                }
            case .mock:
                let mock = MockSession()
                mock.addStub { request in
                    let (status, headers) = reply(request.urlRequestValue)
                    var response = MockResponse(statusCode: status, data: Data("{}".utf8))
                    response.headers = Headers(headers.map { ($0.key, $0.value) })
                    return response
                }
                session = mock
            }
            delegate = Delegate(modified)
            service = WebService.make(session, delegate: delegate, timekeeper: clock)
            let suspending: any Interceptor = .closure { request, next in
                box.suspend()
                return try await next(request)
            }
            switch place {
            case .interceptor: service.interceptors = [suspending]
            case .retry: service.interceptors = [RetryPolicy(pause: { _ in box.suspend() })]
            case .refresh:
                service.interceptors = [
                    Authentication(
                        TokenSource({ .bearer("t1") }) { _ in
                            box.suspend()
                            return .bearer("t2")
                        })
                ]
            case .bodyProvider, .requestInterceptor, .redirect, .reply: break
            }
            task = place == .bodyProvider ? service.POST("/x") : service.GET("/x")
            if place == .requestInterceptor { task.intercepted(by: suspending) }
            if place == .bodyProvider {
                task.setBody {
                    box.suspend()
                    return Data("body".utf8)
                }
            }
            task.response { _, response in handlers.add("\((response as? HTTPURLResponse)?.statusCode ?? 0)") }
                .responseError {
                    handlers.add(
                        ($0 as? URLError).map { "\($0.code.rawValue)" }
                            ?? "\(($0 as? WebServiceError)?.code.description ?? "")")
                }
            box.task.withLock { $0 = task }
        }

        private final class Box: Sendable {
            let task = Mutex<SessionTask?>(nil)
            func suspend() { task.withLock { $0.take() }?.suspend() }
        }

        private final class Delegate: PartialDelegate {
            let modified: Collected<Int>
            init(_ modified: Collected<Int>) { self.modified = modified }
            func modifiedRequest(request: URLRequest) -> URLRequest? {
                modified.add(1)
                return nil
            }
        }

        /// Resumes the task and waits until it is suspended with no request in flight.
        func run(until place: Place) async throws {
            task.resume()
            await eventually {
                task.holdsRequests || task.result != nil || sent.values.count > place.sentBefore
            }
        }
    }

    @Test(
        "A suspended task sends nothing until it is resumed, at every stage of the pipeline", arguments: Place.allCases,
        Kind.allCases)
    func held(place: Place, kind: Kind) async throws {
        let bench = try Bench(place, kind)
        try await bench.run(until: place)
        #expect(bench.task.state == .suspended)
        #expect(bench.sent.values.count == place.sentBefore)
        #expect(bench.modified.values.count == place.sentBefore)
        #expect(bench.handlers.values.isEmpty)
        bench.task.resume()
        #expect(await bench.handlers.wait() == ["200"])
        let all = place == .reply ? 1 : place.sentBefore + 1
        #expect(bench.sent.values.count == all)
        #expect(bench.modified.values.count == all)
        await eventually { bench.task.state == .completed }
        switch place {
        case .bodyProvider: #expect(bench.sent.values.last?.httpBody == Data("body".utf8))
        case .redirect: #expect(bench.sent.values.last?.url?.path == "/y")
        case .refresh: #expect(bench.sent.values.last?.value(forHTTPHeaderField: "Authorization") == "Bearer t2")
        default: break
        }
    }

    @Test(
        "Cancelling a suspended task ends it, and its deferred request is never sent",
        arguments: Place.allCases, Kind.allCases)
    func cancelled(place: Place, kind: Kind) async throws {
        let bench = try Bench(place, kind)
        try await bench.run(until: place)
        bench.task.cancel()
        bench.task.resume()
        #expect(await bench.handlers.wait() == [place == .reply ? "200" : "-999"])
        #expect(bench.sent.values.count == place.sentBefore)
        #expect(bench.modified.values.count == place.sentBefore)
    }

    @Test(
        "The deadline ends a suspended task, which sends nothing and runs its handlers at resume",
        arguments: Place.allCases, Kind.allCases)
    func deadline(place: Place, kind: Kind) async throws {
        let bench = try Bench(place, kind)
        try await bench.run(until: place)
        bench.clock.advance(by: .seconds(601))
        #expect(bench.task.result != nil)
        #expect(bench.task.state == .suspended)
        #expect(bench.handlers.values.isEmpty)
        bench.task.resume()
        #expect(await bench.handlers.wait() == [place == .reply ? "200" : "deadline"])
        #expect(bench.sent.values.count == place.sentBefore)
    }

    @Test("A request in flight completes while its task is suspended; handlers run and the state changes at resume")
    func inFlight() async throws {
        let handlers = Collected<Int>()
        let task = WebService.make(session).GET("/x").response { _, _ in handlers.add(1) }
        task.resume()
        task.suspend()
        #expect(task.state == .suspended)
        session.exchanges.values.first?.respond()
        #expect(task.state == .suspended)
        #expect(handlers.values.isEmpty)
        #expect(session.exchanges.values.first?.log == ["resume"])
        task.resume()
        #expect(await handlers.wait() == [1])
        await eventually { task.state == .completed }
    }

    @Test("Cancelling a suspended task after its outcome changes neither the outcome nor the state")
    func cancelAfterOutcome() async throws {
        let handlers = Collected<String>()
        let task = WebService.make(session).GET("/x").response { _, _ in handlers.add("response") }.responseError { _ in
            handlers.add("error")
        }
        task.resume()
        task.suspend()
        session.exchanges.values.first?.respond()
        await eventually { task.result != nil }
        task.cancel()
        #expect(task.state == .suspended)
        #expect(handlers.values.isEmpty)
        task.response { _, _ in handlers.add("late") }
        #expect(handlers.values.isEmpty)
        task.resume()
        #expect(await handlers.wait(for: 2) == ["response", "late"])
    }

    @Test("A deferred request deallocates its body when its task is cancelled")
    func freed() async throws {
        let freed = Collected<String>()
        do {
            let task = WebService.make(session).POST("/x").setBody(.watched { freed.add("freed") })
            task.intercepted(
                by: .closure { [weak task] request, next in
                    task?.suspend()
                    return try await next(request)
                })
            task.resume()
            await eventually { task.holdsRequests || !session.exchanges.values.isEmpty }
            task.cancel()
        }
        #expect(await freed.wait() == ["freed"])
        #expect(session.exchanges.values.isEmpty)
    }
}

extension Data {
    /// A mebibyte that reports its deallocation.
    static func watched(_ onFree: @escaping @Sendable () -> Void) -> Data {
        let count = 1 << 20
        let bytes = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 1, count: count)
        return Data(
            bytesNoCopy: bytes, count: count,
            deallocator: .custom { bytes, _ in
                bytes.deallocate()
                onFree()
            })
    }
}
