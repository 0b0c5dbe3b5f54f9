// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport

/// A server at a certain address, which responds to one request of each connection.
final class AddressServer: Sendable {
    /// Returns a response with header for the head of a request.
    typealias Responder = @Sendable (_ head: String) -> String

    struct Failure: Error {}

    let port: Int
    /// The local addresses of the connections accepted so far.
    var addresses: [String] { accepted.value }
    private let descriptor: Int32
    private let accepted = Box<[String]>([])

    static let ale: Responder = { _ in "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nale" }

    /// Starts a server that stops at the end of the test.
    ///
    /// - Parameter address: An address, or `::` for all of IPv4 and IPv6.
    init(_ address: String, port: Int = 0, _ respond: @escaping Responder = AddressServer.ale) throws {
        let isIPv6 = address.contains(":")
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, type, 0)
        self.descriptor = descriptor
        var off: Int32 = 0
        if isIPv6 {
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, socklen_t(MemoryLayout<Int32>.size))
        }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        self.port = try withUnsafeMutablePointer(to: &storage) { storage in
            let isListening = storage.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { six in
                six.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { four in
                    // The port is at the same offset in both.
                    four.pointee.sin_port = UInt16(port).bigEndian
                    if isIPv6 {
                        six.pointee.sin6_family = sa_family_t(AF_INET6)
                        guard inet_pton(AF_INET6, address, &six.pointee.sin6_addr) == 1 else { return false }
                    } else {
                        four.pointee.sin_family = sa_family_t(AF_INET)
                        guard inet_pton(AF_INET, address, &four.pointee.sin_addr) == 1 else { return false }
                    }
                    let size = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
                    return four.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                        bind(descriptor, general, socklen_t(size)) == 0 && listen(descriptor, 64) == 0
                            && getsockname(descriptor, general, &length) == 0
                    }
                }
            }
            guard isListening else { throw Failure() }
            return storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                Int(UInt16(bigEndian: $0.pointee.sin_port))
            }
        }
        Permit.atEnd { shutdown(descriptor, Int32(SHUT_RDWR)) }
        let accepted = accepted
        Thread.detachNewThread {
            while case let client = accept(descriptor, nil, nil), client >= 0 || errno == EINTR || errno == ECONNABORTED
            {
                guard client >= 0 else { continue }
                accepted.change { $0.append(Self.localAddress(of: client)) }
                Thread.detachNewThread { Self.serve(client, respond) }
            }
            close(descriptor)
        }
    }

    /// Starts servers at two addresses with the same port.
    ///
    /// - Parameter respond: Returns a response of the second one.
    static func pair(
        _ first: String, _ second: String, _ respond: @escaping @Sendable (_ port: Int) -> String = { _ in ale("") }
    ) throws -> (AddressServer, AddressServer) {
        for _ in 0..<20 {
            let server = try AddressServer(first)
            let port = server.port
            if let other = try? AddressServer(second, port: port, { _ in respond(port) }) {  // the port is taken
                return (server, other)
            }
        }
        throw Failure()
    }

    private static func serve(_ client: Int32, _ respond: Responder) {
        defer { close(client) }
        let connection = BytePeerConnection(socket: client)
        var head: [UInt8] = []
        while head.suffix(4) != [0x0D, 0x0A, 0x0D, 0x0A] {
            let bytes = connection.receive()
            if bytes.isEmpty { return }
            head += bytes
        }
        connection.send(Array(respond(String(decoding: head, as: UTF8.self)).utf8))
        connection.endOutput()
        connection.awaitEnd()
    }

    private static func localAddress(of socket: Int32) -> String {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                guard getsockname(socket, general, &length) == 0 else { return "" }
                var text = [CChar](repeating: 0, count: 64)
                guard getnameinfo(general, length, &text, 64, nil, 0, NI_NUMERICHOST) == 0 else { return "" }
                return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            }
        }
    }
}
