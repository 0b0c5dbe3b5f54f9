// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport
import WebServiceCore

/// Forwards the bytes of connections to a port and back until ``silence()`` is called. The
/// connections then stay open.
final class Relay: Sendable {
    var port: Int { listener.port }
    private let listener: LoopbackListener
    private let state = Mutex((connections: 0, silent: 0, sockets: [Int32]()))

    init(to target: Int) throws {
        listener = try LoopbackListener(backlog: 64)
        listener.serve { [self] client in
            let server = LoopbackListener.newSocket()
            LoopbackListener.connect(server, to: target)
            let number = state.withLock { state in
                state.connections += 1
                state.sockets += [client, server]
                return state.connections
            }
            Thread.detachNewThread { [self] in copy(client, server, number) }
            copy(server, client, number)
        }
    }

    /// Silences the existing connections. New connections are served.
    func silence() { state.withLock { $0.silent = $0.connections } }

    var connectionCount: Int { state.withLock { $0.connections } }

    func stop() {
        for socket in state.withLock(\.sockets) { shutdown(socket, Int32(SHUT_RDWR)) }
        listener.stop()
    }

    private func copy(_ source: Int32, _ target: Int32, _ number: Int) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            if state.withLock({ number <= $0.silent }) { continue }
            var sent = 0
            while sent < count {
                let written = buffer.withUnsafeBytes {
                    send(target, $0.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
                }
                guard written > 0 else { break }
                sent += written
            }
        }
        shutdown(target, Int32(SHUT_RDWR))
    }
}
