import Foundation
import WebServiceCore

/// What the threads of a ``MockServer`` share. It does not hold the server, so that the server can go while they run.
///
/// One thread accepts the clients. It alone owns the listening socket, the connections' descriptors and their threads, and gives all of
/// them back: those of a connection as soon as it has ended, the rest when it is told to stop.
final class ServerLoop: Sendable {
    struct State {
        var routes: [Route] = []
        var fallback: MockServer.Handler?
        var received: [ReceivedRequest] = []
        var connectionCount = 0
        /// Connections whose conversation is not over.
        var openConnectionCount = 0
        var isStopping = false
        /// Connections that have ended and are to be given back.
        fileprivate var ended: [Int] = []

        mutating func addConnection() -> Int {
            connectionCount += 1
            openConnectionCount += 1
            return connectionCount
        }

        fileprivate mutating func end(_ number: Int) {
            ended.append(number)
            openConnectionCount -= 1
        }

        /// Returns whether this was the first call. Handlers are let go, because they may hold the server.
        /// - Returns: Whether this is the first stop; and what is let go, to be freed outside the lock.
        mutating func stop() -> (isFirst: Bool, letGo: ([Route], MockServer.Handler?)) {
            defer { (isStopping, routes, fallback) = (true, [], nil) }
            return (!isStopping, (routes, fallback))
        }

        fileprivate mutating func takeEnded() -> (isStopping: Bool, ended: [Int]) {
            defer { ended = [] }
            return (isStopping, ended)
        }
    }

    private struct Client {
        let socket: Socket
        let thread: JoinableThread

        func giveBack() {
            thread.join()
            socket.release()
        }
    }

    /// The loop whose client is served on the current thread.
    @TaskLocal static var current: ServerLoop?

    let state: Mutex<State>
    let wakeUp: WakeUp
    private let listener: Socket

    init(listener: Socket, fallback: MockServer.Handler?) throws {
        self.listener = listener
        wakeUp = try WakeUp(orThrow: .mockServer)
        state = Mutex(State(fallback: fallback))
    }

    /// Accepts clients until the state says to stop, and then ends every connection.
    func run() {
        var clients: [Int: Client] = [:]
        var milliseconds: Int32 = -1
        while true {
            wakeUp.wait(for: milliseconds < 0 ? listener.descriptor : nil, milliseconds: milliseconds)
            let (isStopping, ended) = state.withLock { $0.takeEnded() }
            for number in ended { clients.removeValue(forKey: number)?.giveBack() }
            if isStopping { break }
            milliseconds = -1
            switch listener.accepted() {
            case .nobody: break
            case .noDescriptor: milliseconds = 20  // the client would wake us at once, again and again
            case .client(let socket):
                let number = state.withLock { $0.addConnection() }
                clients[number] = serve(socket, number: number)
            }
        }
        listener.release()
        for client in clients.values { client.socket.disconnect() }
        for client in clients.values { client.giveBack() }
    }

    private func serve(_ socket: Socket, number: Int) -> Client? {
        let connection = ServerConnection(number: number, socket: socket, answer: answer)
        do {
            let thread = try JoinableThread(orThrow: .mockServer) { [self] in
                Self.$current.withValue(self) { connection.serve() }
                state.withLock { $0.end(number) }
                wakeUp.signal()
            }
            return Client(socket: socket, thread: thread)
        } catch {
            socket.release()  // out of threads: the client sees its connection closed
            state.withLock { $0.end(number) }
            return nil
        }
    }

    private func answer(_ request: ReceivedRequest) -> MockResponse {
        let path = request.path
        let (routes, fallback) = state.withLock {
            $0.received.append(request)
            return ($0.routes, $0.fallback)
        }
        guard let handler = routes.last(where: { $0.method == request.method && $0.path == path })?.handler ?? fallback else {
            let list = routes.map { "\($0.method) \($0.path)" }.joined(separator: ", ")
            return MockResponse(statusCode: 404, text: "no route for \(request.method) \(path); the routes are: \(list)\n")
        }
        do {
            return try handler(request)
        } catch {
            return MockResponse(statusCode: 500, text: "the handler for \(request.method) \(path) threw: \(error)\n")
        }
    }
}

/// Which requests a handler of a ``MockServer`` is for.
struct Route: Sendable {
    let method: Request.Method
    let path: String
    let handler: MockServer.Handler
}
