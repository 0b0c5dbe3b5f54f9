import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

@Suite("Byte connections: back-pressure", .permit)
struct ByteConnectionPressureTests {
    private let session: CurlSession

    init() throws {
        session = try CurlSession { $0.proxy = .none }
    }

    @Test("While nothing is received, the peer cannot send, and memory does not grow", .exclusive)
    func slowReader() async throws {
        let total = 64 << 20
        let sent = Box(0)
        let peer = try BytePeer { connection in
            _ = connection.receive(1)
            let piece = [UInt8](repeating: 1, count: 64 << 10)
            while sent.value < total, connection.send(piece) { sent.change { $0 += piece.count } }
        }
        let connection = try await session.connect(port: peer.port)
        let before = Resources.residentMemory
        try await connection.send(Data("x".utf8))
        // The buffers of the system fill up.
        let stalled = try await Self.settled { sent.value }
        #expect(stalled < 24 << 20)
        #expect(Resources.residentMemory - before < 8 << 20)
        #expect(connection.metrics.bytesReceived <= 64 << 10)
        var count = 0
        while case let bytes = try await connection.receive(), !bytes.isEmpty { count += bytes.count }
        #expect(count == total)
    }

    @Test("While the peer does not receive, sending waits, and other connections do not", .exclusive)
    func slowPeer() async throws {
        let release = ThreadSignal()
        let received = Box(0)
        let peer = try BytePeer { connection in
            release.wait()
            while case let bytes = connection.receive(), !bytes.isEmpty { received.change { $0 += bytes.count } }
        }
        let connection = try await session.connect(port: peer.port)
        let piece = Data(repeating: 2, count: 1 << 20)
        let sent = Box(0)
        async let sending: Void = {
            for _ in 0..<64 {
                try await connection.send(piece)
                sent.change { $0 += piece.count }
            }
            connection.close()
        }()
        let stalled = try await Self.settled { sent.value }
        #expect(stalled < 24 << 20)
        let other = try BytePeer.echo()
        #expect(try await session.connect(port: other.port).exchange(piece) == piece)
        #expect(sent.value < 24 << 20)  // the system's buffers may still grow
        release.signal()
        try await sending
        await eventually("all bytes arrive") { received.value == 64 << 20 }
    }

    @Test("A connection that sends and receives more than all buffers hold does not stall")
    func bothDirections() async throws {
        let peer = try BytePeer.echo()
        let connection = try await session.connect(port: peer.port)
        let bytes = ByteConnectionTests.bytes(24 << 20)
        #expect(try await connection.exchange(bytes) == bytes)
    }

    /// Returns the value once it has not changed while a hundred small exchanges took place.
    private static func settled(_ value: () -> Int) async throws -> Int {
        let echo = try BytePeer.echo()
        let session = try CurlSession { $0.proxy = .none }
        let probe = try await session.connect(port: echo.port)
        var last = -1
        var rounds = 0
        await eventually("the value settles") {
            for _ in 0..<20 { _ = await outcome { try await probe.exchange(Data("x".utf8)) } }
            rounds = value() == last && last > 0 ? rounds + 1 : 0
            last = value()
            return rounds == 20
        }
        return last
    }

    @Test("A call of a cancelled task ends the connection, also if bytes have arrived")
    func cancelledBefore() async throws {
        let peer = try BytePeer { connection in
            connection.send([1])
            connection.awaitEnd()
        }
        let connection = try await session.connect(port: peer.port)
        await eventually("the byte has arrived") { connection.metrics.bytesReceived == 1 }
        let task = Task { () -> URLError.Code? in
            while !Task.isCancelled { await Task.yield() }
            return await outcome { try await connection.receive() }.urlErrorCode
        }
        task.cancel()
        #expect(await task.value == .cancelled)
        await eventually("the peer notices") { peer.openCount == 0 }
        let connecting = Task { [session] () -> URLError.Code? in
            while !Task.isCancelled { await Task.yield() }
            return await outcome { try await session.connect(port: peer.port) }.urlErrorCode
        }
        connecting.cancel()
        #expect(await connecting.value == .cancelled)
        #expect(peer.acceptedCount == 1)
    }

    @Test("The connect timeout applies")
    func connectTimeout() async throws {
        let listener = try FullListener()
        let result = await outcome {
            try await session.connect(port: listener.port) { $0.options.connectTimeout = .milliseconds(50) }
        }
        #expect(result.urlErrorCode == .cannotConnectToHost)
    }
}
