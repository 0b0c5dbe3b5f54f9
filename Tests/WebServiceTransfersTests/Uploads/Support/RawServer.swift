import Foundation
import TestSupport

/// A server that receives bodies while they arrive.
final class RawServer: Sendable {
    /// A connection with a request whose body has not been read.
    struct Connection {
        fileprivate let socket: Int32
        let method: String
        /// The fields by their lower-case names.
        let fields: [String: String]
        /// The bytes after the head that were already received.
        private var pending: Data

        /// Reads a head.
        ///
        /// - Returns: `nil` at the end of the connection.
        fileprivate init?(_ socket: Int32) {
            var bytes = Data()
            let end = Data("\r\n\r\n".utf8)
            while bytes.firstRange(of: end) == nil {
                guard let more = Self.receive(socket) else { return nil }
                bytes += more
            }
            guard let range = bytes.firstRange(of: end) else { return nil }
            let lines = String(decoding: bytes[..<range.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
            self.socket = socket
            method = lines[0].components(separatedBy: " ")[0]
            fields = Dictionary(
                lines.dropFirst().map { line in
                    let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                    return (parts[0].lowercased(), (parts.last ?? "").trimmingCharacters(in: .whitespaces))
                }, uniquingKeysWith: { $1 })
            pending = Data(bytes[range.upperBound...])
        }

        private static func receive(_ socket: Int32) -> Data? {
            var room = [UInt8](repeating: 0, count: 64 << 10)
            let count = recv(socket, &room, room.count, 0)
            return count > 0 ? Data(room[..<count]) : nil
        }

        /// Sends lines of a head and the empty line.
        ///
        /// - Returns: Whether they were sent.
        func answer(_ lines: String) -> Bool {
            let bytes = Data((lines + "\r\n\r\n").utf8)
            return bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) } == bytes.count
        }

        /// Passes on the bytes of the body, until the closure returns `false`.
        ///
        /// - Returns: Whether the whole body was read.
        mutating func readBody(_ take: (Data) -> Bool) -> Bool {
            var rest = Int(fields["content-length"] ?? "") ?? 0
            while rest > 0 {
                if pending.isEmpty {
                    guard let more = Self.receive(socket) else { return false }
                    pending = more
                }
                rest -= pending.count
                guard take(pending) else { return false }
                pending = Data()
            }
            return true
        }
    }

    private let listener: LoopbackListener

    /// - Parameter serve: Serves a request, and returns whether the connection stays open.
    init(_ serve: @escaping @Sendable (inout Connection) -> Bool) throws {
        listener = try LoopbackListener()
        listener.serve { socket in
            while var connection = Connection(socket), serve(&connection) {}
            close(socket)
        }
        Permit.atEnd { [listener] in listener.stop() }
    }

    var url: String { "http://127.0.0.1:\(listener.port)" }
}
