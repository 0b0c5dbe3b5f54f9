public import Foundation
public import WebServiceCore

/// A real server of HTTP/1.1 on 127.0.0.1, for tests over a real session.
///
/// ```swift
/// let server = try MockServer()
/// server.on(.GET, "/brewers", MockResponse(statusCode: 200, json: [["name": "Long Trail Brewing Company"]]))
/// server.on(.POST, "/brewers") { request in
///     MockResponse(statusCode: request.body.isEmpty ? 400 : 201)
/// }
/// let service = WebService(baseURLString: server.baseURLString)
/// ```
/// It listens from the moment it is made, on a port that the system picks, until ``stop()`` or until it is freed. Every connection has a thread
/// of its own, so a handler may block; the requests of one connection are answered one after another. What is no correct request
/// is answered with 400, 413, 414, 431, 501 or 505 and the end of the connection, and is not recorded. All members may be called from any thread.
public final class MockServer: Sendable {
    /// Answers a request. Called on the thread of the connection, for several connections at the same time.
    /// What it throws is answered with 500 and the error as text.
    public typealias Handler = @Sendable (_ request: ReceivedRequest) throws -> MockResponse

    /// The port.
    public let port: Int

    /// Where the server listens: `http://127.0.0.1:` and the port, without a slash at the end.
    public let baseURL: URL

    let loop: ServerLoop
    private let thread: JoinableThread

    /// Starts a server.
    ///
    /// - Parameter handler: Answers the requests for which there is no route; without one they get a 404 that names the method, the path
    ///   and the routes.
    /// - Throws: `WebServiceError` with the code `mockServer` where the system refuses, such as for want of descriptors.
    public convenience init(handler: Handler? = nil) throws {
        try self.init(port: 0, handler: handler)
    }

    init(port requested: UInt16, handler: Handler?) throws {
        let listener = try Socket.listening(port: requested)
        do {
            port = Int(try listener.port())
            guard let url = URL(string: "http://127.0.0.1:\(port)") else { throw WebServiceError(.mockServer, "there is no URL for port \(port)") }
            baseURL = url
            loop = try ServerLoop(listener: listener, fallback: handler)
            thread = try JoinableThread(orThrow: .mockServer) { [loop] in loop.run() }
        } catch {
            listener.release()
            throw error
        }
    }

    deinit {
        stop()
    }

    /// ``baseURL`` as text.
    public var baseURLString: String { baseURL.absoluteString }

    /// Answers requests with a method and a path. Of several routes for the same the latest added wins.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path as it stands in the request line, so percent-encoded; the query plays no part.
    ///   - response: The answer, the same each time.
    public func on(_ method: Request.Method, _ path: String, _ response: MockResponse) {
        on(method, path) { _ in response }
    }

    /// Has requests with a method and a path answered. Of several routes for the same the latest added wins.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path as it stands in the request line, so percent-encoded; the query plays no part.
    ///   - handler: Held until ``stop()``; one that holds the server has to be let go that way.
    public func on(_ method: Request.Method, _ path: String, handler: @escaping Handler) {
        let route = Route(method: method, path: String(path.prefix { $0 != "?" }), handler: handler)
        loop.state.withLock { if !$0.isStopping { $0.routes.append(route) } }
    }

    /// All requests that arrived whole, in the order in which they did; recorded before they are answered.
    public var receivedRequests: [ReceivedRequest] {
        loop.state.withLock { $0.received }
    }

    /// How many connections were accepted so far.
    public var connectionCount: Int {
        loop.state.withLock { $0.connectionCount }
    }

    /// How many connections have not ended yet.
    var openConnectionCount: Int {
        loop.state.withLock { $0.openConnectionCount }
    }

    /// Ends every connection and every thread, and frees the port. What was received stays readable.
    ///
    /// Returns when all that is done, so it waits for handlers that still run; only inside a handler of this server it returns at once.
    /// Further calls do nothing.
    public func stop() {
        let (isFirst, letGo) = loop.state.withLock { $0.stop() }
        defer { withExtendedLifetime(letGo) {} }
        guard isFirst else { return }
        loop.wakeUp.signal()
        if ServerLoop.current === loop { thread.detach() } else { thread.join() }
    }
}

extension WebServiceError.Code {
    /// A ``MockServer`` that cannot be started, or a ``MockResponse`` that it cannot write.
    public static let mockServer = WebServiceError.Code("mockServer")
}
