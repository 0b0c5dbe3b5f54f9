import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

@Suite("Byte connections: their end", .permit)
struct ByteConnectionEndTests {
    private let session: CurlSession

    init() throws {
        session = try CurlSession { $0.proxy = .none }
    }

    @Test("After the peer has ended its bytes, all calls receive the end, and bytes can be sent")
    func halfClose() async throws {
        let received = Box<[UInt8]>([])
        let peer = try BytePeer { connection in
            connection.send(Array("last".utf8))
            connection.endOutput()
            while case let bytes = connection.receive(), !bytes.isEmpty { received.change { $0 += bytes } }
        }
        let connection = try await session.connect(port: peer.port)
        #expect(try await connection.receiveAll() == Data("last".utf8))
        #expect(try await connection.receive().isEmpty)
        let bytes = ByteConnectionTests.bytes(300_000)
        try await connection.send(bytes)
        connection.close()
        await eventually("the peer receives all bytes, and the end") { peer.openCount == 0 }
        #expect(received.value == Array(bytes))
    }

    @Test("A reset connection is lost, for both directions")
    func reset() async throws {
        let peer = try BytePeer { connection in
            _ = connection.receive(1)
            connection.resetAtEnd()
        }
        let connection = try await session.connect(port: peer.port)
        async let waiting = outcome { try await connection.receive() }
        try await connection.send(Data("x".utf8))
        #expect(await waiting.urlErrorCode == .networkConnectionLost)
        #expect(await outcome { try await connection.receive() }.urlErrorCode == .networkConnectionLost)
        #expect(await outcome { try await connection.send(Data("x".utf8)) }.urlErrorCode == .networkConnectionLost)
    }

    @Test("A call that sends to a peer that has closed fails, and bytes that arrived before are received")
    func abruptClose() async throws {
        let peer = try BytePeer { $0.send(Array("bye".utf8)) }
        let connection = try await session.connect(port: peer.port)
        await eventually("the peer has closed") { peer.acceptedCount == 1 && peer.openCount == 0 }
        var error: URLError.Code?
        while error == nil { error = await outcome { try await connection.send(Data("x".utf8)) }.urlErrorCode }
        #expect(error == .networkConnectionLost)
        #expect(try await connection.receive() == Data("bye".utf8))
    }

    @Test("close() ends the calls in progress and closes the socket", .exclusive)
    func closing() async throws {
        let peer = try BytePeer { $0.awaitEnd() }
        let warmUp = try await session.connect(port: peer.port)
        await eventually("it is accepted") { peer.openCount == 1 }
        let before = Resources.descriptors
        let connection = try await session.connect(port: peer.port)
        async let waiting = outcome { try await connection.receive() }
        await Task.yield()
        connection.close()
        connection.close()
        #expect(await waiting.urlErrorCode == .cancelled)
        #expect(await outcome { try await connection.receive() }.urlErrorCode == .cancelled)
        #expect(await outcome { try await connection.send(Data("x".utf8)) }.urlErrorCode == .cancelled)
        await eventually("the peer notices") { peer.openCount == 1 }
        if LinkedLibrary.closesConnectionsWithHandle {
            await eventually("the descriptor is closed") { Resources.descriptors <= before }
        }
        warmUp.close()
        await eventually("both are closed") { peer.openCount == 0 && Resources.descriptors < before }
    }

    @Test("Deallocating a connection closes it")
    func deallocation() async throws {
        let (open, closed) = (Box(false), Box(false))
        let peer = try BytePeer { socket in
            // A client of another test may connect to a port that was in use before.
            guard socket.receive() == [1] else { return }
            open.change { $0 = true }
            socket.awaitEnd()
            closed.change { $0 = true }
        }
        var connection: (any ByteConnection)? = try await session.connect(port: peer.port)
        try await connection?.send(Data([1]))
        await eventually("it is open") { open.value }
        connection = nil
        await eventually("it is closed") { closed.value }
    }

    @Test("A connection retains its session")
    func sessionLifetime() async throws {
        let peer = try BytePeer.echo()
        var session: CurlSession? = try CurlSession { $0.proxy = .none }
        let connection = try #require(try await session?.connect(port: peer.port))
        session = nil
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
    }

    @Test("Closing the session with cancellation ends connections, and none are opened afterwards")
    func sessionClosing() async throws {
        let peer = try BytePeer { $0.awaitEnd() }
        let connection = try await session.connect(port: peer.port)
        async let waiting = outcome { try await connection.receive() }
        await Task.yield()
        session.close(.cancelling)
        #expect(await waiting.urlErrorCode == .cancelled)
        #expect(await outcome { try await connection.send(Data("x".utf8)) }.urlErrorCode == .cancelled)
        await eventually("the peer notices") { peer.openCount == 0 }
        let refused = await outcome { try await session.connect(port: peer.port) }
        #expect(refused.code == .sessionClosed)
    }

    @Test("Closing the session without cancellation waits while bytes are transferred, at most for the idle timeout")
    func finishing() async throws {
        let clock = TestClock()
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        let session = try CurlSession(configuration: configuration, timekeeper: clock)
        let peer = try BytePeer.echo()
        let connection = try await session.connect(port: peer.port) { $0.options.timeout = .seconds(10) }
        let isClosed = Box(false)
        async let closed: Void = blocking {
            session.close()
            isClosed.change { $0 = true }
        }
        await eventually("the session accepts no connections") {
            await outcome { try await session.connect(port: peer.port) }.code == .sessionClosed
        }
        await clock.advance(by: .seconds(9))
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        await clock.advance(by: .seconds(9))
        #expect(try await connection.exchange(Data("b".utf8)) == Data("b".utf8))
        #expect(isClosed.value == false)
        async let waiting = outcome { try await connection.receive() }
        await eventually("the idle timeout elapses") {
            await clock.advance(by: .seconds(1))
            return isClosed.value
        }
        #expect(await waiting.urlErrorCode == .cancelled)
        try await closed
    }
}
