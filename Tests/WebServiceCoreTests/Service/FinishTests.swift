import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

@Suite("Finishing a service", .permit)
struct FinishTests {
    private let clock = TestClock()
    private let mock: MockService
    private var service: WebService { mock.service }

    init() {
        mock = MockService(clock: clock)
        mock.on(.GET, "/a", MockResponse(statusCode: 204).after(.seconds(10)))
    }

    /// Starts to finish the service, and returns when it refuses tasks.
    private func finish(within limit: Duration = .seconds(60)) async -> Task<Bool, Never> {
        let task = Task(executorPreference: clock.executor) { [service] in await service.finish(within: limit) }
        await eventually { (try? service.core.checkAccepts()) == nil }
        return task
    }

    private func get(_ path: String = "/a") -> Task<Void, any Error> {
        let task = service.GET(path).empty()
        task.resume()
        return Task(executorPreference: clock.executor) { try await task.value }
    }

    @Test("Without work, it ends at once")
    func idle() async {
        #expect(await service.finish(within: .zero + .seconds(1)))
    }

    @Test("An exchange in flight ends, and a task that is resumed afterwards is refused")
    func inFlight() async throws {
        let task = get()
        let finishing = await finish()
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/a").empty().value }
        #expect(error?.code == .serviceInvalidated)
        await clock.advance(by: .seconds(10))
        try await task.value
        #expect(await finishing.value)
        #expect(mock.receivedRequests.count == 1)
    }

    @Test("At the limit, what is in flight is cancelled")
    func limit() async throws {
        let task = get()
        let finishing = await finish(within: .seconds(5))
        await clock.advance(by: .seconds(5))
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        #expect(await finishing.value == false)
    }

    @Test("A retry that waits is sent")
    func retry() async throws {
        mock.on(.GET, "/b", [.status(503), .status(204)])
        service.interceptors = [.retry()]
        let task = get("/b")
        await eventually { mock.receivedRequests.count == 1 }
        let finishing = await finish()
        await clock.advance(by: .seconds(30))
        try await task.value
        #expect(await finishing.value)
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("A refresh over the same service is sent, and the exchange that waits for it ends")
    func refresh() async throws {
        mock.on(.POST, "/token", .json(["token": "b"]))
        mock.on(.GET, "/me", MockResponse(statusCode: 401).after(.seconds(10)))
        mock.on(.path("/me") && .header("Authorization", "Bearer b"), .status(204))
        service.interceptors = [
            Authentication(
                TokenSource({ .bearer("a") }) { [service] _ in
                    .bearer(try await service.POST("/token").json().value["token"]?.string ?? "")
                })
        ]
        let task = get("/me")
        await eventually { mock.receivedRequests.count == 1 }
        let finishing = await finish()
        await clock.advance(by: .seconds(10))
        try await task.value
        #expect(await finishing.value)
    }

    @Test("Handlers that run are waited for", arguments: [false, true])
    func handlers(_ beginBefore: Bool) async throws {
        mock.on(.GET, "/b", .status(204))
        let (began, turn) = (Collected<Int>(), DispatchSemaphore(value: 0))
        let hasEnded = Mutex(false)
        service.GET(beginBefore ? "/b" : "/a")
            .response { _, _ in
                began.add(0)
                turn.wait()
                hasEnded.withLock { $0 = true }
            }
            .resume()
        if beginBefore { await began.wait() }
        let finishing = await finish()
        if !beginBefore {
            let advance = Task { [clock] in await clock.advance(by: .seconds(10)) }
            await began.wait()
            turn.signal()
            _ = await advance.value
        } else {
            turn.signal()
        }
        #expect(await finishing.value)
        #expect(hasEnded.withLock { $0 })
    }

    @Test("A suspended task's handlers are not waited for")
    func suspended() async throws {
        mock.on(.GET, "/b", .status(204))
        let began = Collected<Int>()
        let task = service.GET("/b")
        task.response { [task] _, _ in
            task.suspend()
            began.add(0)
        }
        task.response { _, _ in Issue.record("a handler of a suspended task runs") }
        task.resume()
        await began.wait()
        #expect(await finish().value)
    }

    @Test("Cancelling the Swift task cancels what is in flight")
    func cancelled() async throws {
        let task = get()
        let finishing = await finish()
        finishing.cancel()
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        #expect(await finishing.value == false)
    }

    @Test("A clone is not affected, and concurrent calls all wait")
    func clone() async throws {
        mock.on(.GET, "/b", .status(204))
        let clone = service.clone()
        let task = get()
        let (first, second) = (await finish(), await finish())
        try await clone.GET("/b").empty().value
        await clock.advance(by: .seconds(10))
        try await task.value
        #expect(await first.value)
        #expect(await second.value)
    }

    @Test("A stream is in flight until its reader has received the end")
    func stream() async throws {
        let (chunks, writer) = AsyncStream<Data>.makeStream()
        mock.on(.GET, "/stream", MockResponse(statusCode: 200, chunks: chunks))
        let lines = Task { [service] in try await service.GET("/stream").lines().reduce(0) { count, _ in count + 1 } }
        await eventually { service.exchanges.first?.kind == .stream }
        let finishing = await finish()
        writer.yield(Data("a\nb\n".utf8))
        #expect(service.exchanges.count == 1)
        writer.finish()
        #expect(try await lines.value == 2)
        #expect(await finishing.value)
    }

    @Test("Over a real connection, all responses in flight arrive", arguments: [1, 40])
    func server(_ count: Int) async throws {
        let (arrived, turn) = (Collected<Int>(), Collected<Int>())
        let server = try MockServer.forTest()
        server.on(.GET, "/slow") { _ in
            arrived.add(0)
            await turn.wait()
            return .text("done")
        }
        let service = WebService(baseURLString: server.baseURLString)
        let tasks = (0..<count).map { _ in service.GET("/slow").string().resume() }
        await arrived.wait(for: 1)
        let finishing = Task { await service.finish(within: .seconds(60)) }
        await eventually { (try? service.core.checkAccepts()) == nil }
        turn.add(0)
        for task in tasks { #expect(try await task.value == "done") }
        #expect(await finishing.value)
    }
}
