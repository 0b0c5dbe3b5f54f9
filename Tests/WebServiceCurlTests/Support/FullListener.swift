// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import TestSupport

/// A socket that listens and never accepts. Without a backlog, its queue is full and every new
/// client waits.
final class FullListener {
    var port: Int { listener.port }
    private let listener: LoopbackListener
    private var clients: [Int32] = []

    init(backlog: Int32 = 0) throws {
        listener = try LoopbackListener(backlog: backlog)
        guard backlog == 0 else { return }
        for _ in 0..<4 {
            let client = LoopbackListener.newSocket()
            _ = fcntl(client, F_SETFL, O_NONBLOCK)
            LoopbackListener.connect(client, to: listener.port)
            clients.append(client)
        }
    }

    deinit {
        for client in clients { close(client) }
    }
}
