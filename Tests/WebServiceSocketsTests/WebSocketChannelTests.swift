import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceSockets
import WebSocketCodec

/// The client's end of a connection, over bytes that the test controls.
@Suite("WebSocket: a channel over a byte connection", .permit)
struct WebSocketChannelTests {
    private let clock = TestClock()

    private func channel(
        over connection: HandConnection, _ change: (inout WebSocketChannel.Settings) -> Void = { _ in }
    ) -> WebSocketChannel {
        var settings = WebSocketChannel.Settings()
        change(&settings)
        let clock = WebService(baseURLString: "https://api.test", clock: clock).taskClock
        let channel = WebSocketChannel(.client, over: connection, settings, clock)
        channel.start(with: Data())
        return channel
    }

    private static let violation: [UInt8] = [0x83, 0x00]
    private static let close: [UInt8] = [0x88, 0x02, 0x03, 0xE8]

    // MARK: Close frames

    @Test("The Close frame of a violation leaves before the connection is closed")
    func closeAfterViolation() async throws {
        let connection = HandConnection([Self.violation], holdsSending: true)
        let channel = channel(over: connection)
        #expect(code(await failure { _ = try await channel.next() }) == .webSocketViolation)
        await clock.advance(by: .zero)
        #expect(!connection.isClosed)
        connection.allowSending()
        await clock.advance(by: .zero)
        #expect(connection.events == [.closed(WebSocketClosure(.protocolError))])
        // Closing would reset the connection if the peer still sends.
        connection.add(Array(repeating: 0x83, count: 100))
        await clock.advance(by: .zero)
        #expect(connection.receivedCount == 2)
        #expect(!connection.isClosed)
        connection.endInput()
        await clock.advance(by: .zero)
        #expect(connection.isClosed)
    }

    @Test(
        "A Close frame is sent completely although the peer has ended its bytes",
        arguments: [(violation, WebSocketClosure.Code.protocolError), (close, .normalClosure)])
    func closeAfterEnd(bytes: [UInt8], code: WebSocketClosure.Code) async throws {
        let connection = HandConnection([bytes], holdsSending: true)
        connection.endInput()
        let channel = channel(over: connection)
        _ = await failure { _ = try await channel.next() }
        await clock.advance(by: .zero)
        #expect(!connection.isClosed)
        connection.allowSending()
        await clock.advance(by: .zero)
        #expect(connection.events == [.closed(WebSocketClosure(code))])
        #expect(connection.isClosed)
    }

    @Test(
        "A peer that does not read or does not end the connection delays its end by the timeout only",
        arguments: [true, false])
    func closeTimeout(holdsSending: Bool) async throws {
        let connection = HandConnection([Self.violation], holdsSending: holdsSending)
        let channel = channel(over: connection) { $0.closeTimeout = .seconds(3) }
        #expect(code(await failure { _ = try await channel.next() }) == .webSocketViolation)
        await clock.advance(by: .milliseconds(2_999))
        #expect(!connection.isClosed)
        await clock.advance(by: .milliseconds(1))
        #expect(connection.isClosed)
    }

    // MARK: Floods

    @Test(
        "Messages of few bytes fill the buffer",
        arguments: [[0x81, 0x00], [0x82, 0x00], [0xC1, 0x01, 0x00], [0x81, 0x01, 0x61]] as [[UInt8]])
    func fewBytes(frame: [UInt8]) async throws {
        let piece = Array(repeatElement(frame, count: 4_096).joined())
        let connection = HandConnection(Array(repeating: piece, count: 100))
        let channel = channel(over: connection) { $0.protocolOptions.deflate = DeflateParameters() }
        await clock.advance(by: .zero)
        #expect(connection.receivedCount == 1)
        for _ in 0..<3 * 4_096 { _ = try await channel.next() }
        await clock.advance(by: .zero)
        #expect((4...5).contains(connection.receivedCount))
        channel.cancel()
    }

    @Test(
        "A peer that sends without end does not hold the thread that starts",
        arguments: [0x89, 0x8A] as [UInt8])
    func endlessPings(opcode: UInt8) async throws {
        let piece = Array(repeatElement([opcode, 0x00], count: 2_048).joined())
        let connection = HandConnection(Array(repeating: piece, count: 500))
        let channel = channel(over: connection)
        #expect(connection.receivedCount < 500)
        channel.cancel()
    }

    // MARK: Pings

    @Test("Pings are sent while messages wait, until the buffer is full")
    func pingsWithMessages() async throws {
        let connection = HandConnection([[0x81, 0x01, 0x61]])
        let channel = channel(over: connection) { $0.pingInterval = .seconds(30) }
        await clock.advance(by: .seconds(30))
        #expect(connection.events == [.ping(Data())])
        connection.add([0x8A, 0x00])
        await clock.advance(by: .seconds(30))
        #expect(connection.events == [.ping(Data()), .ping(Data())])
        await clock.advance(by: .seconds(30))
        #expect(try await channel.next() == .text("a"))
        #expect(urlCode(await failure { _ = try await channel.next() }) == .timedOut)
    }

    @Test("No ping is sent while the buffer is full, and the connection stays open")
    func noPings() async throws {
        let connection = HandConnection([[0x81, 0x01, 0x61], [0x81, 0x01, 0x62]])
        let channel = channel(over: connection) { ($0.pingInterval, $0.bufferSize) = (.seconds(30), 1) }
        await clock.advance(by: .seconds(3_600))
        #expect(connection.events == [])
        #expect(try await channel.next() == .text("a"))
        #expect(try await channel.next() == .text("b"))
        await clock.advance(by: .seconds(30))
        #expect(connection.events == [.ping(Data())])
        channel.cancel()
    }
}
