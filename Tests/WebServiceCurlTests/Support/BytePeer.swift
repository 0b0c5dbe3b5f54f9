// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport
import WebServiceCore

/// A server on loopback whose connections a closure serves, each on a thread of its own.
///
/// The closure returns at the end of a connection, which is then closed.
final class BytePeer: Sendable {
    typealias Connection = BytePeerConnection

    var port: Int { listener.port }
    /// The number of connections that were accepted.
    var acceptedCount: Int { counts.value.accepted }
    /// The number of connections that are open.
    var openCount: Int { counts.value.accepted - counts.value.closed }
    private let listener: LoopbackListener
    private let counts = Box((accepted: 0, closed: 0))

    init(backlog: Int32 = 1_024, _ serve: @escaping @Sendable (Connection) -> Void) throws {
        listener = try LoopbackListener(backlog: backlog)
        listener.serve { [counts] socket in
            counts.change { $0.accepted += 1 }
            serve(Connection(socket: socket))
            close(socket)
            counts.change { $0.closed += 1 }
        }
    }

    deinit { listener.stop() }

    /// A server that returns all bytes, and ends after the client has.
    static func echo() throws -> BytePeer {
        try BytePeer { connection in
            while case let bytes = connection.receive(), !bytes.isEmpty, connection.send(bytes) {}
        }
    }
}

struct BytePeerConnection: Sendable {
    let socket: Int32

    /// Returns the next bytes; none at the end.
    func receive(_ maximum: Int = 64 << 10) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: maximum) { buffer, count in
            count = max(0, recv(socket, buffer.baseAddress, maximum, 0))
        }
    }

    /// Sends bytes, and returns whether the client is connected.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { systemSend(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Sends the end of the bytes.
    func endOutput() { shutdown(socket, Int32(SHUT_WR)) }

    /// Lets the end of the connection discard all bytes, which resets it.
    func resetAtEnd() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Waits until the client has ended its bytes, and discards them.
    func awaitEnd() {
        while !receive().isEmpty {}
    }
}

private func systemSend(_ socket: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(socket, bytes, count, flags)
}
