import Foundation
package import WebServiceCore

/// An HTTP/1.1 server on 127.0.0.1 for the callback of a browser. Its thread reads the head of one
/// request per connection, and responds with a small page.
package final class LoopbackPageServer: Sendable {
    /// The maximum size of a head, and the maximum number of connections that have not sent a
    /// complete head. Browsers open connections in advance. If there are too many, the oldest one
    /// is closed.
    private static let (maximumHead, maximumConnections) = (64 << 10, 32)

    private struct State {
        /// The listening socket; `nil` after the server was started or closed.
        var listener: LoopbackSocket?
        var isClosed = false
    }

    package let port: UInt16
    private let path: String
    private let message: String
    private let wakeUp: WakeUp
    private let state: Mutex<State>

    /// Listens on a port. If the port is 0, the system selects a free one.
    ///
    /// - Parameters:
    ///   - path: The path of the callback.
    ///   - message: The text of the page for the callback.
    package init(port: UInt16, path: String, message: String) throws(SystemFailure) {
        wakeUp = try WakeUp()
        let listener = try LoopbackSocket.listening(port: port)
        do throws(SystemFailure) { self.port = try listener.port() } catch {
            listener.release()
            throw error
        }
        state = Mutex(State(listener: listener))
        (self.path, self.message) = (path, message)
    }

    deinit { close() }

    /// Starts to respond to requests. A second call has no effect.
    ///
    /// - Parameter accept: Receives the URL of each GET request with the path of the callback.
    ///   Returns what follows when the page has been sent; `nil` if the URL is not the expected one.
    ///   The process may end after that.
    package func start(accept: @escaping @Sendable (_ url: String) -> (@Sendable () -> Void)?) {
        guard let listener = state.withLock({ $0.listener.take() }) else { return }
        do throws(SystemFailure) {
            try JoinableThread { [self] in serve(listener, accept) }.detach()
        } catch {
            listener.release()  // the wait for the callback then times out
        }
    }

    /// Stops listening.
    package func close() {
        let listener = state.withLock { state in
            state.isClosed = true
            return state.listener.take()
        }
        listener?.release()
        wakeUp.signal()
    }

    private var isClosed: Bool { state.withLock(\.isClosed) }

    private func serve(_ listener: LoopbackSocket, _ accept: (String) -> (@Sendable () -> Void)?) {
        var connections: [(socket: LoopbackSocket, head: [UInt8])] = []
        defer { for socket in connections.map(\.socket) + [listener] { socket.release() } }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while !isClosed {
            let descriptors = [wakeUp.reader, listener.descriptor] + connections.map(\.socket.descriptor)
            var waits = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&waits, .init(waits.count), -1)  // after EINTR, no descriptor is readable
            let readable = Set(waits.filter { $0.revents != 0 }.map(\.fd))
            wakeUp.clear()
            connections = connections.compactMap { connection in
                guard readable.contains(connection.socket.descriptor) else { return connection }
                let count = connection.socket.receive(into: &buffer)
                let head = connection.head + buffer[..<count]
                if let response = response(toHead: head, accept) {
                    _ = connection.socket.send(Data(response.page.utf8))
                    response.next?()
                } else if count > 0, head.count <= Self.maximumHead {
                    return (connection.socket, head)
                }
                connection.socket.release()
                return nil
            }
            guard readable.contains(listener.descriptor) else { continue }
            switch listener.accepted() {
            case .noClient: break
            case .noDescriptor: usleep(20_000)  // the pending connection would end every wait immediately
            case .client(let new):
                connections.append((new, []))
                if connections.count > Self.maximumConnections { connections.removeFirst().socket.release() }
            }
        }
    }

    /// Returns the response to a complete head and what follows, or `nil` if the head is incomplete.
    private func response(
        toHead head: [UInt8], _ accept: (String) -> (@Sendable () -> Void)?
    ) -> (page: String, next: (@Sendable () -> Void)?)? {
        guard head.holds("\r\n\r\n".utf8) else { return nil }
        let line = head.prefix { $0 != 0x0D }.split(separator: 0x20, omittingEmptySubsequences: false)
        guard line.count == 3, ASCII.isVisible(line[1]) else {
            return (page("400 Bad Request", "The request is invalid."), nil)
        }
        let target = String(decoding: line[1], as: UTF8.self)
        guard target.utf8.prefix(while: { !"?#".utf8.contains($0) }).elementsEqual(path.utf8) else {
            return (page("404 Not Found", "This page does not exist."), nil)
        }
        guard line[0].elementsEqual("GET".utf8) else {
            return (page("405 Method Not Allowed", "Only GET is supported."), nil)
        }
        guard !isClosed, let next = accept("http://127.0.0.1:\(port)\(target)") else {
            return (page("400 Bad Request", "This log-in is not expected. Start a new one in the program."), nil)
        }
        return (page("200 OK", message), next)
    }

    private func page(_ status: String, _ message: String) -> String {
        let text = message.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
        let body = "<!DOCTYPE html><meta charset=\"utf-8\"><title>Log-in</title><p>\(text)</p>\n"
        let fields = [
            "HTTP/1.1 \(status)", "Content-Type: text/html; charset=utf-8", "Content-Length: \(body.utf8.count)",
            "Content-Security-Policy: default-src 'none'", "Referrer-Policy: no-referrer", "Cache-Control: no-store",
            "Connection: close",
        ]
        return fields.joined(separator: "\r\n") + "\r\n\r\n" + body
    }
}
