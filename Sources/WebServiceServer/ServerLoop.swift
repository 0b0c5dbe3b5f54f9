import Foundation
import WebServiceCore
import WebServiceMocking

/// The state that the threads of a ``MockServer`` share.
///
/// The loop does not retain the server, so the server can be deallocated while the threads run. One
/// thread accepts connections. That thread owns the listening socket, and the descriptors and
/// threads of the connections. It releases a connection's descriptor and thread when the connection
/// ends, and everything else when the server stops.
final class ServerLoop: Sendable {
    struct State {
        var fallback: MockServer.Handler?
        /// The responses that are sent without waiting for the body; `nil` only suppresses
        /// `100 Continue`.
        var earlyResponses: [(method: Request.Method, path: String, response: MockResponse?)] = []
        /// The faults of the next connections.
        var connectionFaults: [MockServer.ConnectionFault?] = []
        var connectionCount = 0
        /// The number of connections that are still being served.
        var openConnectionCount = 0
        var isStopping = false
        /// The numbers of connections that have ended and whose resources are still to be released.
        fileprivate var ended: [Int] = []

        mutating func addConnection() -> (number: Int, fault: MockServer.ConnectionFault?) {
            connectionCount += 1
            openConnectionCount += 1
            let fault = connectionFaults.first ?? nil
            connectionFaults = Array(connectionFaults.dropFirst())
            return (connectionCount, fault)
        }

        fileprivate mutating func end(_ number: Int) {
            ended.append(number)
            openConnectionCount -= 1
        }

        /// Marks the server as stopping and removes the handler, which may retain the server.
        ///
        /// - Returns: Whether this is the first call, and the handler to release outside the lock.
        mutating func stop() -> (isFirst: Bool, letGo: MockServer.Handler?) {
            defer { (isStopping, fallback) = (true, nil) }
            return (!isStopping, fallback)
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

    /// The loop that serves the connection of the current thread or Swift task.
    @TaskLocal static var current: ServerLoop?

    let stubTable = StubTable()
    let state: Mutex<State>
    let wakeUp: WakeUp
    private let listener: Socket
    private let tls: TLSContext?
    /// Whether requests are stored and stubs respond to them.
    private let isRecording: Bool

    init(listener: Socket, tls: TLSContext?, fallback: MockServer.Handler?, isRecording: Bool = true) throws {
        self.listener = listener
        self.tls = tls
        self.isRecording = isRecording
        wakeUp = try WakeUp(orThrow: .mockServer)
        state = Mutex(State(fallback: fallback))
    }

    /// Accepts connections until the server stops, then closes all connections.
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
            case .noClient: break
            case .noDescriptor: milliseconds = 20  // the pending connection would end every wait immediately
            case .client(let socket):
                let (number, fault) = state.withLock { $0.addConnection() }
                clients[number] = serve(socket, number: number, fault)
            }
        }
        listener.release()
        for client in clients.values { client.socket.disconnect() }
        for client in clients.values { client.giveBack() }
    }

    private func serve(_ socket: Socket, number: Int, _ fault: MockServer.ConnectionFault?) -> Client? {
        var socket = socket
        if let tls {
            guard let stream = TLSStream(tls) else { return close(socket, number: number) }
            socket.tls = stream
        }
        let connection = ServerConnection(
            number: number, socket: socket, fault: fault,
            limits: isRecording ? RequestParser.Limits() : RequestParser.Limits(body: 64 << 10),
            respond: isRecording ? response : unrecordedResponse, early: early)
        do {
            let thread = try JoinableThread(orThrow: .mockServer) { [self] in
                Self.$current.withValue(self) { connection.serve() }
                state.withLock { $0.end(number) }
                wakeUp.signal()
            }
            return Client(socket: socket, thread: thread)
        } catch {
            return close(socket, number: number)  // no thread could be created
        }
    }

    private func close(_ socket: Socket, number: Int) -> Client? {
        socket.release()
        state.withLock { $0.end(number) }
        return nil
    }

    /// Returns the route of a request with a body.
    private func early(_ head: RequestHead) -> EarlyRoute {
        let path = ReceivedRequest(head: head, body: Data(), rawBytes: Data(), connection: 0).path
        let routes = state.withLock { $0.earlyResponses }
        guard let route = routes.last(where: { $0.method == head.method && $0.path == path }) else { return .none }
        if route.response?.statusCode == 417, !head.expectsContinue { return .none }
        return route.response.map(EarlyRoute.response) ?? .silence
    }

    private func unrecordedResponse(to request: ReceivedRequest, isNeeded: () -> Bool) -> MockResponse {
        guard let handler = state.withLock({ $0.fallback }) else { return MockResponse(statusCode: 500) }
        do { return try handler(request) } catch { return MockResponse(statusCode: 500) }
    }

    /// Returns the response of the matching stub, or else that of the fallback handler, or else
    /// status 404.
    ///
    /// - Parameter isNeeded: A closure that returns whether the client still waits for the
    ///   response.
    private func response(to request: ReceivedRequest, isNeeded: () -> Bool) -> MockResponse {
        let arrival = stubTable.receive(request)
        do {
            guard let match = stubTable.match(request, arrival) else {
                if let fallback = state.withLock({ $0.fallback }) { return try fallback(request) }
                return MockResponse(statusCode: 404, text: stubTable.recordUnmatched(request, arrival) + "\n")
            }
            switch match.stub.responder {
            case .handler(let handler): return try handler(match.request ?? request)
            case .asyncHandler(let handler):
                return try Self.response(to: match.request ?? request, by: handler, isNeeded: isNeeded)
            case .sequence(let responses): return responses.response(ofCall: match.call)
            case .result, nil: return MockResponse(statusCode: 500)  // the server is stopping
            }
        } catch {
            return MockResponse(
                statusCode: 500, text: "the handler for \(request.method) \(request.path) threw: \(error)\n")
        }
    }
}

extension ServerLoop {
    /// Calls an asynchronous handler and blocks the thread of the connection until it ends.
    ///
    /// - Throws: The error of the handler, or `URLError.networkConnectionLost` if the client no
    ///   longer waits. The handler is then cancelled.
    private static func response(
        to request: ReceivedRequest, by handler: @escaping Stub.AsyncHandler, isNeeded: () -> Bool
    ) throws -> MockResponse {
        let result = Mutex<Result<MockResponse, any Error>?>(nil)
        let end = ThreadSignal()
        let task = Task {
            let outcome: Result<MockResponse, any Error>
            do { outcome = .success(try await handler(request)) } catch { outcome = .failure(error) }
            result.withLock { $0 = outcome }
            end.signal()
        }
        defer { task.cancel() }
        while !end.wait(milliseconds: 20) {
            guard isNeeded() else { throw URLError(.networkConnectionLost) }
        }
        return try result.withLock { $0 }?.get() ?? MockResponse(statusCode: 500)
    }
}

/// The action of a ``MockServer`` when the header of a request with a body is complete.
enum EarlyRoute {
    case none
    /// No interim response is sent.
    case silence
    case response(MockResponse)
}
