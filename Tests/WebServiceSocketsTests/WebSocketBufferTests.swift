import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets
import WebSocketCodec

@Suite("WebSocket: the bytes that wait to be sent", .permit)
struct WebSocketBufferTests {
    private let clock = TestClock()

    private func channel(over connection: HandConnection) -> WebSocketChannel {
        var settings = WebSocketChannel.Settings()
        settings.protocolOptions.deflate = DeflateParameters()
        let clock = WebService(baseURLString: "https://api.test", clock: clock).taskClock
        let channel = WebSocketChannel(.client, over: connection, settings, clock)
        channel.start(with: Data())
        return channel
    }

    @Test("The content of each message counts until all of it was written")
    func count() async throws {
        let connection = HandConnection(holdsSending: true)
        let channel = channel(over: connection)
        #expect(channel.unwrittenBytes == 0)
        try await channel.send(.text("grüße"))
        #expect(channel.unwrittenBytes == 7)
        // The frames are smaller, because they are compressed.
        try await channel.send(.data(Data(count: 100_000)))
        #expect(channel.unwrittenBytes == 100_007)
        connection.add([0x89, 0x00])
        await clock.advance(by: .zero)
        #expect(channel.unwrittenBytes == 100_007)
        connection.allowSending()
        await clock.advance(by: .zero)
        #expect(channel.unwrittenBytes == 0)
        #expect(connection.events.contains(.pong(Data())))
        channel.cancel()
    }

    @Test("Pongs and pings do not count, and do not complete a message early")
    func pongs() async throws {
        let connection = HandConnection(holdsSending: true)
        let channel = channel(over: connection)
        try await channel.send(.text("first"))
        try await channel.send(.text("second"))
        for _ in 1...16 { connection.add([0x89, 0x7D] + Array(repeating: 1, count: 125)) }
        await clock.advance(by: .zero)
        let written = Collected<Bool>()
        try channel.enqueue(.text("third")) { written.add((try? $0.get()) != nil) }  // false for an error
        await clock.advance(by: .zero)
        #expect(channel.unwrittenBytes == 16)
        #expect(written.values == [])
        connection.allowSending()
        await clock.advance(by: .zero)
        #expect(channel.unwrittenBytes == 0)
        #expect(written.values == [true])
        channel.cancel()
    }

    @Test("The end of the connection fails the messages that were not written, which still count")
    func end() async throws {
        let connection = HandConnection(holdsSending: true)
        let channel = channel(over: connection)
        let errors = Collected<(any Error)?>()
        try channel.enqueue(.text("lost")) { result in
            if case .failure(let error) = result { errors.add(error) } else { errors.add(nil) }
        }
        connection.endInput()
        await clock.advance(by: .zero)
        #expect(urlCode(errors.values.first ?? nil) == .networkConnectionLost)
        connection.allowSending()
        await clock.advance(by: .zero)
        #expect(errors.values.count == 1)
        #expect(channel.unwrittenBytes == 4)
    }

    @Test("A message that is being written when the peer closes is completed, and later ones fail")
    func writtenAfterClose() async throws {
        let connection = HandConnection(holdsSending: true)
        let channel = channel(over: connection)
        let results = Collected<String>()
        for text in ["first", "second"] {
            try channel.enqueue(.text(text)) { result in
                if case .failure(let error) = result {
                    results.add("\(text) \(code(error) == .webSocketClosed)")
                } else {
                    results.add(text)
                }
            }
        }
        connection.add([0x88, 0x02, 0x03, 0xE8])
        await clock.advance(by: .zero)
        #expect(results.values == ["second true"])
        connection.allowSending()
        await clock.advance(by: .zero)
        #expect(results.values == ["second true", "first"])
        #expect(
            connection.events == [
                .message(.text("first")), .message(.text("second")), .closed(WebSocketClosure(.normalClosure)),
            ])
        #expect(channel.unwrittenBytes == 6)
    }

    @Test("A server that does not read holds bytes back", arguments: SocketTransport.allCases)
    func backPressure(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        stubs.on(
            .GET, "/deaf",
            .webSocket(compresses: false) { socket in
                _ = await gate.value
                while try await socket.next() != nil {}
            })
        let socket = try await service.webSocket("/deaf")
        #expect(socket.bufferedByteCount == 0)
        let sender = Task {
            for _ in 1...8 { try await socket.send(Data(count: 4 << 20)) }
        }
        await eventually { socket.bufferedByteCount > 0 }
        #expect(socket.bufferedByteCount.isMultiple(of: 4 << 20))
        gate.set(true)
        try await sender.value
        await eventually { socket.bufferedByteCount == 0 }
        try await socket.close()
    }
}
