import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite("Curl session: time", .permit)
struct CurlTimeTests {
    private let clock = TestClock()

    @Test("Silence ends a task after its idle timeout and not before")
    func idle() async throws {
        let server = try MockServer { _ in MockResponse("x", wire: .noResponse) }
        defer { server.stop() }
        let (service, error) = (try WebService(server, clock), Box<URLError.Code?>(nil))
        service.GET("/").setTimeout(.seconds(30)).data()
            .onCompletion { result in error.change { $0 = result.urlErrorCode } }.resume()
        await eventually("the request arrives") { server.receivedRequests.count == 1 }
        #expect(await clock.advance(by: .milliseconds(29_999)))
        #expect(error.value == nil)
        #expect(await clock.advance(by: .milliseconds(1)))
        #expect(error.value == .timedOut)
    }

    @Test("A slowly arriving response does not reach the idle timeout, and the deadline ends it")
    func drip() async throws {
        let gate = DispatchSemaphore(value: 0)
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                for _ in 0..<3 {
                    try body.write(Data("ale".utf8))
                    gate.wait()
                }
            }
        }
        defer {
            for _ in 0..<3 { gate.signal() }
            server.stop()
        }
        let session = try CurlSession(timekeeper: clock)
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = session
        let (error, received) = (Box<WebServiceError.Code?>(nil), Box<Int64>(0))
        service.GET("/").setTimeout(.seconds(300)).setDeadline(.seconds(600))
            .onProgress { progress in received.change { $0 = progress.bytesReceived } }.data()
            .onCompletion { result in error.change { $0 = result.code } }.resume()
        for count in 1...3 as ClosedRange<Int64> {
            await eventually("the bytes arrive") { received.value == 3 * count }
            // Otherwise, the loop could receive the next bytes while it still handles these, and they
            // would count as activity at this instant.
            await session.settle()
            #expect(error.value == nil)
            #expect(await clock.advance(by: .seconds(200)))
            gate.signal()
        }
        #expect(error.value == .deadline)
    }

    @Test("The idle timeout counts bytes, not lines of the head")
    func drippingHead() async throws {
        let pieces = ["HTTP/1.1 200 OK\r\nX-Li", "ne: a", "a", "a", "a\r\nContent-Length: 3\r\n\r\nale"]
        let (gate, sent) = (DispatchSemaphore(value: 0), Box(0))
        let peer = try BytePeer { connection in
            _ = connection.receive()
            for piece in pieces {
                connection.send(Array(piece.utf8))
                sent.change { $0 += 1 }
                gate.wait()
            }
            connection.awaitEnd()
        }
        let server = try MockServer.forTest { _ in MockResponse("x") }
        let keeper = ManualTimekeeper()
        var configuration = CurlSession.Configuration()
        (configuration.loops, configuration.proxy) = (1, .none)
        let session = try CurlSession(configuration: configuration, timekeeper: keeper)
        let service = WebService(server, session)
        let slow = service.GET("http://127.0.0.1:\(peer.port)/").setTimeout(.seconds(30)).string().resume()
        for number in 1...pieces.count {
            await eventually("the piece is sent") { sent.value == number }
            // The loop has received the piece when it has served other exchanges.
            for _ in 0..<5 { _ = try await service.GET("/").string().value }
            if number < pieces.count { keeper.advance(by: .seconds(20)) }
            gate.signal()
        }
        #expect(try await slow.value == "ale")
    }

    @Test("Exchanges whose responses arrive while the loop is blocked do not time out")
    func stalledLoop() async throws {
        let count = 100
        let gate = DispatchSemaphore(value: 0)
        let sent = Box(0)
        let server = try MockServer { request in
            if request.path == "/stall" { return MockResponse("stalled") }
            gate.wait()
            var response = MockResponse("ale")
            response.surplus = { _ in sent.change { $0 += 1 } }
            return response
        }
        defer { server.stop() }
        let keeper = ManualTimekeeper()
        var configuration = CurlSession.Configuration()
        configuration.maximumConnectionsPerHost = count + 1
        configuration.maximumIdleConnections = count + 1
        let session = try CurlSession(configuration: configuration, timekeeper: keeper)
        let service = WebService(server, session)
        let tasks = (0..<count).map { _ in service.GET("/").setTimeout(.seconds(30)).string().resume() }
        await eventually("all arrive") { server.receivedRequests.count == count }
        let stall = await withCheckedContinuation { continuation in
            session.responseTask(request: Request(.GET, url: server.baseURLString + "/stall"), progress: nil) {
                result, _ in
                // On the loop's thread: no bytes are handled for longer than the idle timeout,
                // while all responses arrive.
                for _ in 0..<count { gate.signal() }
                while sent.value < count { sched_yield() }
                keeper.advance(by: .seconds(31))
                continuation.resume(returning: result.map(\.data))
            }.resume()
        }
        #expect(try stall.get() == Data("stalled".utf8))
        var timedOut = 0
        for task in tasks where await task.result.urlErrorCode == .timedOut { timedOut += 1 }
        #expect(timedOut == 0)
        for task in tasks { #expect(await (try? task.value) == "ale") }
    }

    @Test("A server that does not read the request ends the task after the idle timeout")
    func stuckUpload() async throws {
        let listener = try FullListener(backlog: 5)
        let service = WebService(baseURLString: "http://127.0.0.1:\(listener.port)", clock: clock)
        service.session = try CurlSession(timekeeper: clock)
        let error = Box<URLError.Code?>(nil)
        service.POST("/").setBody(Data(count: 30_000_000)).setTimeout(.seconds(30)).setDeadline(.seconds(36_000))
            .data().onCompletion { result in error.change { $0 = result.urlErrorCode } }.resume()
        // The system's buffers take some bytes at first.
        while error.value == nil, clock.elapsed < .seconds(36_000) {
            await clock.advance(by: .seconds(1))
            await Task.yield()
        }
        #expect(error.value == .timedOut)
    }

    @Test("An idle timeout during the TLS handshake reports that nothing was sent")
    func idleHandshake() async throws {
        let listener = try FullListener(backlog: 5)
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        let service = WebService(baseURLString: "https://127.0.0.1:\(listener.port)", clock: clock)
        service.session = try CurlSession(configuration: configuration, timekeeper: clock)
        let error = Box<URLError?>(nil)
        service.POST("/").setTimeout(.seconds(30)).setDeadline(.seconds(36_000)).data()
            .onCompletion { result in error.change { $0 = result.error as? URLError } }.resume()
        while error.value == nil, clock.elapsed < .seconds(36_000) {
            await clock.advance(by: .seconds(1))
            await Task.yield()
        }
        #expect(error.value?.code == .timedOut)
        #expect(error.value?.requestWasNotSent == true)
    }

    @Test("A cancelled request that waits in the queue releases its body at once")
    func cancelledWhileWaiting() async throws {
        let server = try MockServer { _ in MockResponse("", wire: .noResponse) }
        defer { server.stop() }
        let session = try CurlSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.dataTask(request: Request(.GET, url: server.baseURLString)) { _, _, _ in }
        first.resume()
        await eventually("the first request arrives") { server.receivedRequests.count == 1 }
        let (freed, ended) = (Box(0), Box(0))
        var tasks: [any DataTask] = []
        for _ in 0..<200 {
            let memory = UnsafeMutableRawPointer.allocate(byteCount: 1 << 16, alignment: 1)
            var request = Request(.PUT, url: server.baseURLString)
            request.body = Data(
                bytesNoCopy: memory, count: 1 << 16,
                deallocator: .custom { pointer, _ in
                    pointer.deallocate()
                    freed.change { $0 += 1 }
                })
            tasks.append(
                session.dataTask(request: request) { _, _, error in if error != nil { ended.change { $0 += 1 } } })
        }
        for task in tasks { task.resume() }
        for task in tasks { task.cancel() }
        await eventually("all requests are cancelled") { ended.value == 200 }
        await eventually("their bodies are freed while the first request is in flight") { freed.value == 200 }
        #expect(first.state == .running)
        first.cancel()
        session.close(.cancelling)
    }
}
