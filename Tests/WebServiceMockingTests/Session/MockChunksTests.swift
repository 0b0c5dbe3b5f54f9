import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite("Response bodies of a mock session from a sequence", .permit)
struct MockChunksTests {
    private let session = MockSession()
    private var service: WebService {
        WebService("http://a.test", session: session)
    }

    private final class Count: Sendable {
        private let state = Mutex(0)
        var value: Int { state.withLock { $0 } }
        func add() -> Int {
            state.withLock { count in
                count += 1
                return count
            }
        }
    }

    /// Returns a sequence that counts its elements and ends after a number of them.
    private static func counting(_ produced: Count, to end: Int = .max, size: Int = 1) -> AsyncStream<Data> {
        AsyncStream {
            produced.add() <= end && !Task.isCancelled ? Data(count: size) : nil
        }
    }

    @Test("Each element is delivered before the next one is produced, for each request")
    func elements() async throws {
        let (chunks, feed) = AsyncStream.makeStream(of: Data.self)
        session.addStub(MockResponse(statusCode: 200, chunks: chunks)) { $0.urlRequestValue.httpMethod == "POST" }
        var received: [String] = []
        feed.yield(Data("first".utf8))
        for try await chunk in try await service.POST("/").stream().value.body {
            received.append(String(decoding: chunk, as: UTF8.self))
            if received.count == 1 { feed.yield(Data("second".utf8)) } else { feed.finish() }
        }
        #expect(received == ["first", "second"])
        let produced = Count()
        session.addStub(MockResponse(statusCode: 200, chunks: Self.counting(produced, to: 3))) {
            $0.urlRequestValue.httpMethod == "GET"
        }
        #expect(try await service.GET("/").data().value == Data(count: 3))
        #expect(try await service.GET("/").data().value == Data())
        #expect(produced.value >= 5)
    }

    @Test("A first element that is produced before the server waits for it is not lost")
    func early() async throws {
        var results: Set<String> = []
        for _ in 0..<1_000 {
            let relay = ChunkRelay()
            let producer = Task {
                for text in ["a", "b", "c"] { try await relay.pass(Data(text.utf8)) }
                relay.end(nil)
            }
            await eventually { relay.state.withLock { $0.chunk != nil } }
            let received = try await blocking {
                var received = Data()
                while let chunk = try relay.next(isNeeded: { true }) { received += chunk }
                relay.close()
                return received
            }
            results.insert(String(decoding: received, as: UTF8.self))
            try await producer.value
        }
        #expect(results == ["abc"])
    }

    @Test("The sequence waits while the reader of a stream is paused")
    func pause() async throws {
        let produced = Count()
        session.addStub(MockResponse(statusCode: 200, chunks: Self.counting(produced, to: 2_000, size: 1_000)))
        let body = try await service.GET("/").stream(bufferSize: 10_000).value.body
        await eventually { produced.value >= 11 }
        #expect(produced.value <= 12)
        #expect(try await body.collect(upTo: .max).count == 2_000_000)
    }

    /// A sequence that is endless until its task is cancelled, and counts the iterators that ended.
    private struct Endless: AsyncSequence {
        final class AsyncIterator: AsyncIteratorProtocol {
            let ended: Count
            let isSilent: Bool

            init(_ ended: Count, isSilent: Bool) {
                self.ended = ended
                self.isSilent = isSilent
            }

            deinit { _ = ended.add() }

            func next() async -> Data? {
                let silence = AsyncStream<Void> { _ in }
                if isSilent { for await _ in silence {} }
                return Task.isCancelled ? nil : Data("x".utf8)
            }
        }

        let ended: Count
        let isSilent: Bool

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(ended, isSilent: isSilent) }
    }

    @Test("The sequence is never far ahead of a reader that continues after each pause")
    func distance() async throws {
        let (produced, size) = (Count(), 16 << 10)
        let session = MockSession()
        session.on(.GET, "/") { _ in
            MockResponse(statusCode: 200, chunks: Self.counting(produced, to: 3_000, size: size))
        }
        let service = WebService("http://a.test", session: session)
        var (taken, distance) = (0, 0)
        for try await chunk in try await service.GET("/").stream(bufferSize: size).value.body {
            distance = max(distance, produced.value - taken)
            taken += chunk.count / size
        }
        #expect(taken == 3_000)
        #expect(distance <= 8)
    }

    @Test("Leaving the loop, and cancelling the task, cancels the sequence", arguments: [true, false])
    func cancelling(isLoop: Bool) async throws {
        let ended = Count()
        session.addStub(MockResponse(statusCode: 200, chunks: Endless(ended: ended, isSilent: !isLoop)))
        let task = service.GET("/").stream()
        let body = try await task.value.body
        #expect(ended.value == 0)
        if isLoop { for try await _ in body { break } } else { task.cancel() }
        await eventually { ended.value == 1 }
    }

    @Test("An error of the sequence is the error of the request, after the bytes before it")
    func failure() async throws {
        let chunks = AsyncThrowingStream<Data, any Error> { feed in
            feed.yield(Data("good".utf8))
            feed.finish(throwing: URLError(.networkConnectionLost))
        }
        session.addStub(MockResponse(statusCode: 200, chunks: chunks))
        var received = Data()
        let error = await #expect(throws: URLError.self) {
            for try await chunk in try await service.GET("/").stream().value.body { received += chunk }
        }
        #expect(error?.code == .networkConnectionLost)
        #expect(received == Data("good".utf8))
    }

    @Test("A collected body obeys the limit of the request, and a request without a body receives none")
    func limits() async throws {
        session.addStub(MockResponse(statusCode: 200, chunks: Self.counting(Count(), size: 1_000)))
        var request = Request(.GET, url: "http://a.test/")
        request.options.maximumResponseBytes = 5_000
        let error = await #expect(throws: WebServiceError.self) {
            try await service.sessionTask(request: request).data().value
        }
        #expect(error?.code == .responseTooLarge)
        let answer: (any Error)? = await withCheckedContinuation { continuation in
            session.dataTask(request: request) { _, _, error in continuation.resume(returning: error) }.resume()
        }
        #expect((answer as? WebServiceError)?.code == .responseTooLarge)
        #expect(try await service.HEAD("/").data().value == Data())
    }

    /// Returns a response with a body in two parts, from a closure or from a sequence.
    private static func parts(_ wire: MockResponse.Wire, isWriter: Bool) -> MockResponse {
        let parts = ["ale", "ox"].map { Data($0.utf8) }
        let chunks = AsyncStream<Data> { feed in
            for part in parts { feed.yield(part) }
            feed.finish()
        }
        var response = MockResponse(statusCode: 200, chunks: chunks)
        if isWriter {
            response = MockResponse(statusCode: 200) { body in for part in parts { try body.write(part) } }
        }
        response.wire = wire
        return response
    }

    /// The length of the head of ``parts(_:isWriter:)`` on a server.
    private static let headLength = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8.count

    @Test("A stream receives the parts of a body before a cut, as from a server", arguments: [true, false])
    func cut(isWriter: Bool) async {
        let places = [(-1, ""), (0, ""), (4, "a"), (8, "ale"), (12, "aleo"), (19, "aleox"), (20, "aleox")]
        for (count, text) in places {
            session.on(.GET, "/", Self.parts(.cut(after: Self.headLength + count), isWriter: isWriter))
            var received = Data()
            var code: URLError.Code?
            do {
                for try await chunk in try await service.GET("/").stream().value.body { received += chunk }
            } catch { code = (error as? URLError)?.code ?? .unknown }
            #expect(String(decoding: received, as: UTF8.self) == text, "\(count)")
            let expected: URLError.Code? = count < 20 ? .networkConnectionLost : nil
            #expect(code == expected, "\(count)")
        }
    }

    @Test("A body in parts that stalls fails after the timeout", arguments: [true, false])
    func stall(isWriter: Bool) async throws {
        let clock = TestClock()
        let session = MockSession(clock: clock)
        session.on(.GET, "/", Self.parts(.stall(after: Self.headLength + 4), isWriter: isWriter))
        let service = WebService(baseURLString: "http://a.test", clock: clock)
        service.session = session
        let result = Task(executorPreference: clock.executor) {
            try await service.GET("/").setTimeout(.seconds(50)).data().value
        }
        await clock.advance(by: .seconds(50))
        let error = await #expect(throws: URLError.self) { try await result.value }
        #expect(error?.code == .timedOut)
    }

    // MARK: Writers and trailers

    @Test("A writer's bytes are delivered before it continues, followed by the trailer fields")
    func writer() async throws {
        let (reads, read) = AsyncStream.makeStream(of: Void.self)
        let permits = DispatchSemaphore(value: 0)
        var response = MockResponse(statusCode: 200) { body in
            try body.write(Data("first".utf8))
            permits.wait()
            try body.write(Data("second".utf8))
            read.finish()
        }
        response.trailers = ["X-End": "1"]
        session.on(.GET, "/", response)
        let body = try await service.GET("/").stream().value.body
        var received: [String] = []
        for try await chunk in body {
            received.append(String(decoding: chunk, as: UTF8.self))
            permits.signal()
        }
        for await _ in reads {}
        #expect(received == ["first", "second"])
        #expect(body.trailers == ["X-End": "1"])
        permits.signal()
        #expect(try await service.GET("/").data().value == Data("firstsecond".utf8))
    }

    @Test("A writer waits while the reader is paused, and its next write fails when the task is cancelled")
    func writerOfPausedStream() async throws {
        let produced = Count()
        let ended = Count()
        session.on(
            .GET, "/",
            MockResponse(statusCode: 200) { body in
                defer { _ = ended.add() }
                while true {
                    try body.write(Data(count: 1_000))
                    _ = produced.add()
                }
            })
        let task = service.GET("/").stream(bufferSize: 10_000)
        let body = try await task.value.body
        await eventually { produced.value >= 9 }
        #expect(produced.value <= 12)
        #expect(ended.value == 0)
        withExtendedLifetime(body) { task.cancel() }
        await eventually { ended.value == 1 }
        #expect(ended.value == 1)
    }

    @Test("The error of a writer and the limit of a response fail the request")
    func failingWriter() async throws {
        struct Failure: Error {}
        session.on(
            .GET, "/fails",
            MockResponse(statusCode: 200) { body in
                try body.write(Data("x".utf8))
                throw Failure()
            })
        session.on(
            .GET, "/long",
            MockResponse(statusCode: 200) { body in
                while true { try body.write(Data(count: 60)) }
            })
        await #expect(throws: Failure.self) { try await service.GET("/fails").data().value }
        let task = service.GET("/long").configure { $0.options.maximumResponseBytes = 100 }
        await #expect { try await task.data().value } throws: {
            ($0 as? WebServiceError)?.code == .responseTooLarge
        }
    }

    @Test("The pause of a writer is measured on the clock of the session")
    func writerPause() async throws {
        let clock = TestClock()
        let session = MockSession(clock: clock)
        session.on(
            .GET, "/",
            MockResponse(statusCode: 200) { body in
                body.pause(for: .seconds(3_600))
                try body.write(Data("x".utf8))
            })
        let service = WebService(baseURLString: "http://a.test", clock: clock)
        service.session = session
        let result = Task(executorPreference: clock.executor) {
            try await service.GET("/").configure { $0.options.deadline = .seconds(36_000) }.data().value
        }
        await clock.advance(by: .seconds(3_600))
        #expect(try await result.value == Data("x".utf8))
    }
}
