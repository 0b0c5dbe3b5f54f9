// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport
import WebServiceCore

/// A proxy for CONNECT that connects to loopback, whatever the host is.
final class TunnelProxy: Sendable {
    typealias Responder = @Sendable (_ head: String) -> String?

    var port: Int { listener.port }
    /// The heads of the requests received so far.
    var heads: [String] { received.value }
    private let listener: LoopbackListener
    private let received = Box<[String]>([])

    /// - Parameter respond: Returns the head of a response that refuses the tunnel; `nil` opens it.
    init(_ respond: @escaping Responder = { _ in nil }) throws {
        listener = try LoopbackListener(backlog: 64)
        listener.serve { [received] client in
            defer { close(client) }
            while let head = Self.head(from: client) {
                received.change { $0.append(head) }
                if let refusal = respond(head) {
                    guard Self.write(Array(refusal.utf8)[...], to: client) else { return }
                    continue
                }
                let target = head.split(separator: " ").dropFirst().first?.split(separator: ":").last
                let server = LoopbackListener.newSocket()
                defer { close(server) }
                guard LoopbackListener.connect(server, to: target.flatMap { Int($0) } ?? 0),
                    Self.write(Array("HTTP/1.1 200 Connected\r\n\r\n".utf8)[...], to: client)
                else { return }
                let done = ThreadSignal()
                Thread.detachNewThread {
                    Self.copy(client, server)
                    done.signal()
                }
                Self.copy(server, client)
                done.wait()
                return
            }
        }
    }

    func stop() { listener.stop() }

    private static func head(from socket: Int32) -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while bytes.count < 16 << 10, recv(socket, &byte, 1, 0) == 1 {
            bytes.append(byte)
            if bytes.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] { return String(decoding: bytes, as: UTF8.self) }
        }
        return nil
    }

    private static func copy(_ source: Int32, _ target: Int32) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while case let count = recv(source, &buffer, buffer.count, 0), count > 0, write(buffer[..<count], to: target) {}
        shutdown(target, Int32(SHUT_RDWR))
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
