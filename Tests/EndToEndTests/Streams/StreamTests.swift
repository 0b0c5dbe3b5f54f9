import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Streamed responses over every session that uses the network, and over a session with one method.
@Suite("Streamed responses", .permit)
struct StreamTests {
    /// Opens a gate for each step of a handler, from the test.
    final class Gate: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        func open() { semaphore.signal() }
        func wait() { _ = semaphore.wait(timeout: .now() + 60) }
    }

    /// Counts events.
    final class Count: Sendable {
        private let state = Mutex(0)
        var value: Int { state.withLock { $0 } }
        func add() { state.withLock { $0 += 1 } }
    }

    @Test("The media type of a stream is checked before its body is read", arguments: RealSession.streaming)
    func contentTypes(session: RealSession) async throws {
        let server = try MockServer { _ in
            MockResponse.text("<p>").header("Content-Type", "text/html")
        }
        defer { server.stop() }
        let accepted = try session.service(server).GET("/log").stream().validate(contentTypes: ["text/*"])
        #expect(try await accepted.value.status == 200)
        let rejected = try session.service(server).GET("/log").stream().validate(contentTypes: ["application/json"])
        await #expect { try await rejected.value } throws: { ($0 as? WebServiceError)?.code == .unexpectedContentType }
    }

    @Test(
        "Each chunk is delivered before the server sends the next one",
        arguments: RealSession.streaming)
    func chunks(session: RealSession) async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                for number in 1...3 {
                    gate.wait()
                    try body.write(Data("chunk \(number)".utf8))
                }
            }
        }
        defer { server.stop() }
        let task = try session.service(server).GET("/log").stream()
        let log = try await task.value
        #expect(log.status == 200)
        #expect(log.response.isStreamed == false)
        #expect(log.body.expectedLength == nil)
        var chunks: [String] = []
        gate.open()
        for try await chunk in log.body {
            chunks.append(String(decoding: chunk, as: UTF8.self))
            gate.open()
        }
        #expect(chunks == ["chunk 1", "chunk 2", "chunk 3"])
        let kinds = task.timeline.events.map(\.kind.description)
        #expect(kinds == ["attempt", "body"])
        #expect(task.timeline.events.last?.detail == "21 bytes")
    }

    @Test(
        "A slow reader receives every byte, and few bytes are buffered",
        arguments: RealSession.allCases)
    func slowReader(session: RealSession) async throws {
        let size = 8 << 20
        let content = DownloadFixture.content(size)
        let server = try MockServer { _ in MockResponse(statusCode: 200, data: content) }
        defer { server.stop() }
        let log = try await session.service(server).GET("/").stream(bufferSize: 64 << 10).value
        #expect(log.body.expectedLength == Int64(size))
        var received = Data()
        for try await chunk in log.body {
            received.append(chunk)
            if received.count < 1 << 20 { await Task.yield() }
            if session == .curlIfBuilt { #expect(chunk.count <= 96 << 10) }
        }
        #expect(received == content)
        #expect(log.body.trailers == [:])
    }

    @Test("Leaving the loop closes the connection", arguments: RealSession.streaming)
    func leaving(session: RealSession) async throws {
        let closed = Count()
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                defer { closed.add() }
                while true {
                    try body.write(Data(count: 10_000))
                    body.pause(for: .milliseconds(1))  // Foundation cancels only when a peer pauses
                }
            }
        }
        defer { server.stop() }
        let service = try session.service(server)
        let log = try await service.GET("/endless").stream().value
        for try await _ in log.body { break }
        await eventually("the server sees the end of the connection") { closed.value == 1 }
        await #expect(throws: WebServiceError.self) { for try await _ in log.body {} }
    }

    @Test(
        "Releasing the response without reading it closes the connection",
        arguments: RealSession.streaming)
    func releasing(session: RealSession) async throws {
        let closed = Count()
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                defer { closed.add() }
                while true {
                    try body.write(Data(count: 10_000))
                    body.pause(for: .milliseconds(1))  // Foundation cancels only when a peer pauses
                }
            }
        }
        defer { server.stop() }
        let service = try session.service(server)
        _ = try await service.GET("/endless").stream().value
        await eventually("the server sees the end of the connection") { closed.value == 1 }
    }

    @Test(
        "Cancelling the Swift task or the session task ends a waiting read once",
        arguments: [true, false])
    func cancelling(isSwiftTask: Bool) async throws {
        for session in RealSession.streaming {
            let server = try MockServer { _ in
                MockResponse(statusCode: 200) { body in
                    try body.write(Data("first".utf8))
                    body.pause(for: .seconds(60))
                }
            }
            defer { server.stop() }
            let task = try session.service(server).GET("/").stream()
            let log = try await task.value
            let hasFirst = Count()
            let reader = Task {
                var count = 0
                do {
                    for try await _ in log.body {
                        count += 1
                        hasFirst.add()
                    }
                    return (count, nil as URLError.Code?)
                } catch {
                    return (count, (error as? URLError)?.code)
                }
            }
            await eventually("the first chunk is read") { hasFirst.value == 1 }
            if isSwiftTask { reader.cancel() } else { task.cancel() }
            let (count, code) = await reader.value
            #expect(count == 1, "\(session)")
            #expect(code == .cancelled, "\(session)")
        }
    }

    @Test(
        "The bytes of a truncated body are delivered before the error",
        arguments: RealSession.streaming)
    func truncated(session: RealSession) async throws {
        var response = MockResponse(statusCode: 200, data: Data(repeating: 1, count: 1_000))
        response.wire = .cut(after: 800)
        let server = try MockServer { [response] _ in response }
        defer { server.stop() }
        let log = try await session.service(server).GET("/").stream().value
        var count = 0
        let error = await #expect(throws: URLError.self) {
            for try await chunk in log.body { count += chunk.count }
        }
        #expect(error?.code == .networkConnectionLost, "\(count)")
        #expect(count < 800, "\(count)")
        if session == .curlIfBuilt { #expect(count > 600, "\(count)") }
    }

    @Test("A status other than 200 to 299 is an error with the body", arguments: RealSession.allCases)
    func unacceptable(session: RealSession) async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 404, json: ["error": "no beer"]) }
        defer { server.stop() }
        let service = try session.service(server)
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/").stream().value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.bodySnippet?.contains("no beer") == true)
    }

    @Test(
        "Interceptors apply only until the head is accepted", arguments: RealSession.streaming)
    func interceptors(session: RealSession) async throws {
        let server = try MockServer()
        defer { server.stop() }
        let requests = Count()
        server.on(.GET, "/flaky") { _ in
            requests.add()
            if requests.value == 1 { return MockResponse(statusCode: 503) }
            return MockResponse(statusCode: 200) { body in
                try body.write(Data("partial".utf8))
                throw URLError(.unknown)
            }
        }
        let service = try session.service(server)
        service.interceptors = [RetryPolicy(maximumAttempts: 4, baseDelay: .milliseconds(1))]
        let log = try await service.GET("/flaky").stream().value
        var content = Data()
        let error = await #expect(throws: URLError.self) {
            for try await chunk in log.body { content.append(chunk) }
        }
        #expect(error?.code == .networkConnectionLost)
        #expect(content == Data("partial".utf8))
        #expect(requests.value == 2)
    }

    @Test("A stream starts after a refresh of the credential", arguments: RealSession.streaming)
    func authentication(session: RealSession) async throws {
        let server = try MockServer { request in
            let isCurrent = request.headers[.authorization] == "Bearer 2"
            return MockResponse(statusCode: isCurrent ? 200 : 401, data: Data("ale".utf8))
        }
        defer { server.stop() }
        let service = try session.service(server)
        service.interceptors = [Authentication(TokenSource({ .bearer("1") }) { _ in .bearer("2") })]
        let log = try await service.GET("/").stream().value
        #expect(try await log.body.collect(upTo: 10) == Data("ale".utf8))
        #expect(server.receivedRequests.count == 2)
    }

    @Test("Redirects are followed before the body is streamed", arguments: RealSession.streaming)
    func redirects(session: RealSession) async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/old") { _ in
            var response = MockResponse(statusCode: 302, data: Data("moved".utf8))
            response.headers[.location] = "/new"
            return response
        }
        server.on(.GET, "/new", MockResponse(statusCode: 200, data: Data("ale".utf8)))
        let log = try await session.service(server).GET("/old").stream().value
        #expect(log.response.redirects.count == 1)
        #expect(try await log.body.collect(upTo: 10) == Data("ale".utf8))
    }

    @Test("A deadline that the request sets applies to the body", arguments: RealSession.streaming)
    func deadline(session: RealSession) async throws {
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { body in
                try body.write(Data("first".utf8))
                body.pause(for: .seconds(60))
            }
        }
        defer { server.stop() }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try session.session()
        let log = try await service.GET("/").setDeadline(.seconds(15)).stream().value
        var chunks = log.body.makeAsyncIterator()
        #expect(try await chunks.next() == Data("first".utf8))
        await clock.advance(by: .seconds(15))
        let error = await #expect(throws: WebServiceError.self) { try await chunks.next() }
        #expect(error?.code == .deadline)
    }

    @Test(
        "The deadline and the maximum size of a service end its requests, not its streams and downloads",
        arguments: RealSession.allCases.map { $0 } + [nil])
    func serviceLimits(session: RealSession?) async throws {
        let clock = TestClock()
        let mock = MockSession(clock: clock)
        let server = try MockServer()
        defer { server.stop() }
        let service = try session?.service(server) ?? WebService(baseURLString: "https://brewery.example.com")
        if session == nil { service.session = mock }
        let content = Data(repeating: 7, count: 1_000)
        server.on(.any) { MockResponse(file: content, eTag: "\"1\"", for: $0) }
        mock.on(.any) { MockResponse(file: content, eTag: "\"1\"", for: $0) }
        service.options.maximumResponseBytes = 9
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/a").data().value }
        #expect(error?.code == .responseTooLarge)
        #expect(try await service.GET("/a").stream().value.body.collect(upTo: 2_000) == content)
        let folder = TemporaryFolder.forTest().url
        let file = folder.appendingPathComponent("a")
        _ = try await service.GET("/a").download(to: file).value
        #expect(try Data(contentsOf: file) == content)
        // Limits of the request apply, also if they are the defaults.
        for maximum in [9, 100] {
            let task = service.GET("/a").configure { $0.options.maximumResponseBytes = maximum }
            let failure = await #expect(throws: WebServiceError.self) {
                try await task.stream().value.body.collect(upTo: 2_000)
            }
            #expect(failure?.code == .responseTooLarge)
        }
        let all = try await service.GET("/a").configure { $0.options.maximumResponseBytes = .max }.data().value
        #expect(all == content)
    }

    /// Returns a service with a deadline of five seconds.
    private func limitedService() -> (WebService, MockSession, TestClock) {
        let clock = TestClock()
        let mock = MockSession(clock: clock)
        let service = WebService(baseURLString: "https://brewery.example.com", clock: clock)
        service.session = mock
        service.options.deadline = .seconds(5)
        return (service, mock, clock)
    }

    @Test("A deadline of the service ends a request, not a stream; one of the stream does")
    func serviceDeadline() async throws {
        let (service, mock, clock) = limitedService()
        let (elements, feed) = AsyncStream<Data>.makeStream()
        mock.addStub(MockResponse(statusCode: 200, chunks: elements))
        let log = try await service.GET("/log").stream().value
        feed.yield(Data("one".utf8))
        var chunks = log.body.makeAsyncIterator()
        #expect(try await chunks.next() == Data("one".utf8))
        await clock.advance(by: .seconds(20))
        feed.yield(Data("two".utf8))
        #expect(try await chunks.next() == Data("two".utf8))
        feed.finish()
        #expect(try await chunks.next() == nil)
        // The default of requests, set explicitly, is a deadline.
        let (others, silence) = AsyncStream<Data>.makeStream()
        mock.addStub(MockResponse(statusCode: 200, chunks: others))
        let limited = try await service.GET("/log").setDeadline(.seconds(600)).setTimeout(.seconds(10_000)).stream()
            .value
        await clock.advance(by: .seconds(601))
        let error = await #expect(throws: WebServiceError.self) { for try await _ in limited.body {} }
        #expect(error?.code == .deadline)
        silence.finish()
    }

    @Test("A deadline of the service does not end a download; one of the download does")
    func serviceDeadlineOfDownloads() async throws {
        let (service, mock, clock) = limitedService()
        let folder = TemporaryFolder.forTest().url
        let (elements, feed) = AsyncStream<Data>.makeStream()
        mock.addStub(MockResponse(statusCode: 200, chunks: elements))
        let download = service.GET("/file").setTimeout(.seconds(100)).download(to: folder.appendingPathComponent("a"))
        download.resume()
        feed.yield(Data("one".utf8))
        await clock.advance(by: .seconds(20))
        feed.finish()
        #expect(try await download.value.byteCount == 3)
        let (others, silence) = AsyncStream<Data>.makeStream()
        mock.addStub(MockResponse(statusCode: 200, chunks: others))
        let limited = service.GET("/file").setDeadline(.seconds(10)).setTimeout(.seconds(100)).download(
            to: folder.appendingPathComponent("b"))
        limited.resume()
        silence.yield(Data("one".utf8))
        await clock.advance(by: .seconds(10))
        let error = await #expect(throws: WebServiceError.self) { try await limited.value }
        #expect(error?.code == .deadline)
        silence.finish()
    }

    @Test("A second iteration is an error")
    func secondIteration() async throws {
        let mock = MockSession()
        mock.addStub(MockResponse(statusCode: 200, data: Data("ale".utf8)))
        let service = WebService("https://brewery.example.com", session: mock)
        let log = try await service.GET("/").stream().value
        #expect(try await log.body.collect(upTo: 3) == Data("ale".utf8))
        let error = await #expect(throws: WebServiceError.self) { for try await _ in log.body {} }
        #expect(error?.code == .streamConsumed)
        let again = try await service.GET("/").stream().value
        let tooLong = await #expect(throws: WebServiceError.self) { try await again.body.collect(upTo: 2) }
        #expect(tooLong?.code == .responseTooLarge)
    }

    @Test("An empty body and the response to HEAD are empty streams", arguments: RealSession.allCases)
    func empty(session: RealSession) async throws {
        let server = try MockServer { request in
            MockResponse(
                statusCode: request.target == "/none" ? 204 : 200,
                data: request.method == .HEAD ? Data("a".utf8) : Data())
        }
        defer { server.stop() }
        let service = try session.service(server)
        for task in [service.GET("/none"), service.GET("/empty"), service.HEAD("/head")] {
            let log = try await task.stream().value
            #expect(try await log.body.collect(upTo: 0) == Data())
        }
    }

    @Test("A size limit that the request sets applies to a stream", arguments: RealSession.streaming)
    func limit(session: RealSession) async throws {
        let server = try MockServer { _ in
            MockResponse(statusCode: 200) { for _ in 0..<100 { try $0.write(Data(count: 1_000)) } }
        }
        defer { server.stop() }
        var request = Request(.GET, url: server.baseURLString)
        request.options.maximumResponseBytes = 50_000
        let log = try await session.service(server).sessionTask(request: request).stream().value
        var count = 0
        let error = await #expect(throws: WebServiceError.self) {
            for try await chunk in log.body { count += chunk.count }
        }
        #expect(error?.code == .responseTooLarge)
        #expect(count <= 50_000)
    }

    @Test("Progress is reported until the end of the body", arguments: RealSession.streaming)
    func progress(session: RealSession) async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 200, data: Data(count: 500_000)) }
        defer { server.stop() }
        let latest = Mutex(TransferProgress())
        let task = try session.service(server).GET("/").onProgress { progress in latest.withLock { $0 = progress } }
        let log = try await task.stream().value
        _ = try await log.body.collect(upTo: 500_000)
        await eventually("the last progress is delivered") { latest.withLock { $0.bytesReceived } == 500_000 }
        #expect(latest.withLock { $0.bytesToReceive } == 500_000)
    }
}

extension RealSession {
    /// The sessions that stream.
    static var streaming: [RealSession] { allCases.filter { $0 != .urlSession } }

    static var curlIfBuilt: RealSession? {
        #if WEBSERVICE_CURL
        .curlSession
        #else
        nil
        #endif
    }
}
