import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

@Suite("Byte connections: back-pressure and cancellation", .permit)
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
        #expect(sent.value == stalled)
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

    // MARK: Cancellation

    /// Cancels a call once it waits, and returns its result and the duration until it ended.
    private func cancelled<Value: Sendable>(
        when isWaiting: () -> Bool, _ body: @escaping @Sendable () async throws -> Value
    ) async -> (URLError.Code?, Duration) {
        let task = Task { await outcome(body) }
        await eventually("the call waits") { isWaiting() }
        let start = ContinuousClock.now
        task.cancel()
        let code = await task.value.urlErrorCode
        return (code, start.duration(to: .now))
    }

    @Test("A cancelled call that receives ends at once, with its connection", .exclusive)
    func cancelReceive() async throws {
        let peer = try BytePeer { $0.awaitEnd() }
        let connection = try await session.connect(port: peer.port)
        let (code, duration) = await cancelled(when: { peer.openCount == 1 }) { try await connection.receive() }
        #expect(code == .cancelled)
        #expect(duration < .milliseconds(100))
        await eventually("the peer notices") { peer.openCount == 0 }
        #expect(await outcome { try await connection.send(Data("x".utf8)) }.urlErrorCode == .cancelled)
    }

    @Test("A cancelled call that sends ends at once, with its connection", .exclusive)
    func cancelSend() async throws {
        let release = ThreadSignal()
        let peer = try BytePeer { connection in
            release.wait()
            connection.awaitEnd()
        }
        let connection = try await session.connect(port: peer.port)
        let (code, duration) = await cancelled(when: { peer.openCount == 1 }) {
            try await connection.send(Data(count: 64 << 20))
        }
        #expect(code == .cancelled)
        #expect(duration < .milliseconds(100))
        release.signal()
        await eventually("the peer notices") { peer.openCount == 0 }
        #expect(await outcome { try await connection.receive() }.urlErrorCode == .cancelled)
    }

    @Test("A cancelled connect ends at once, while the peer does not accept", .exclusive)
    func cancelConnect() async throws {
        let listener = try FullListener()
        let port = listener.port
        let (code, duration) = await cancelled(when: { true }) { [session] in
            try await session.connect(port: port)
        }
        #expect(code == .cancelled)
        #expect(duration < .milliseconds(100))
    }

    @Test("A cancelled connect ends at once, while a closure looks the host up", .exclusive)
    func cancelResolver() async throws {
        let isCalled = Box(false)
        let session = try CurlSession {
            $0.proxy = .none
            $0.resolver = { _, _ in
                isCalled.change { $0 = true }
                try await Task.sleep(for: .seconds(600))
                return nil
            }
        }
        let (code, duration) = await cancelled(when: { isCalled.value }) {
            try await session.connect(port: 9, host: "brewery.example")
        }
        #expect(code == .cancelled)
        #expect(duration < .milliseconds(100))
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
