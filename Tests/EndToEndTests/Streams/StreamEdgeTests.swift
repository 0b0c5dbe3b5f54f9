#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCurl

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

/// Streams that are slow, silent, damaged, paused, numerous or cancelled.
@Suite("Streams over CurlSession in unusual conditions", .permit)
struct StreamEdgeTests {

    private func service(_ server: MockServer) throws -> WebService {
        WebService(server.baseURLString, session: try CurlSession())
    }

    /// Returns when the loop of a session has handled what has happened before.
    private func roundTrip(_ session: any Session) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        for _ in 0..<2 { _ = try await WebService(server.baseURLString, session: session).GET("/").data().value }
    }

    /// Reads a body to its end.
    ///
    /// - Returns: The bytes before the end or the error, and the code of the error.
    private func read(_ body: ResponseBody) async -> (data: Data, code: URLError.Code?) {
        var data = Data()
        do { for try await chunk in body { data += chunk } } catch { return (data, (error as? URLError)?.code) }
        return (data, nil)
    }

    @Test("The idle timeout does not run while the reader pauses")
    func slowReader() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, data: Data(count: 8 << 20)) }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try CurlSession(timekeeper: clock)
        let body = try await service.GET("/").setTimeout(.seconds(30)).stream(bufferSize: 10_000).value.body
        try await roundTrip(service.session)
        await clock.advance(by: .seconds(100))
        #expect(await read(body) == (Data(count: 8 << 20), nil))
    }

    @Test("A server that is silent for the idle timeout ends a stream, after the bytes before")
    func silence() async throws {
        let server = try MockServer.forTest { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data("before".utf8))
                body.pause(for: .seconds(60))
            }
        }
        defer { server.stop() }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try CurlSession(timekeeper: clock)
        var chunks = try await service.GET("/").setTimeout(.seconds(30)).stream().value.body.makeAsyncIterator()
        #expect(try await chunks.next() == Data("before".utf8))
        await clock.advance(by: .seconds(30))
        let error = await #expect(throws: URLError.self) { try await chunks.next() }
        #expect(error?.code == .timedOut)
    }

    @Test("A task can be cancelled before its head, between the head and the body, and after the end")
    func cancelling() async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/silent") { _ in
            var response = MockResponse(statusCode: 200)
            response.wire = .noResponse
            return response
        }
        server.on(.GET, "/") { _ in MockResponse(statusCode: 200) { try $0.write(Data("ale".utf8)) } }
        server.on(.GET, "/open") { _ in MockResponse(statusCode: 200) { $0.pause(for: .seconds(60)) } }
        let service = try service(server)
        let silent = service.GET("/silent").stream()
        let result = Task { await silent.result }
        await eventually("the request arrives") { server.receivedRequests.count == 1 }
        silent.cancel()
        guard case .failure(let error as URLError) = await result.value else {
            return #expect(Bool(false), "the task did not fail")
        }
        #expect(error.code == .cancelled)
        let task = service.GET("/open").stream()
        let body = try await task.value.body
        task.cancel()
        #expect(await read(body).code == .cancelled)
        let whole = service.GET("/").stream()
        let log = try await whole.value
        #expect(try await log.body.collect(upTo: 3) == Data("ale".utf8))
        whole.cancel()
        #expect(log.body.trailers == [:])
    }

    @Test("A reset within the body is an error, and never a complete body")
    func reset() async throws {
        var response = MockResponse(statusCode: 200, data: Data(count: 100_000))
        response.wire = .reset(after: 60_000)
        let server = try MockServer.forTest { [response] _ in response }
        let service = try service(server)
        for _ in 1...10 {
            // The reset may arrive before the head is read.
            guard case .success(let log) = await service.GET("/").stream().result else { continue }
            let (data, code) = await read(log.body)
            #expect(code == .networkConnectionLost)
            #expect(data.count < 60_000)
        }
    }

    @Test("The lines of a compressed stream are delivered when the server flushes them")
    func flushes() async throws {
        let gate = StreamTests.Gate()
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200) { body in
                let encoder = try GzipEncoder()
                for number in 1...3 {
                    gate.wait()
                    try body.write(encoder.encode(Data("data: \(number)\n\n".utf8)))
                }
                try body.write(encoder.finish())
            }
            response.headers["Content-Encoding"] = "gzip"
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        let service = try service(server)
        var lines: [String] = []
        gate.open()
        for try await line in service.GET("/").lines() where !line.isEmpty {
            lines.append(line)
            gate.open()
        }
        #expect(lines == ["data: 1", "data: 2", "data: 3"])
        var events: [String] = []
        // The last pass through the loop opened the gate once more.
        for try await event in service.GET("/").events() {
            events.append(event.data)
            gate.open()
        }
        #expect(events == ["1", "2", "3"])
    }

    @Test(
        "A compressed stream that is cut, damaged or followed by garbage is an error after its bytes",
        arguments: ["cut", "checksum", "garbage"])
    func damage(kind: String) async throws {
        let plain = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
        var encoded = try GzipEncoder().finish(with: plain)
        switch kind {
        case "cut": encoded = encoded.dropLast(8)
        case "checksum": encoded[encoded.count - 6] ^= 1
        default: encoded += Data("garbage".utf8)
        }
        let server = try MockServer.forTest { [encoded] _ in
            var response = MockResponse(statusCode: 200, data: encoded)
            response.headers["Content-Encoding"] = "gzip"
            return response
        }
        let (data, code) = try await read(service(server).GET("/").stream().value.body)
        let isPrefix = data == plain.prefix(data.count)
        #expect(isPrefix, "\(data.count)")
        #expect(data.count >= 64 << 10, "\(data.count)")
        #expect(code == .cannotDecodeContentData, "\(data.count)")
    }

    @Test("Trailer fields are available after the end of the body, and not before")
    func trailers() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200) { try $0.write(Data("ale".utf8)) }
            response.trailers["Repr-Digest"] = "sha-256=:x:"
            return response
        }
        let body = try await service(server).GET("/").stream().value.body
        #expect(body.trailers == nil)
        #expect(await read(body) == (Data("ale".utf8), nil))
        #expect(body.trailers == ["Repr-Digest": "sha-256=:x:"])
    }

    @Test("Interim responses precede the head of a stream")
    func interim() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200) { try $0.write(Data("ale".utf8)) }
            response.interim = [100, 103, 104]
            return response
        }
        let log = try await service(server).GET("/").stream().value
        #expect(log.status == 200)
        #expect(await read(log.body) == (Data("ale".utf8), nil))
    }

    @Test("Observers receive the interim heads of a response, with their fields")
    func observedInterim() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200)
            let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
            response.wire = .raw(Data("\(interim)HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale".utf8))
            return response
        }
        let recorder = EventRecorder()
        let service = try service(server)
        service.observers = [recorder]
        #expect(try await service.GET("/").data().value == Data("ale".utf8))
        let lines = await recorder.ended()
        let heads = lines.filter { $0.hasPrefix("interim") || $0.hasPrefix("head") }
        #expect(heads == ["interim 102", "interim 103", "head 200"])
        let links = recorder.events.values.compactMap { event -> String? in
            if case .interimHeadReceived(let head) = event.kind { head.headers["Link"] } else { nil }
        }
        #expect(links == ["</style.css>"])
    }

    @Test("Open streams do not delay other requests to the same host")
    func manyStreams() async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/stream") { _ in MockResponse(statusCode: 200) { $0.pause(for: .seconds(300)) } }
        server.on(.GET, "/short", MockResponse(statusCode: 200, data: Data("ale".utf8)))
        let service = try service(server)
        var streams: [StreamedResponse] = []
        for _ in 1...(isSoak ? 500 : 150) { streams.append(try await service.GET("/stream").stream().value) }
        let tasks = (1...100).map { _ in service.GET("/short").setTimeout(.seconds(60)).data() }
        for task in tasks { task.resume() }
        for task in tasks { #expect(try await task.value == Data("ale".utf8)) }
        #expect(streams.allSatisfy { $0.body.trailers == nil })
    }

    @Test("Closing the session ends every reader, and dropping the service ends none")
    func closing() async throws {
        let gate = StreamTests.Gate()
        let server = try MockServer.forTest { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data("first".utf8))
                gate.wait()
                try body.write(Data("last".utf8))
            }
        }
        func open() async throws -> ResponseBody { try await service(server).GET("/").stream().value.body }
        let body = try await open()
        gate.open()
        #expect(await read(body) == (Data("firstlast".utf8), nil))
        let session = try CurlSession()
        let other = WebService(server.baseURLString, session: session)
        var readers: [Task<(Data, URLError.Code?), Never>] = []
        for _ in 1...5 {
            let body = try await other.GET("/").stream().value.body
            readers.append(Task { await read(body) })
        }
        session.close(.cancelling)
        for reader in readers { #expect(await reader.value.1 == .cancelled) }
        for _ in 1...5 { gate.open() }
    }

    @Test("A server that closes while the reader is paused loses no byte")
    func closedWhilePaused() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200, data: Data(repeating: 7, count: 100_000))
            response.wire = .untilClose
            return response
        }
        let service = try service(server)
        let body = try await service.GET("/").stream(bufferSize: 1_000).value.body
        await eventually("the server has closed") { server.openConnectionCount == 0 }
        try await roundTrip(service.session)
        #expect(await read(body) == (Data(repeating: 7, count: 100_000), nil))
    }

    @Test("A stream that is paused after each chunk delivers every byte in order")
    func pauses() async throws {
        let size = (isSoak ? 160 : 16) << 20
        let content = DownloadFixture.content(1 << 20)
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200) { body in
                for _ in 0..<size >> 20 { try body.write(content) }
            }
            response.headers[.contentLength] = "\(size)"
            return response
        }
        let doubled = content + content
        var (count, chunks, isEqual) = (0, 0, true)
        for try await chunk in try await service(server).GET("/").stream(bufferSize: 1).value.body {
            let start = count % content.count
            isEqual = isEqual && doubled[start..<start + chunk.count] == chunk
            (count, chunks) = (count + chunk.count, chunks + 1)
        }
        #expect(count == size, "\(chunks) chunks")
        #expect(chunks >= size / (64 << 10), "\(chunks) chunks")
        #expect(isEqual, "\(chunks) chunks")
    }

    @Test("A paused stream that is not read is cancelled, and its connection is closed")
    func cancelledWhilePaused() async throws {
        let closed = StreamTests.Count()
        let server = try MockServer.forTest { _ in
            MockResponse(statusCode: 200) { body in
                defer { closed.add() }
                while true { try body.write(Data(count: 100_000)) }
            }
        }
        let service = try service(server)
        let task = service.GET("/").stream(bufferSize: 1)
        let body = try await task.value.body
        try await roundTrip(service.session)
        task.cancel()
        await eventually("the server sees the end of the connection") { closed.value == 1 }
        #expect(await read(body).code == .cancelled)
    }

    @Test("Cancellations at any instant end an exchange once")
    func races() async throws {
        let server = try MockServer.forTest { request in
            MockResponse(statusCode: 200) { body in
                for _ in 0..<5 { try body.write(Data(count: 8_000)) }
                if request.path == "/cut" { throw CancellationError() }
            }
        }
        let session = try CurlSession()
        let rounds = amount(160, thorough: 400, soak: 10_000)
        let ends = Ends()
        for round in 0..<rounds / 8 {
            let tasks = try (0..<8).map { number in
                let request = Request(.GET, url: server.baseURLString + (number == 0 ? "/cut" : "/"))
                let receiver = RaceReceiver(ends)
                let task = session.streamTask(request: try request.encode(), receiver: receiver)
                receiver.attach(task)
                return task
            }
            for task in tasks { task.resume() }
            for task in tasks {
                DispatchQueue.global().async {
                    var delay = Int.random(in: 0...1_000_000)
                    while delay > 0 { delay -= 1 }
                    task.cancel()
                    task.receiveMore()
                }
            }
            await eventually("every exchange ends") { ends.count >= (round + 1) * 8 }
        }
        try await roundTrip(session)
        let (count, isOnce, results) = ends.summary
        print("\(rounds) races: \(results)")
        #expect(count == rounds)
        #expect(isOnce)
    }
}

/// The ends of the exchanges of a test.
private final class Ends: Sendable {
    private struct State {
        var count = 0
        var isOnce = true
        var results: [String: Int] = [:]
    }

    private let state = Mutex(State())
    var count: Int { state.withLock { $0.count } }
    var summary: (Int, Bool, [String: Int]) { state.withLock { ($0.count, $0.isOnce, $0.results) } }

    func add(_ result: String, isFirst: Bool) {
        state.withLock { state in
            state.count += 1
            state.isOnce = state.isOnce && isFirst
            state.results[result, default: 0] += 1
        }
    }
}

/// A receiver that pauses at random and counts its ends.
private final class RaceReceiver: BodyReceiver {
    private struct State {
        var hasEnded = false
        var isPaused = false
        weak var task: (any StreamTask)?
    }

    let mayPause = true
    private let ends: Ends
    private let state = Mutex(State())

    init(_ ends: Ends) { self.ends = ends }

    func attach(_ task: any StreamTask) { state.withLock { $0.task = task } }

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {}

    func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand {
        let task = state.withLock { state -> (any StreamTask)? in
            state.isPaused = !state.isPaused && Bool.random()
            return state.isPaused ? state.task : nil
        }
        guard let task else { return .more }
        DispatchQueue.global().async { task.receiveMore() }
        return .pause
    }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        let isFirst = state.withLock { state in
            defer { state.hasEnded = true }
            return !state.hasEnded
        }
        switch result {
        case .success: ends.add("complete", isFirst: isFirst)
        case .failure(let error as URLError):
            ends.add(error.code == .cancelled ? "cancelled" : "lost", isFirst: isFirst)
        case .failure: ends.add("other", isFirst: isFirst)
        }
    }
}
#endif
