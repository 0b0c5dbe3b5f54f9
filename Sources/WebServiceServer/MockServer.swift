public import Foundation
public import WebServiceCore
public import WebServiceMocking

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
/// connection are handled sequentially. A malformed request receives status 400, 413, 414, 431,
/// 501 or 505, ends the connection and is not recorded. All members may be called from any thread.
///
/// Synchronous handlers are called on the thread of the connection. If a handler throws an error,
/// the server responds with status 500 and a description of the error.
/// `StubResponder.receivedRequests` contains the complete requests, and remains available after
/// ``stop()``.
public final class MockServer: StubResponder {
    /// A closure that returns the response to a request.
    public typealias Handler = Stub.Handler

    /// The TCP port on which the server listens.
    public let port: Int

    /// The URL of the server: `http://127.0.0.1:` or `https://127.0.0.1:` and the port, without a
    /// trailing slash.
    public let baseURL: URL

    /// The PEM file of the certificate; `nil` if the server does not use TLS. The file is removed
    /// when the server is deallocated.
    ///
    /// ```swift
    /// var configuration = CurlSession.Configuration()
    /// configuration.tls.trustedCertificatesFile = server.certificateFile?.path
    /// ```
    public var certificateFile: URL? { tls?.certificate.certificate }

    private let tls: ServerTLS?

    /// The stubs and the requests.
    public var stubTable: StubTable { loop.stubTable }

    let loop: ServerLoop
    private let thread: JoinableThread

    /// Creates and starts a server.
    ///
    /// - Parameter handler: A closure that responds to requests that match no stub. Defaults to
    ///   `nil`: such requests receive a response with status 404 that names the method, the path
    ///   and the closest stubs.
    /// - Throws: `WebServiceError.Code.mockServer` if a system call fails, for example because the
    ///   process has no free descriptors.
    public convenience init(handler: Handler? = nil) throws {
        try self.init(listeningOn: 0, tls: nil, handler: handler)
    }

    /// Creates and starts a server with or without TLS.
    ///
    /// The system's command `openssl` creates a certificate for `localhost` and 127.0.0.1, and the
    /// OpenSSL library encrypts the connections. Only HTTP/1.1 is supported.
    ///
    /// - Parameters:
    ///   - tls: Whether connections use TLS 1.2 or 1.3.
    ///   - handler: A closure that responds to requests that match no stub; see ``init(handler:)``.
    /// - Throws: `WebServiceError.Code.tlsUnavailable` if the command or the library is missing or
    ///   fails; otherwise the errors of ``init(handler:)``.
    public convenience init(tls: Bool, handler: Handler? = nil) throws {
        try self.init(listeningOn: 0, tls: tls ? ServerTLS() : nil, handler: handler)
    }

    /// Creates and starts a server on a specific port.
    ///
    /// Use this initializer only if the client's port cannot be configured. Tests that run
    /// concurrently cannot share a port.
    ///
    /// - Parameters:
    ///   - port: The port, from 1 to 65535; 0 lets the system select one.
    ///   - tls: Whether connections use TLS; see ``init(tls:handler:)``.
    ///   - handler: A closure that responds to requests that match no stub; see ``init(handler:)``.
    /// - Throws: `WebServiceError.Code.portUnavailable` if the port is in use, reserved by the
    ///   system or out of range; otherwise the errors of ``init(tls:handler:)``.
    public convenience init(port: Int, tls: Bool = false, handler: Handler? = nil) throws {
        try self.init(listeningOn: Self.number(port), tls: tls ? ServerTLS() : nil, handler: handler)
    }

    /// Creates and starts a server with TLS that verifies the certificates of its clients.
    ///
    /// ```swift
    /// let server = try MockServer(clientCA: authority)
    /// server.on(.GET, "/me") { .text($0.clientCertificate?.subject ?? "") }
    /// ```
    /// A client whose certificate cannot be verified is rejected during the handshake; see
    /// `ReceivedRequest.clientCertificate`.
    ///
    /// - Parameters:
    ///   - clientCA: A PEM file with the certificates of the authorities that sign client
    ///     certificates. The file may also contain self-signed client certificates.
    ///   - requiresClientCertificate: Whether a client without a certificate is rejected. Defaults
    ///     to `true`.
    ///   - port: The port, from 1 to 65535. Defaults to 0: the system selects one.
    ///   - handler: A closure that responds to requests that match no stub; see ``init(handler:)``.
    /// - Throws: `WebServiceError.Code.tlsUnavailable` if the file has no certificate; otherwise
    ///   the errors of ``init(port:tls:handler:)``.
    public convenience init(
        clientCA: URL, requiresClientCertificate: Bool = true, port: Int = 0, handler: Handler? = nil
    ) throws {
        let clients = TLSContext.Clients(authorities: clientCA.path, requiresCertificate: requiresClientCertificate)
        try self.init(listeningOn: Self.number(port), tls: ServerTLS(clients: clients), handler: handler)
    }

    private static func number(_ port: Int) throws -> UInt16 {
        guard let number = UInt16(exactly: port) else {
            throw WebServiceError(.portUnavailable, "port \(port) is not between 0 and 65535; pass another port")
        }
        return number
    }

    /// - Parameter unrecorded: A closure that returns the handler of all requests, for the port of
    ///   a server that does not store its requests; see ``LocalServer``.
    init(
        listeningOn requested: UInt16, tls: ServerTLS? = nil, handler: Handler? = nil,
        unrecorded: ((Int) -> Handler)? = nil
    ) throws {
        self.tls = tls
        let listener = try Socket.listening(port: requested)
        do {
            port = Int(try listener.port())
            guard let url = URL(string: "http\(tls == nil ? "" : "s")://127.0.0.1:\(port)") else {
                throw WebServiceError(.mockServer, "port \(port) does not result in a valid URL")
            }
            baseURL = url
            loop = try ServerLoop(
                listener: listener, tls: tls?.context, fallback: unrecorded?(port) ?? handler,
                isRecording: unrecorded == nil)
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

    /// Adds a route that responds without waiting for the body of the request.
    ///
    /// The response is sent when the header is complete, without a preceding `100 Continue`. The
    /// server then closes the connection without reading further requests. The request is not
    /// recorded. A request without a body is handled as usual, as is one without
    /// `Expect: 100-continue` if the response has status 417.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path as it appears in the request line, percent-encoded. A query is ignored.
    ///   - response: The response. With `nil`, the server sends no interim response, and handles
    ///     the request as usual after its body has arrived.
    public func onHead(_ method: Request.Method, _ path: String, _ response: MockResponse?) {
        loop.state.withLock { $0.earlyResponses.append((method, path, response)) }
    }

    /// Causes faults of the next connections, in order.
    ///
    /// ```swift
    /// server.onConnect([.disconnect, nil, .disconnectInBody(after: 1_000)])
    /// ```
    /// The faults follow those of earlier calls that have not occurred yet.
    ///
    /// - Parameter faults: The fault of each connection; `nil` for none.
    public func onConnect(_ faults: [ConnectionFault?]) {
        loop.state.withLock { $0.connectionFaults += faults }
    }

    /// Waits for the next request, and returns it.
    ///
    /// ```swift
    /// let order = try await server.nextRequest()
    /// #expect(order.path == "/orders")
    /// ```
    /// The first call returns the first request of the server, and each further call returns the
    /// next one. Concurrent callers receive requests in the order of their calls. The returned
    /// request has no `ReceivedRequest.pathParameters`.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled, and
    ///   `WebServiceError.Code.mockServer` if the server has stopped and has no further request.
    public func nextRequest() async throws -> ReceivedRequest {
        try await stubTable.nextRequest()
    }

    /// The number of connections accepted so far.
    public var connectionCount: Int {
        loop.state.withLock { $0.connectionCount }
    }

    /// The number of connections that have not ended.
    package var openConnectionCount: Int {
        loop.state.withLock { $0.openConnectionCount }
    }

    /// Closes every connection, ends every thread and releases the port.
    ///
    /// The method waits until all threads, including those of running handlers, have ended. In a
    /// handler of this server, it returns immediately. Further calls have no effect.
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
    /// The port of a ``MockServer`` is in use, reserved by the system or out of range.
    public static let portUnavailable = WebServiceError.Code("portUnavailable")
    /// A ``MockServer`` with TLS could not be started, because OpenSSL is missing or has failed.
    public static let tlsUnavailable = WebServiceError.Code("tlsUnavailable")
}
