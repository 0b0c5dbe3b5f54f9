public import Foundation
public import WebServiceCore

/// An HTTP/1.1 server on 127.0.0.1, for tests that use a real session.
///
/// ```swift
/// let server = try MockServer()
/// server.on(.GET, "/brewers", .json([["name": "Long Trail"]]))
/// server.on(.POST, "/brewers") { request in .status(request.body.isEmpty ? 400 : 201) }
/// let service = WebService(baseURLString: server.baseURLString)
/// ```
///
/// The server listens on a port that the system selects, from its creation until ``stop()`` or its
/// deallocation. Each connection has its own thread, so a handler may block. The requests of one
/// connection are handled sequentially. A malformed request receives the status 400, 413, 414, 431,
/// 501 or 505, ends the connection and is not recorded. All members may be called from any thread.
///
/// Handlers are called on the thread of the connection. If a handler throws, the server responds
/// with the status 500 and a description of the error. ``StubResponder/receivedRequests`` contains
/// the complete requests, and remains available after ``stop()``.
public final class MockServer: StubResponder {
    /// Returns the response to a request.
    public typealias Handler = Stub.Handler

    /// The TCP port on which the server listens.
    public let port: Int

    /// The URL of the server: `http://127.0.0.1:` and the port, without a trailing slash.
    public let baseURL: URL

    /// The stubs and the requests.
    public var stubTable: StubTable { loop.stubTable }

    let loop: ServerLoop
    private let thread: JoinableThread

    /// Creates and starts a server.
    ///
    /// - Parameter handler: Responds to requests without a stub. Defaults to `nil`: such requests
    ///   receive a 404 that names the method, the path and the closest stubs.
    /// - Throws: `WebServiceError` with the code `mockServer` if a system call fails, for example
    ///   because the process has no free descriptors.
    public convenience init(handler: Handler? = nil) throws {
        try self.init(port: 0, handler: handler)
    }

    init(port requested: UInt16, handler: Handler?) throws {
        let listener = try Socket.listening(port: requested)
        do {
            port = Int(try listener.port())
            guard let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw WebServiceError(.mockServer, "the port \(port) does not result in a valid URL")
            }
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

    /// ``baseURL`` as a string.
    public var baseURLString: String { baseURL.absoluteString }

    /// Adds a route that responds before the body of the request has arrived.
    ///
    /// The response is sent when the header is complete, without an interim response
    /// `100 Continue`. Then the server reads no further request from the connection and closes it.
    /// The request is not recorded. A request without a body is handled as usual, and so is
    /// one without `Expect: 100-continue` if the response has the status 417.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path as it appears in the request line, percent-encoded. A query is ignored.
    ///   - response: The response. `nil` sends no interim response, and handles the request as
    ///     usual after its body.
    public func onHead(_ method: Request.Method, _ path: String, _ response: MockResponse?) {
        loop.state.withLock { $0.earlyResponses.append((method, path, response)) }
    }

    /// The number of connections accepted so far.
    public var connectionCount: Int {
        loop.state.withLock { $0.connectionCount }
    }

    /// The number of connections that have not ended.
    var openConnectionCount: Int {
        loop.state.withLock { $0.openConnectionCount }
    }

    /// Closes every connection, ends every thread and releases the port.
    ///
    /// Returns after all threads have ended, so it waits for handlers that are still running.
    /// Called from a handler of this server, it returns immediately. Further calls have no effect.
    public func stop() {
        let (isFirst, letGo) = loop.state.withLock { $0.stop() }
        defer { withExtendedLifetime(letGo) {} }
        guard isFirst else { return }
        stubTable.close()
        loop.wakeUp.signal()
        if ServerLoop.current === loop { thread.detach() } else { thread.join() }
    }
}

extension WebServiceError.Code {
    /// A ``MockServer`` could not be started, or a ``MockResponse`` could not be written.
    public static let mockServer = WebServiceError.Code("mockServer")
}
