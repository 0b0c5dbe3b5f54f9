import CCurl
import Foundation
import TestSupport

/// A relay in front of a TLS server that forwards records (RFC 8446, section 5.1) and can drop the
/// server's alerts, as an attacker on the path can.
final class TLSRelay: Sendable {
    var port: Int { listener.port }
    private let listener: LoopbackListener

    /// - Parameter dropsAlerts: Whether the server's alerts, such as `close_notify`, are dropped
    ///   before the connection ends.
    init(to target: Int, dropsAlerts: Bool) throws {
        listener = try LoopbackListener()
        listener.serve { Self.serve($0, target, dropsAlerts) }
    }

    private static func serve(_ client: Int32, _ target: Int, _ dropsAlerts: Bool) {
        let server = LoopbackListener.newSocket()
        let isConnected = LoopbackListener.connect(server, to: target)
        let upstream = DispatchGroup()
        if isConnected {
            upstream.enter()
            Thread.detachNewThread {
                var room = [UInt8](repeating: 0, count: 16 << 10)
                while case let count = read(client, &room, room.count), count > 0, write(room[..<count], to: server) {}
                shutdown(server, Int32(SHUT_WR))
                upstream.leave()
            }
            while let record = record(from: server) {
                // TLS 1.2 exposes the type of an alert. In TLS 1.3 the alert is encrypted: two
                // bytes, the type and a tag of 16 bytes.
                let isAlert = record[0] == 21 || record[0] == 23 && record.count == 5 + 19
                guard !(dropsAlerts && isAlert), write(record[...], to: client) else { break }
            }
        }
        shutdown(server, Int32(SHUT_RDWR))
        shutdown(client, Int32(SHUT_RDWR))
        if isConnected { upstream.wait() }
        close(server)
        close(client)
    }

    private static func record(from socket: Int32) -> [UInt8]? {
        guard let head = bytes(5, from: socket), let body = bytes(Int(head[3]) << 8 | Int(head[4]), from: socket) else {
            return nil
        }
        return head + body
    }

    private static func bytes(_ count: Int, from socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let received = bytes.withUnsafeMutableBytes {
                read(socket, $0.baseAddress?.advanced(by: filled), count - filled)
            }
            guard received > 0 else { return nil }
            filled += received
        }
        return bytes
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            #if canImport(Glibc)
            let sent = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            #else
            let sent = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, 0) }
            #endif
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }
}
