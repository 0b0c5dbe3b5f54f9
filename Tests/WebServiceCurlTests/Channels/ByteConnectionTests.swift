import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

@Suite("Byte connections: bytes in both directions", .permit)
struct ByteConnectionTests {
    private let session: CurlSession

    init() throws {
        session = try CurlSession { $0.proxy = .none }
    }

    /// Bytes that differ at each position of a buffer.
    static func bytes(_ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    @Test("Bytes arrive unchanged in both directions", arguments: [1, 14, 15, 16, 17, 4_096, 65_536, 65_537, 3 << 20])
    func echo(count: Int) async throws {
        let peer = try BytePeer.echo()
        let connection = try await session.connect(port: peer.port)
        let bytes = Self.bytes(count)
        #expect(try await connection.exchange(bytes) == bytes)
        #expect(try await connection.exchange(bytes) == bytes)
        #expect(connection.metrics.bytesSent == Int64(count * 2))
        #expect(connection.metrics.bytesReceived == Int64(count * 2))
    }

    @Test("No byte of the request is sent, and a peer may send first")
    func peerFirst() async throws {
        let received = Box<[UInt8]>([])
        let peer = try BytePeer { connection in
            connection.send(Array("hello".utf8))
            let bytes = connection.receive()
            received.change { $0 = bytes }
        }
        let connection = try await session.connect(port: peer.port)
        #expect(try await connection.receive() == Data("hello".utf8))
        try await connection.send(Data("first".utf8))
        #expect(try await connection.receive().isEmpty)
        #expect(received.value == Array("first".utf8))
    }

    @Test("The metrics have the address of the peer, the durations of opening, and no reuse")
    func metrics() async throws {
        let peer = try BytePeer.echo()
        let metrics = try await session.connect(port: peer.port).metrics
        #expect(metrics.remoteAddress == "127.0.0.1")
        #expect(metrics.remotePort == peer.port)
        #expect(metrics.isConnectionReused == false)
        #expect(try #require(metrics.connect) > .zero)
        #expect(metrics.total > .zero)
    }

    @Test("Bytes that arrive before the first call are not lost")
    func earlyBytes() async throws {
        let peer = try BytePeer { $0.send([UInt8](repeating: 7, count: 512 << 10)) }
        var counts: Set<Int> = []
        for _ in 0..<amount(20, thorough: 200) {
            let connection = try await session.connect(port: peer.port)
            for _ in 0..<20 { await Task.yield() }
            counts.insert(try await connection.receiveAll().count)
        }
        #expect(counts == [512 << 10])
        withExtendedLifetime(peer) {}
    }

    @Test("One call receives at most 64 KiB")
    func pieces() async throws {
        let peer = try BytePeer { connection in
            connection.send([UInt8](repeating: 7, count: 1 << 20))
        }
        let connection = try await session.connect(port: peer.port)
        var sizes: [Int] = []
        while case let bytes = try await connection.receive(), !bytes.isEmpty { sizes.append(bytes.count) }
        #expect(sizes.reduce(0, +) == 1 << 20)
        #expect(sizes.allSatisfy { $0 <= 64 << 10 })
    }

    @Test("Bytes of concurrent calls are sent one after another")
    func concurrentSends() async throws {
        let peer = try BytePeer.echo()
        let connection = try await session.connect(port: peer.port)
        let count = 20_000
        async let received = connection.receive(count: 50 * count)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for value in 0..<50 {
                group.addTask { try await connection.send(Data(repeating: UInt8(value), count: count)) }
            }
            try await group.waitForAll()
        }
        let bytes = try await received
        let pieces = stride(from: 0, to: bytes.count, by: count).map { bytes[$0..<min($0 + count, bytes.count)] }
        #expect(bytes.count == 50 * count)
        #expect(pieces.allSatisfy { Set($0).count == 1 })
        #expect(Set(pieces.compactMap(\.first)).count == 50)
    }

    @Test("Concurrent calls receive successive bytes, and all of them the end")
    func concurrentReceives() async throws {
        let peer = try BytePeer { connection in
            let go = connection.receive()
            connection.send(go)
        }
        let connection = try await session.connect(port: peer.port)
        let received = try await withThrowingTaskGroup(of: Data.self) { group in
            for _ in 0..<5 { group.addTask { try await connection.receive() } }
            try await connection.send(Data("x".utf8))
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(received.count { $0 == Data("x".utf8) } == 1)
        #expect(received.count { $0.isEmpty } == 4)
    }

    @Test("No bytes can be sent, which has no effect")
    func empty() async throws {
        let peer = try BytePeer.echo()
        let connection = try await session.connect(port: peer.port)
        try await connection.send(Data())
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        connection.close()
        #expect(await outcome { try await connection.send(Data()) }.urlErrorCode == .cancelled)
    }

    @Test("500 connections are open at once, and each has its own bytes", .exclusive)
    func many() async throws {
        let peer = try BytePeer.echo()
        let connections = try await withThrowingTaskGroup(of: (any ByteConnection).self) { group in
            for _ in 0..<500 { group.addTask { [session] in try await session.connect(port: peer.port) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        await eventually("all are accepted") { peer.openCount == 500 }
        let areEqual = try await withThrowingTaskGroup(of: Bool.self) { group in
            for (index, connection) in connections.enumerated() {
                group.addTask {
                    let bytes = Data("connection \(index) ".utf8) + Self.bytes(index * 40)
                    return try await connection.exchange(bytes) == bytes
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(areEqual.count { $0 } == 500)
        for connection in connections { connection.close() }
        await eventually("all are closed") { peer.openCount == 0 }
    }
}
