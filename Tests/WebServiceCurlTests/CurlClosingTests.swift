import Foundation
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Curl session: closing", .serialized, .timeLimit(.minutes(10)))
struct CurlClosingTests {
    @Test("Closing finishes running requests, refuses new ones, and can be repeated", .covers("C-35"))
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
        async let closed: Void = withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                session.close()
                continuation.resume()
            }
        }
        var refused: WebServiceError.Code?
        for _ in 0..<10_000 where refused == nil {
            // A request sent before the session is closed waits in the queue until its deadline.
            let code = await service.GET("/refused").setDeadline(.milliseconds(20)).data().result.code
            if code == .sessionClosed { refused = code }
        }
        #expect(refused == .sessionClosed)
        for _ in 0..<4 { gate.signal() }
        await closed
        for task in tasks { #expect(try await task.value == "late") }
        session.close()
        session.close(.cancelling)
        #expect(await service.GET("/").data().result.code == .sessionClosed)
        #expect(server.receivedRequests.filter { $0.path == "/" }.count == 4)
    }

    @Test("Closing cancels running and waiting requests, and leaves no thread and no descriptor", .covers("C-35"))
    func cancelling() async throws {
        let server = try MockServer { _ in MockResponse("", wire: .noAnswer) }
        do {
            let (descriptors, threads) = (Resources.descriptors, Resources.threads)
            let session = try CurlSession { $0.maximumConnectionsPerHost = 3 }
            let service = WebService(server, session)
            let tasks = (0..<20).map { _ in service.GET("/").data().resume() }
            await eventually("three requests arrive") { server.receivedRequests.count == 3 }
            session.close(.cancelling)
            for task in tasks { #expect(await task.result.urlErrorCode == .cancelled) }
            server.stop()
            guard isAlone else { return }
            await eventually("threads and descriptors are released") {
                Resources.descriptors <= descriptors + 2 && Resources.threads <= threads + 4
            }
        }
    }

    @Test("A session without references is deallocated after its last task, and its threads end")
    func letGo() async throws {
        let server = try MockServer { _ in MockResponse("x") }
        defer { server.stop() }
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
        if isAlone { await eventually("no thread remains") { Resources.threads < 60 } }
    }

    @Test("A completion may close the session, and may hold the last reference to it", .covers("H-28"))
    func closingInside() async throws {
        let server = try MockServer { _ in MockResponse("x") }
        defer { server.stop() }
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

    // Other tests may hold locks that the child would wait for.
    @Test(
        "In a forked child, requests are refused, and the exit does not wait",
        .enabled(if: isAlone))
    func fork() throws {
        let server = try MockServer { _ in MockResponse("x") }
        defer { server.stop() }
        let session = try CurlSession()
        typealias ForkCall = @convention(c) () -> Int32
        let call = unsafeBitCast(try #require(dlsym(nil, "fork")), to: ForkCall.self)
        let child = call()
        if child == 0 {
            let refused = Box(false)
            session.responseTask(request: Request(.GET, url: server.baseURLString), progress: nil) { result, _ in
                refused.change { $0 = result.code == .sessionClosed }
            }.resume()
            session.close()
            _exit(refused.value ? 0 : 1)
        }
        var status: Int32 = -1
        #expect(waitpid(child, &status, 0) == child)
        #expect(status == 0)
    }
}
