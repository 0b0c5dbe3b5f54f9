import Foundation
import LoopbackSocket
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

/// A client that sends exactly the bytes it is given. Reading stops after 90 seconds, so that a
/// test fails instead of hanging.
final class RawClient {
    private let socket: Socket
    private var unread = Data()
    /// Whether the connection ended with a reset.
    private(set) var wasReset = false

    init(_ server: MockServer) throws {
        let plain = LoopbackSocket(descriptor: try system("socket", orThrow: .mockServer, newSocket))
        plain.configure()
        socket = Socket(plain)
        socket.limitReceiving(seconds: 90)
        try LoopbackSocket.withAddress(port: UInt16(server.port)) { address, size in
            _ = try system("connect", orThrow: .mockServer) { connect(socket.descriptor, address, size) }
        }
    }

    deinit {
        socket.release()
    }

    @discardableResult
    func send(_ text: String) -> Bool {
        send(Data(text.utf8))
    }

    @discardableResult
    func send(_ data: Data) -> Bool {
        socket.send(data)
    }

    /// Closes the sending side and continues to read.
    func finishSending() {
        socket.finishSending()
    }

    /// Makes the end of this client a reset instead of an orderly close.
    func resetAtEnd() {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(socket.descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads until the server closes the connection.
    func readToEnd() -> String {
        while fill() {}
        return take(unread.count)
    }

    /// Reads up to and including a string, or to the end if the server closes the connection first.
    func read(through end: String) -> String {
        while true {
            if let range = unread.firstRange(of: Data(end.utf8)) { return take(range.upperBound - unread.startIndex) }
            guard fill() else { return take(unread.count) }
        }
    }

    /// Reads the given number of bytes.
    func read(count: Int) -> String {
        while unread.count < count, fill() {}
        return take(min(count, unread.count))
    }

    /// Returns whether bytes or the end of the connection arrive within a duration.
    func hasNews(within milliseconds: Int32) -> Bool {
        var descriptors = [pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)]
        return !unread.isEmpty || poll(&descriptors, 1, milliseconds) > 0
    }

    /// Reads one response, whose head specifies its length.
    func readResponse() -> (head: String, body: String) {
        let head = read(through: "\r\n\r\n")
        let length = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }?.dropFirst(
            16)
        return (head, read(count: length.flatMap { Int($0) } ?? 0))
    }

    private func fill() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        errno = 0
        let count = socket.receive(into: &buffer)
        wasReset = count == 0 && errno == ECONNRESET
        unread.append(contentsOf: buffer[..<count])
        return count > 0
    }

    private func take(_ count: Int) -> String {
        let text = String(decoding: unread.prefix(count), as: UTF8.self)
        unread = Data(unread.dropFirst(count))
        return text
    }
}

private func newSocket() -> Int32 {
    socket(AF_INET, LoopbackSocket.streamType, 0)
}

extension MockServer {
    /// Returns what the server sends in response to some bytes, up to the end of the connection.
    /// The client closes its sending side after them.
    func reply(to bytes: String) throws -> String {
        let client = try RawClient(self)
        client.send(bytes)
        client.finishSending()
        return client.readToEnd()
    }
}
