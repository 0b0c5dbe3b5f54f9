import Dispatch
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The processing of responses that a session delivers in parts.
@Suite("Responses of a streaming session", .permit)
struct StreamingSessionTests {
    private let session = HandStreamingSession()

    /// Returns the exchange of a stream and its body.
    private func stream(
        bufferSize: Int = 256, decoder: (any ContentDecoder)? = nil
    ) async throws -> (HandStreamingSession.Exchange, ResponseBody) {
        let session = HandStreamingSession()
        let task = WebService.make(session).GET("/x").stream(bufferSize: bufferSize)
        async let response = task.value
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200, decoder: decoder)
        return (exchange, try await response.body)
    }

    @Test("A session is continued only by the first read after a pause")
    func continuation() async throws {
        let (exchange, body) = try await stream(bufferSize: 4)
        var iterator = body.makeAsyncIterator()
        #expect(try exchange.receive("abcd") == .more)
        #expect(try exchange.receive("efgh") == .pause)
        #expect(try await iterator.next() == Data("abcd".utf8))
        #expect(exchange.log == ["resume", "receiveMore"])
        #expect(try exchange.receive("efgh") == .more)
        #expect(try await iterator.next() == Data("efgh".utf8))
        #expect(exchange.log == ["resume", "receiveMore"])
        exchange.complete()
        #expect(try await iterator.next() == nil)
    }

    @Test("stream() has no effect on the list of exchanges after the task was resumed")
    func lateStream() async throws {
        let service = WebService.make(session)
        let task = service.GET("/x").resume()
        let stream = task.stream()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        exchange.complete()
        _ = try await stream.value
        #expect(service.exchanges.isEmpty)
    }

    @Test("A session that completes a stream twice ends it once")
    func completesTwice() async throws {
        let task = WebService.make(session).GET("/x")
        async let response = task.stream().value
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        _ = try await response
        for _ in 0..<2 { exchange.complete() }
        #expect(task.timeline.events.filter { $0.kind == .body }.count == 1)
    }

    @Test("A session that completes a data task twice calls its completion once")
    func completesDataTaskTwice() {
        let results = Collected<Bool>()
        let receiver = ResponseReceiver(Request(url: "https://h/"), source: .mock) { result, _ in
            results.add((try? result.get()) == nil)  // whether there is an error
        }
        for _ in 0..<2 { receiver.didComplete(.failure(URLError(.timedOut)), metrics: nil) }
        #expect(results.values == [true])
    }

    /// A decoder that returns its input and rejects its end.
    private struct TruncatedDecoder: ContentDecoder {
        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int {
            try append(bytes)
            return bytes.count
        }

        func finish() throws { throw URLError(.cannotDecodeContentData) }
    }

    @Test("A stream whose compressed body is truncated ends with an error after its bytes")
    func truncated() async throws {
        let (exchange, body) = try await stream(decoder: TruncatedDecoder())
        _ = try exchange.receive("abcd")
        exchange.complete()
        var received = Data()
        let error = await #expect(throws: URLError.self) {
            for try await bytes in body { received += bytes }
        }
        #expect(error?.code == .cannotDecodeContentData)
        #expect(received == Data("abcd".utf8))
    }

    @Test("A progress handler that is added after resume() receives the last progress first")
    func lateProgress() async throws {
        let task = WebService.make(session).GET("/x").data().resume()
        let exchange = await session.exchanges.wait()[0]
        try exchange.receive(status: 200)
        _ = try exchange.receive("abc")
        let progress = Collected<Int64>()
        task.onProgress { progress.add($0.bytesReceived) }
        #expect(await progress.wait() == [3])
        let late = Collected<Int64>()
        task.onProgress { late.add($0.bytesReceived) }
        #expect(await late.wait() == [3])
        _ = try exchange.receive("de")
        #expect(await progress.wait(for: 2) == [3, 5])
        #expect(await late.wait(for: 2) == [3, 5])
        exchange.complete()
        #expect(try await task.value == Data("abcde".utf8))
    }

    @Test("A progress handler that is added to a streamed request before its head is called")
    func lateProgressOfUpload() async throws {
        let task = WebService.make(session).POST("/x").setBody(Data(count: 4)).stream().resume()
        let exchange = await session.exchanges.wait()[0]
        let progress = Collected<Int64>()
        task.onProgress { progress.add($0.bytesSent) }
        exchange.receiver.didSend(3, of: 4)
        #expect(await progress.wait() == [3])
        task.cancel()
        exchange.complete()
    }

    @Test("The rate is that of the request body, and then that of the response body")
    func rates() async throws {
        let clock = ManualTimekeeper()
        let progress = Collected<TransferProgress>()
        let task = WebService.make(session, timekeeper: clock).POST("/x").setBody(Data(count: 400))
            .onProgress { progress.add($0) }.data().resume()
        let exchange = await session.exchanges.wait()[0]
        exchange.receiver.didSend(100, of: 400)
        await progress.wait()
        clock.advance(by: .seconds(1))
        exchange.receiver.didSend(200, of: 400)
        await progress.wait(for: 2)
        // The body is sent again.
        exchange.receiver.didSend(50, of: 400)
        await progress.wait(for: 3)
        try exchange.receive(status: 200)
        _ = try exchange.receive("abc")
        await progress.wait(for: 4)
        clock.advance(by: .seconds(1))
        _ = try exchange.receive("defgh")
        await progress.wait(for: 5)
        exchange.receiver.didSend(400, of: 400)
        let values = await progress.wait(for: 6)
        #expect(values.map(\.bytesPerSecond) == [nil, 100, nil, nil, 5, 5])
        #expect(values.map(\.secondsRemaining) == [nil, 2, nil, nil, nil, nil])
        exchange.complete()
        _ = try await task.value
    }

    /// A decoder that reports the progress of the request on another thread while it decodes.
    private struct ConcurrentDecoder: ContentDecoder {
        let report: @Sendable () -> Void

        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int {
            let isDone = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                report()
                isDone.signal()
            }
            guard isDone.wait(timeout: .now() + 60) == .success else { throw URLError(.timedOut) }
            try append(bytes)
            return bytes.count
        }

        func finish() throws {}
    }

    @Test("A body is decoded without a lock that other threads need")
    func decodingWithoutLock() async throws {
        let task = WebService.make(session).GET("/x").onProgress { _ in }.data().resume()
        let exchange = await session.exchanges.wait()[0]
        let receiver = exchange.receiver
        try exchange.receive(status: 200, decoder: ConcurrentDecoder { receiver.didSend(1, of: 2) })
        _ = try exchange.receive("abc")
        exchange.complete()
        #expect(try await task.value == Data("abc".utf8))
    }

    @Test("The code that follows a redirect does not run on the queue of the session")
    func redirect() async throws {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "session")
        queue.setSpecific(key: key, value: true)
        let isOnQueue = Collected<Bool>()
        let session = HandStreamingSession { isOnQueue.add(DispatchQueue.getSpecific(key: key) ?? false) }
        let setup = Setup(Setup.Settings(session: session))
        let exchange = Exchange(setup: setup, task: WebService.make().GET("/x"))
        let work = Task { try await exchange.response(to: Request(url: "https://h/x")) }
        let first = await session.exchanges.wait()[0]
        queue.async {
            try? first.receive(status: 302, fields: "Location: /y\r\n")  // the receiver throws no error
            first.complete()
        }
        #expect(await isOnQueue.wait(for: 2) == [false, false])
        work.cancel()
    }
}
