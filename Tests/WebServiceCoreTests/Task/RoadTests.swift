import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The path of a request when sessions, cancellations and owners behave badly.
@Suite("Path of a request", .permit)
struct RoadTests {
    // MARK: Cancellation at every point

    /// Counts the points of a path at which a test can cancel it, and cancels it at one of them.
    private final class Points: TaskExecutor {
        private struct State {
            var count = 0
            var task: Task<Void, Never>?
        }

        private let chosen: Int
        private let state = Mutex(State())

        init(cancelling chosen: Int) { self.chosen = chosen }

        var count: Int { state.withLock { $0.count } }

        func watch(_ task: Task<Void, Never>) { state.withLock { $0.task = task } }

        func pass() {
            let task = state.withLock { state in
                state.count += 1
                return state.count == chosen ? state.task : nil
            }
            task?.cancel()
        }

        /// Each job of the awaiting task is a point.
        func enqueue(_ job: consuming ExecutorJob) {
            pass()
            HandlerPool.shared.enqueue(job)
        }
    }

    enum Road: String, CaseIterable, Sendable {
        case plain, interceptor, retryAndRedirect, provider, stream, handlers
    }

    private static let redirect = URL(string: "https://h/a").flatMap {
        HTTPURLResponse(url: $0, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: ["Location": "/b"])
    }

    private func run(_ road: Road, _ points: Points) async -> Result<String, any Error> {
        let session = HandSession { exchange in
            points.pass()
            let path = (exchange.request as? EncodedRequest)?.url.suffix(2)
            switch path {
            case "/a": exchange.completion(Data(), Self.redirect, nil)
            case "/f": exchange.respond(status: 503)
            default: exchange.respond("beer")
            }
        }
        let service = WebService.make(session, timekeeper: nil)
        let wrapping: any Interceptor = .closure { request, next in
            points.pass()
            defer { points.pass() }
            return try await next(request)
        }
        switch road {
        case .plain:
            return await service.GET("/x").string().result
        case .interceptor:
            service.interceptors = [wrapping]
            return await service.GET("/x").string().result
        case .retryAndRedirect:
            let first = OnceFlag()
            service.interceptors = [
                .retry(baseDelay: .zero), wrapping,
                .closure { request, next in
                    var request = request
                    if first.set() { request.url = URL(string: "https://h/f") }
                    return try await next(request)
                },
            ]
            return await service.GET("/a").string().result
        case .provider:
            return await service.POST("/x").setBody {
                points.pass(); return Data("x".utf8)
            }.string().result
        case .stream:
            return await Result.catching {
                let body = try await service.GET("/x").stream().value.body
                points.pass()
                return String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
            }
        case .handlers:
            let task = service.GET("/x").string().map {
                points.pass(); return $0
            }
            .mapAsync { value in
                points.pass()
                await Task.yield()
                return value
            }
            return await task.result
        }
    }

    @Test(
        "A road that is cancelled at any of its points ends once, with its value or as cancelled",
        arguments: Road.allCases)
    func cancellation(road: Road) async {
        var (chosen, hasEnded) = (1, false)
        while !hasEnded, chosen < 100 {
            let points = Points(cancelling: chosen)
            let (results, isReady) = (Collected<String>(), Once<Bool>())
            let task = Task(executorPreference: points) {
                _ = await isReady.value
                let result = await run(road, points)
                let code = result.error.map { ($0 as? URLError)?.code == .cancelled ? "cancelled" : "\($0)" }
                results.add(code ?? (try? result.get()) ?? "")
            }
            points.watch(task)
            isReady.set(true)
            await task.value
            #expect(results.values.count == 1)
            #expect(["beer", "cancelled"].contains(results.values.first), "point \(chosen)")
            hasEnded = points.count < chosen
            chosen += 1
        }
        #expect(hasEnded)
    }

    // MARK: Sessions

    @Test("A session that completes from a hundred threads at once has one result", arguments: [false, true])
    func manyThreads(isAwaited: Bool) async throws {
        let session = HandSession()
        let task = WebService.make(session).GET("/x")
        let calls = Collected<String>()
        if !isAwaited { task.response { data, _ in calls.add(String(decoding: data ?? Data(), as: UTF8.self)) } }
        let value = task.string()
        let awaiting = Task { try await value.value }
        let exchange = await session.exchanges.wait()[0]
        DispatchQueue.concurrentPerform(iterations: 100) { exchange.respond("\($0)") }
        let result = try await awaiting.value
        #expect(Int(result).map { (0..<100).contains($0) } == true)
        #expect(try await value.value == result)
        if !isAwaited { #expect(calls.values == [result]) }
        #expect(task.timeline.events.filter { $0.kind == .attempt }.count == 1)
    }

    // MARK: Owners of a stream

    @Test(
        "A stream whose task, service and session are dropped in any order can be read, and ends when it is dropped",
        arguments: [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]], [false, true])
    func owners(order: [Int], isRead: Bool) async throws {
        var session: HandStreamingSession? = HandStreamingSession()
        var service: WebService? = session.map { WebService.make($0) }
        let exchanges = try #require(session).exchanges
        var task = service?.GET("/x").stream().resume()
        let exchange = await exchanges.wait()[0]
        try exchange.receive(status: 200)
        var body = try await task?.value.body
        weak let weakTask = task?.task
        for owner in order {
            switch owner {
            case 0: task = nil
            case 1: service = nil
            default: session = nil
            }
        }
        await eventually { weakTask == nil }
        #expect(weakTask == nil)
        _ = try exchange.receive("beer")
        var iterator = isRead ? body?.makeAsyncIterator() : nil
        if isRead { #expect(try await iterator?.next() == Data("beer".utf8)) }
        #expect(!exchange.log.contains("cancel"))
        (body, iterator) = (nil, nil)
        await eventually { exchange.log.contains("cancel") }
        #expect(exchange.log.contains("cancel"))
    }
}

extension Result {
    fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}
