import Dispatch
import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The processing of responses that a session delivers in parts.
@Suite("Responses of a streaming session", .timeLimit(.minutes(10)))
struct StreamingSessionTests {
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

    @Test("A stream whose compressed body is truncated ends with an error after its bytes", .covers("C-44"))
    func truncated() async throws {
        let (exchange, body) = try await stream(decoder: TruncatedDecoder())
        _ = try exchange.receive("abcd")
        exchange.complete()
        var received = Data()
        let error = await #expect(throws: URLError.self) {
            for try await bytes in body { received += bytes }
        }
        #expect(error?.code == .cannotDecodeContentData && received == Data("abcd".utf8))
    }

    @Test("The code that follows a redirect does not run on the queue of the session")
    func redirect() async throws {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "session")
        queue.setSpecific(key: key, value: true)
        let isOnQueue = Collected<Bool>()
        let session = HandStreamingSession { isOnQueue.add(DispatchQueue.getSpecific(key: key) ?? false) }
        let exchange = Exchange(Pipeline(session: session), WebService.make().GET("/x").context)
        exchange.start(try Request(url: "https://h/x").encode()) { _ in }
        let first = await session.exchanges.wait()[0]
        queue.async {
            try? first.receive(status: 302, fields: "Location: /y\r\n")  // the receiver throws no error
            first.complete()
        }
        #expect(await isOnQueue.wait(for: 2) == [false, false])
        exchange.cancel()
    }
}
