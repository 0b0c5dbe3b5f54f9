import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceTransfers

@testable import WebServiceCurl
@testable import WebServiceMocking
@testable import WebServiceServer

@Suite("Curl session: closing", .exclusive)
struct CurlClosingTests {
    @Test("Closing finishes running requests, refuses new ones, and can be repeated")
    func finishing() async throws {
        let gate = DispatchSemaphore(value: 0)
        // A request whose deadline has passed may be sent before the loop cancels it.
        let server = try MockServer { request in
            if request.path == "/" { gate.wait() }
            return MockResponse("late")
        }
        defer {
            for _ in 0..<4 { gate.signal() }  // `stop()` waits for the threads of the connections
            server.stop()
        }
        let session = try CurlSession { $0.maximumConnectionsPerHost = 2 }
        let service = WebService(server, session)
        let tasks = (0..<4).map { _ in service.GET("/").string().resume() }
        await eventually("two requests arrive, and two wait") { server.receivedRequests.count == 2 }
        async let closed: Void = blocking { session.close() }
        var refused: WebServiceError.Code?
        for _ in 0..<10_000 where refused == nil {
            // A request sent before the session is closed waits in the queue until its deadline.
            let code = await service.GET("/refused").setDeadline(.milliseconds(20)).data().result.code
            if code == .sessionClosed { refused = code }
        }
        #expect(refused == .sessionClosed)
        for _ in 0..<4 { gate.signal() }
        try await closed
        for task in tasks { #expect(try await task.value == "late") }
        session.close()
        session.close(.cancelling)
        #expect(await service.GET("/").data().result.code == .sessionClosed)
        #expect(server.receivedRequests.filter { $0.path == "/" }.count == 4)
    }

    @Test("Closing cancels running and waiting requests, and leaves no thread and no descriptor")
    func cancelling() async throws {
        let server = try MockServer { _ in MockResponse("", wire: .noResponse) }
        do {
            let (descriptors, threads) = (Resources.descriptors, Resources.threads)
            let session = try CurlSession { $0.maximumConnectionsPerHost = 3 }
            let service = WebService(server, session)
            let tasks = (0..<20).map { _ in service.GET("/").data().resume() }
            await eventually("three requests arrive") { server.receivedRequests.count == 3 }
            session.close(.cancelling)
            for task in tasks { #expect(await task.result.urlErrorCode == .cancelled) }
            server.stop()
            await eventually("threads and descriptors are released") {
                Resources.descriptors <= descriptors + 2 && Resources.threads <= threads + 4
            }
        }
    }

    @Test(
        "Closing waits at most the idle timeout for the program that reads a response or produces a body",
        arguments: [true, false])
    func waiting(isUpload: Bool) async throws {
        let server = try MockServer { _ in MockResponse(Data(count: 4_000_000)) }
        defer { server.stop() }
        let clock = TestClock()
        let session = try CurlSession(timekeeper: clock)
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = session
        let (chunks, source) = AsyncStream.makeStream(of: Data.self)
        source.yield(Data(count: 10))
        let sent = Box<Int64>(0)
        let unread = isUpload ? nil : try await service.GET("/").setTimeout(.seconds(30)).stream().value
        let upload =
            isUpload
            ? service.POST("/").setBody(.stream(length: nil) { chunks }).setTimeout(.seconds(30))
                .onProgress { progress in sent.change { $0 = progress.bytesSent } }.data().resume() : nil
        // The transfer of bytes at a later instant would extend the wait.
        if isUpload { await eventually("the first bytes are sent") { sent.value == 10 } }
        await eventually("the exchange waits for the program") {
            session.nextLoop().turn.inspect { engine in
                engine?.busy.contains { isUpload ? $0.attempt.isAwaitingBody : $0.attempt.isPaused } == true
            }
        }
        let isClosed = Box(false)
        DispatchQueue.global().async {
            session.close()
            isClosed.change { $0 = true }
        }
        var refused: WebServiceError.Code?
        for _ in 0..<10_000 where refused != .sessionClosed {
            refused = await WebService(server, session).GET("/").setDeadline(.milliseconds(20)).data().result.code
        }
        await clock.advance(by: .milliseconds(29_999))
        #expect(!isClosed.value)
        await clock.advance(by: .milliseconds(1))
        await eventually("the session is closed") { isClosed.value }
        if let upload { #expect(await upload.result.urlErrorCode == .cancelled) }
        if let unread {
            let error = await #expect(throws: (any Error).self) { for try await _ in unread.body {} }
            #expect((error as? URLError)?.code == .cancelled)
        }
        source.finish()
    }

    /// What waits for its next request when the session is closed.
    enum Pause: String, CaseIterable, Sendable { case events, retry, download }

    @Test(
        "What waits for its next request ends as cancelled when the session is closed with .cancelling",
        arguments: Pause.allCases)
    func pause(_ pause: Pause) async throws {
        let server = try MockServer.forTest { request in
            var response = MockResponse("ale")
            switch request.path {
            case "/events": response = .events([ServerSentEvent(data: "1")])
            case "/retry": response = MockResponse(statusCode: 503)
            case "/download":
                response = MockResponse(Data(count: 1_000), wire: .cut(after: 500))
                response.headers[.eTag] = "\"1\""
            default: break
            }
            return response
        }
        let clock = TestClock()
        let session = try CurlSession(timekeeper: clock)
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = session
        let recorder = EventRecorder()
        service.observers = [recorder]
        let file = TemporaryFolder.forTest().url.appendingPathComponent("file")
        let task = Task(executorPreference: clock.executor) {
            let request = service.GET("/\(pause.rawValue)")
            switch pause {
            case .events: for try await _ in request.events(.reconnecting()) {}
            case .retry: _ = try await request.intercepted(by: .retry()).data().value
            case .download: _ = try await request.intercepted(by: .retry()).download(to: file).value
            }
        }
        await eventually("the response was handled") {
            pause == .events
                ? service.exchanges.first?.kind == .reconnection
                : recorder.lines().contains { $0.hasPrefix("\(Timeline.Kind.retry): ") }
        }
        await clock.advance(by: .zero)
        session.close(.cancelling)
        await clock.advance(by: .seconds(60))
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        #expect(server.receivedRequests.count == 1)
    }

    @Test("An exchange that waits for its retry ends with its response when the session is closed")
    func retry() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 503) }
        let clock = TestClock()
        let session = try CurlSession(timekeeper: clock)
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = session
        let task = service.GET("/").intercepted(by: .retry()).data().validateNothing().resume()
        await eventually("the task waits") { task.timeline.events.contains { $0.kind == .retry } }
        await clock.advance(by: .zero)
        session.close()
        await clock.advance(by: .seconds(60))
        #expect(try await task.response.status == 503)
        #expect(server.receivedRequests.count == 1)
    }

    @Test("Closing waits for a response that is being read")
    func reading() async throws {
        let server = try MockServer.forTest { _ in MockResponse(Data(count: 4_000_000)) }
        let session = try CurlSession()
        let response = try await WebService(server, session).GET("/").setTimeout(.seconds(60)).stream().value
        async let closed: Void = blocking { session.close() }
        var refused: WebServiceError.Code?
        for _ in 0..<10_000 where refused == nil {
            refused = await WebService(server, session).GET("/").setDeadline(.milliseconds(20)).data().result.code
            if refused != .sessionClosed { refused = nil }
        }
        var count = 0
        for try await piece in response.body { count += piece.count }
        #expect(count == 4_000_000)
        try await closed
    }

    @Test("A session without references is deallocated after its last task, and its threads end")
    func letGo() async throws {
        let server = try MockServer.forTest { _ in MockResponse("x") }
        weak var released: CurlSession?
        for _ in 0..<50 {
            let session = try CurlSession { $0.loops = 2 }
            released = session
            let ended = Box(false)
            session.dataTask(request: Request(.GET, url: server.baseURLString)) { data, _, _ in
                ended.change { $0 = data != nil }
            }.resume()
            await eventually("the response arrives") { ended.value }
        }
        await eventually("the session is deallocated") { released == nil }
        await eventually("no thread remains") { Resources.threads < 60 }
    }

    /// An interceptor that waits before it sends the request.
    private struct Waiting: Interceptor {
        let hasArrived = Box(false)
        let gate = Once<Bool>()

        func intercept(_ request: Request, next: Next) async throws -> Response {
            hasArrived.change { $0 = true }
            _ = await gate.value
            return try await next(request)
        }
    }

    @Test(
        "A task that prepares its request when the session cancels its requests is cancelled, and a later one refused",
        arguments: ["data", "stream", "download"])
    func cancellingBeforeSending(kind: String) async throws {
        let server = try MockServer.forTest { _ in MockResponse("x") }
        let session = try CurlSession()
        let service = WebService(server, session)
        let waiting = Waiting()
        service.interceptors = [waiting]
        let file = TemporaryFolder.forTest().url.appendingPathComponent("closing")
        let run: @Sendable () async -> Result<Void, any Error> = {
            switch kind {
            case "data": await service.GET("/").data().result.map { _ in }
            case "stream": await service.GET("/").stream().result.map { _ in }
            default: await service.GET("/").download(to: file).result.map { _ in }
            }
        }
        let running = Task { await run() }
        await eventually("the interceptor waits") { waiting.hasArrived.value }
        session.close(.cancelling)
        waiting.gate.set(true)
        #expect(await running.value.urlErrorCode == .cancelled)
        #expect(await run().code == .sessionClosed)
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("A session that finishes its requests refuses a request that was being prepared")
    func finishingBeforeSending() async throws {
        let server = try MockServer.forTest { _ in MockResponse("x") }
        let session = try CurlSession()
        let service = WebService(server, session)
        let waiting = Waiting()
        service.interceptors = [waiting]
        let task = service.GET("/").data().resume()
        await eventually("the interceptor waits") { waiting.hasArrived.value }
        session.close(.finishing)
        waiting.gate.set(true)
        #expect(await task.result.code == .sessionClosed)
    }

    @Test("A completion may close the session, and may hold the last reference to it")
    func closingInside() async throws {
        let server = try MockServer.forTest { _ in MockResponse("x") }
        for number in 0..<40 {
            let done = Box(false)
            do {
                let session = try CurlSession()
                session.responseTask(request: Request(.GET, url: server.baseURLString), progress: nil) { _, _ in
                    if number.isMultiple(of: 2) { session.close(.cancelling) }
                    done.change { $0 = true }
                }.resume()
            }
            await eventually("the request completes") { done.value }
        }
    }
}
