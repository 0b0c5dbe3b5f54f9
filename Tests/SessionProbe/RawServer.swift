import Foundation

/// A server on a loopback address, for bytes that `MockServer` never sends.
///
/// A closure serves each connection.
final class RawServer: Sendable {
    struct Failure: Error { let call: String, number: Int32 }

    let port: Int
    private let listener: Int32

    /// Creates and starts a server.
    ///
    /// - Parameters:
    ///   - isIPv6: Whether the server listens on `::1` instead of 127.0.0.1.
    ///   - serve: Called for each connection on a separate thread. The connection is closed
    ///     afterwards.
    init(isIPv6: Bool = false, serve: @escaping @Sendable (Connection) -> Void) throws {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let listener = socket(isIPv6 ? AF_INET6 : AF_INET, type, 0)
        guard listener >= 0 else { throw Failure(call: "socket", number: errno) }
        var storage = sockaddr_storage()
        let failed = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                $0.pointee.sin_family = sa_family_t(AF_INET)
                $0.pointee.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
            }
            if isIPv6 {
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    $0.pointee = sockaddr_in6()
                    $0.pointee.sin6_family = sa_family_t(AF_INET6)
                    $0.pointee.sin6_addr = in6addr_loopback
                }
            }
            var length = socklen_t(isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
            return pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) != 0 || listen(listener, 64) != 0 || getsockname(listener, $0, &length) != 0
            }
        }
        if failed { throw Failure(call: "bind", number: errno) }
        // The port has the same offset in both address structures.
        port = withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { Int(UInt16(bigEndian: $0.pointee.sin_port)) }
        }
        self.listener = listener
        Thread.detachNewThread {
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                Thread.detachNewThread {
                    serve(Connection(descriptor: descriptor))
                    close(descriptor)
                }
            }
        }
    }

    struct Connection: Sendable {
        fileprivate let descriptor: Int32

        /// Reads a request without a body.
        ///
        /// - Returns: The request target; `nil` at the end of the connection.
        func readHead() -> String? {
            var head: [UInt8] = []
            var byte: UInt8 = 0
            while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
                head.append(byte)
            }
            let words = String(decoding: head, as: UTF8.self).split(separator: " ", maxSplits: 2)
            return words.count == 3 ? String(words[1]) : nil
        }

        /// - Returns: Whether the peer still accepts bytes.
        @discardableResult
        func send(_ text: String) -> Bool {
            let bytes = Array(text.utf8)
            var sent = 0
            while sent < bytes.count {
                #if canImport(Glibc)
                let flags = Int32(MSG_NOSIGNAL)
                #else
                let flags: Int32 = 0
                #endif
                let count = bytes.withUnsafeBytes {
                    Foundation.send(descriptor, $0.baseAddress.map { $0 + sent }, $0.count - sent, flags)
                }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }

        /// Waits until the peer closes the connection.
        func waitForEnd() {
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
        }
    }
}
