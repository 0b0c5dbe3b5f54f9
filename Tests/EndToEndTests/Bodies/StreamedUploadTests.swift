#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl

@testable import WebServiceConformance
@testable import WebServiceMocking
@testable import WebServiceServer

/// Bodies of requests that `CurlSession` sends while they are produced.
@Suite("Streamed uploads", .permit)
struct StreamedUploadTests {
    private func service(_ server: MockServer) throws -> WebService {
        WebService(server.baseURLString, session: try CurlSession())
    }

    @Test(
        "The server receives each element before the next one is produced, and its response is received")
    func interleaved() async throws {
        let server = try MockServer.forTest()
        server.onHead(
            .POST, "/echo",
            MockResponse(statusCode: 200) { body in
                var room = [UInt8](repeating: 0, count: 1000)
                while case let count = body.receive(into: &room), count > 0 {
                    try body.write(Data(room[..<count]))
                    if Data(room[..<count]).suffix(5) == Data("0\r\n\r\n".utf8) { return }
                }
            })
        let chunks = Fed()
        let task = try service(server).POST("/echo").setBody(.stream(chunks)).stream()
        // Bytes that arrive with the head are not received by the handler.
        let echo = try await task.value
        chunks.send("one")
        var received = ""
        for try await chunk in echo.body {
            received += String(decoding: chunk, as: UTF8.self)
            if received == "3\r\none\r\n" { chunks.send("two") }
            if received.hasSuffix("two\r\n") { chunks.finish() }
        }
        #expect(received == "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
    }

    @Test(
        "The request body continues while the response is not read")
    func bothDirections() async throws {
        let server = try MockServer.forTest()
        let received = StreamTests.Count()
        server.onHead(
            .POST, "/",
            MockResponse(statusCode: 200) { body in
                try body.write(Data(count: 400_000))
                var room = [UInt8](repeating: 0, count: 1000)
                for _ in 1...20 where body.receive(into: &room) > 0 { received.add() }
                try body.write(Data(count: 400_000))
            })
        let chunks = Fed()
        let task = try service(server).POST("/").setBody(.stream(chunks, length: 1_000)).stream(bufferSize: 16 << 10)
        // Bytes that arrive with the head are not received by the handler.
        let log = try await task.value
        chunks.send("first")
        for number in 1...19 {
            await eventually("the server receives the bytes") { received.value >= number }
            chunks.send("element \(number)")
        }
        await eventually("the server receives all elements") { received.value == 20 }
        var count = 0
        for try await chunk in log.body { count += chunk.count }
        #expect(count == 800_000)
    }

    @Test("Bytes of a paused response are not delivered while the request body continues")
    func pausedResponse() async throws {
        let server = try MockServer.forTest()
        let received = StreamTests.Count()
        server.onHead(
            .POST, "/",
            MockResponse(statusCode: 200) { body in
                try body.write(Data(count: 150_000))
                var room = [UInt8](repeating: 0, count: 1000)
                while body.receive(into: &room) > 0 { received.add() }
            })
        let chunks = Fed()
        var request = Request(.POST, url: server.baseURLString)
        request.content = .stream(chunks, length: 1_000)
        let receiver = ScenarioReceiver(pauseAfter: 50_000)
        let task = try CurlSession().streamTask(request: try request.encode(), receiver: receiver)
        task.resume()
        defer { task.cancel() }
        chunks.send("first")
        await eventually("the receiver pauses") { receiver.isPaused }
        for _ in 1...3 {
            let count = received.value
            chunks.send("element")
            await eventually("the server receives the bytes") { received.value > count }
        }
        #expect(receiver.isPaused)
        #expect(receiver.pauseCount == 1)
    }

    @Test("The idle timeout does not run while the sequence is awaited")
    func slowProducer() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try CurlSession(timekeeper: clock)
        let chunks = Fed()
        let sent = Mutex<Int64>(0)
        let task = service.POST("/").setBody(.stream(chunks)).setTimeout(.seconds(30))
            .onProgress { progress in sent.withLock { $0 = progress.bytesSent } }.data().resume()
        var count: Int64 = 0
        for element in ["one", "more", "more"] {
            chunks.send(element)
            count += Int64(element.utf8.count)
            await eventually("the element is sent") { sent.withLock { $0 } == count }
            // After this response, the transfer waits for the next element.
            _ = try await service.GET("/").data().value
            await clock.advance(by: .seconds(100))
        }
        chunks.finish()
        _ = try await task.value
        #expect(server.receivedRequests.first { $0.method == .POST }?.body == Data("onemoremore".utf8))
    }

    @Test("A server that does not read stops the sequence after two elements, and the timeout runs")
    func stuckServer() async throws {
        let server = try MockServer.forTest()
        server.onHead(.POST, "/", MockResponse(statusCode: 200) { $0.pause(for: .seconds(60)) })
        let produced = StreamTests.Count()
        let sent = Mutex<Int64>(0)
        let task = try service(server).POST("/").setBody(
            .stream(length: nil) {
                AsyncStream {
                    produced.add()
                    return Data(count: 64 << 10)
                }
            }
        ).setTimeout(.seconds(2)).onProgress { progress in sent.withLock { $0 = progress.bytesSent } }.data()
        let error = await #expect(throws: URLError.self) { _ = try await task.value }
        #expect(error?.code == .timedOut)
        let read = sent.withLock { $0 }
        #expect(read > 0, "\(produced.value) elements, \(read) bytes")
        #expect(produced.value <= Int(read >> 16) + 4, "\(produced.value) elements, \(read) bytes")
    }

    @Test(
        "A response that arrives before the end of the sequence is delivered, and cancels it",
        arguments: [413, 401, 302, 200, 204], [true, false])
    func earlyResponse(status: Int, isReading: Bool) async throws {
        let server = try MockServer.forTest()
        server.onHead(.POST, "/", MockResponse(statusCode: status, text: status == 204 ? "" : "early"))
        let chunks = Fed()
        let body =
            isReading
            ? Request.Body.stream(length: nil) { AsyncStream { Data(count: 10_000) } } : .stream(chunks)
        switch try await service(server).POST("/").setBody(body).data().result {
        case .success(let data):
            #expect(status < 300)
            #expect(data == Data(status == 204 ? "".utf8 : "early".utf8))
        case .failure(let error):
            #expect(status >= 300, "\(error)")
            #expect((error as? WebServiceError)?.status == status, "\(error)")
        }
        if !isReading { await eventually("the sequence is cancelled") { chunks.isCancelled } }
        await eventually("the connection is closed") { server.openConnectionCount == 0 }
    }

    @Test("A status of 300 or more cancels the sequence before the response is complete")
    func rejection() async throws {
        let server = try MockServer.forTest()
        let gate = StreamTests.Gate()
        server.onHead(
            .POST, "/",
            MockResponse(statusCode: 413) { body in
                try body.write(Data("too".utf8))
                gate.wait()
                try body.write(Data(" long".utf8))
            })
        let chunks = Fed()
        let task = try service(server).POST("/").setBody(.stream(chunks)).setDeadline(.seconds(30)).data()
        let result = Task { await task.result }
        await eventually("the sequence is cancelled") { chunks.isCancelled }
        gate.open()
        let error = await #expect(throws: WebServiceError.self) { _ = try await result.value.get() }
        #expect(error?.status == 413)
        #expect(error?.body == Data("too long".utf8))
    }

    @Test("A complete response ends the sequence while the connection stays open")
    func completeResponse() async throws {
        let server = try MockServer.forTest()
        let gate = StreamTests.Gate()
        defer { gate.open() }
        var response = MockResponse(statusCode: 200) { body in
            try body.write(Data("early".utf8))
            gate.wait()
        }
        response.headers["Content-Length"] = "5"
        server.onHead(.POST, "/", response)
        let chunks = Fed()
        let task = try service(server).POST("/").setBody(.stream(chunks)).setDeadline(.seconds(30)).data()
        #expect(try await task.value == Data("early".utf8))
        await eventually("the sequence is cancelled") { chunks.isCancelled }
    }

    @Test("Sequences are sent one after another over one session")
    func successive() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let service = try service(server)
        for _ in 1...3 {
            _ = try await service.PUT("/").setBody(.stream(Chunks([10]))).data().value
        }
        #expect(server.receivedRequests.map(\.body) == Array(repeating: Chunks([10]).content, count: 3))
    }

    @Test("With an expectation, the body is sent after status 100", arguments: [10, 100_000, nil])
    func expectation(size: Int?) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let content = Chunks([size ?? 70_000])
        let body = size == nil ? Request.Body.stream(content) : .data(content.content)
        let task = try service(server).POST("/").setBody(body).configure { $0.options.expectsContinue = .seconds(60) }
        _ = try await task.data().value
        let request = try #require(server.receivedRequests.first)
        #expect(request.headers["Expect"] == "100-continue")
        #expect(request.body == content.content)
    }

    @Test(
        "After status 417, the request is sent again without the expectation",
        arguments: [10, 100_000, nil])
    func refusedExpectation(size: Int?) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, text: "done") }
        server.onHead(.POST, "/", MockResponse(statusCode: 417))
        let content = Chunks([size ?? 70_000])
        let body = size == nil ? Request.Body.stream(content) : .data(content.content)
        let task = try service(server).POST("/").setBody(body).configure { $0.options.expectsContinue = .seconds(60) }
        #expect(try await task.data().value == Data("done".utf8))
        #expect(server.connectionCount == 2)
        #expect(server.receivedRequests.map(\.body) == [content.content])
        #expect(server.receivedRequests.first?.headers["Expect"] == nil)
    }

    @Test(
        "A final response instead of status 100 ends the request without its body",
        arguments: [true, false])
    func refusedBody(isStream: Bool) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        server.onHead(.POST, "/", MockResponse(statusCode: 403, text: "no"))
        let chunks = Fed()
        let body = isStream ? Request.Body.stream(chunks) : .data(Data(count: 100_000))
        let task = try service(server).POST("/").setBody(body).configure { $0.options.expectsContinue = .seconds(60) }
        let error = await #expect(throws: WebServiceError.self) { _ = try await task.data().value }
        #expect(error?.status == 403)
        #expect(error?.body == Data("no".utf8))
        #expect(chunks.readCount == 0)
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("The progress grows up to the length, for each attempt", arguments: [true, false])
    func progress(isFile: Bool) async throws {
        let server = try MockServer.forTest()
        server.on(.PUT, "/", [MockResponse(statusCode: 503), MockResponse(statusCode: 200)])
        let file = try UploadFile(size: 400_000)
        let chunks = Chunks([100_000, 300_000])
        let values = Mutex<[TransferProgress]>([])
        let service = try service(server)
        service.interceptors = [.retry(baseDelay: .milliseconds(1))]
        let body = isFile ? Request.Body.file(file.url) : .stream(length: 400_000) { chunks }
        _ = try await service.PUT("/").setBody(body).onProgress { value in values.withLock { $0.append(value) } }
            .data().value
        let sent = values.withLock { $0 }
        #expect(sent.last?.bytesSent == 400_000)
        #expect(sent.allSatisfy { $0.bytesSent <= 400_000 })
        #expect(sent.allSatisfy { $0.bytesToSend == 400_000 })
        #expect(zip(sent, sent.dropFirst()).count { $1.bytesSent < $0.bytesSent } <= 1)
    }

    @Test(
        "A response that ends while the sequence is awaited is complete or lost, with each framing",
        arguments: ["chunked", "until close", "cut", "cut length", "cut head"], [nil, 1_000])
    func endedResponse(framing: String, length: Int64?) async throws {
        let server = try MockServer.forTest()
        var response = MockResponse(statusCode: 200, data: Data("response".utf8))
        switch framing {
        case "chunked": response.wire = .chunked(size: 3)
        case "until close": response.wire = .untilClose
        case "cut": response.wire = .raw(Data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nresp".utf8))
        case "cut length": response.wire = .raw(Data("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nresp".utf8))
        default: response.wire = .raw(Data("HTTP/1.1 200 O".utf8))
        }
        server.onHead(.POST, "/", response)
        let chunks = Fed()
        chunks.send("first")
        let task = try service(server).POST("/").setBody(.stream(chunks, length: length)).setTimeout(.seconds(60))
        switch await task.data().result {
        case .success(let data):
            #expect(data == Data("response".utf8))
            #expect(!framing.hasPrefix("cut"))
        case .failure(let error):
            #expect((error as? URLError)?.code == .networkConnectionLost, "\(error)")
            #expect(framing.hasPrefix("cut"), "\(error)")
        }
        // The response can end before the sequence is iterated, and between two elements.
        await eventually("the sequence is no longer awaited, and the connection is closed") {
            !chunks.isAwaited && server.openConnectionCount == 0
        }
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("A sequence is sent once over a new connection if the server has closed the last one")
    func closedConnection() async throws {
        let server = try MockServer.forTest()
        var response = MockResponse(statusCode: 200)
        response.wire = .cut(after: .max)
        server.on(.GET, "/", response)
        server.on(.POST, "/", MockResponse(statusCode: 200, text: "done"))
        let service = try service(server)
        for _ in 1...10 {
            _ = try await service.GET("/").data().value
            await eventually("the server closes the connection") { server.openConnectionCount == 0 }
            let chunks = Chunks([10, 20])
            #expect(try await service.POST("/").setBody(.stream(chunks)).data().value == Data("done".utf8))
        }
        #expect(
            server.receivedRequests.filter { $0.method == .POST }.map(\.body.count) == Array(repeating: 30, count: 10))
    }

    @Test(
        "A server that closes the connection while the sequence is awaited ends the request")
    func closedByServer() async throws {
        let server = try MockServer.forTest()
        var response = MockResponse(statusCode: 200)
        response.wire = .raw(Data())
        server.onHead(.POST, "/", response)
        let chunks = Fed()
        let task = try service(server).POST("/").setBody(.stream(chunks)).setTimeout(.seconds(60)).data()
        let error = await #expect(throws: URLError.self) { _ = try await task.value }
        #expect(error?.code == .networkConnectionLost)
        await eventually("the sequence is cancelled") { chunks.isCancelled }
    }
}

extension MockResponse.BodyWriter {
    /// Receives bytes from the client; returns 0 at the end.
    fileprivate func receive(into bytes: inout [UInt8]) -> Int {
        (output as? SocketOutput)?.socket.receive(into: &bytes) ?? 0
    }
}
#endif
