import Foundation
public import WebServiceCore

extension WebService {
    /// Opens a WebSocket connection (RFC 6455).
    ///
    /// ```swift
    /// let socket = try await service.webSocket("/chat", subprotocols: ["v1"])
    /// ```
    /// The handshake is a GET request of this service: its interceptors, delegate, cookies,
    /// observers and log apply, and redirects are followed. An interceptor can retry the handshake
    /// or add a token. The session must be a `CurlSession`, a `FoundationSession` on an Apple
    /// platform or, in tests, a `MockSession` or a `CassetteSession`. The options of a
    /// `CurlSession` for proxies, TLS, pins and addresses apply to the connection.
    ///
    /// - Parameters:
    ///   - path: The path, or an absolute URL, whose scheme may be `ws` or `wss`.
    ///   - subprotocols: The subprotocols that the program supports, in order of preference.
    ///   - options: The settings of the connection.
    ///   - configure: A closure that changes the request before it is sent. Defaults to no changes.
    /// - Returns: The connection, after the handshake.
    /// - Throws: `WebServiceError.Code.unacceptableStatus`, with the response and up to 1 MiB of
    ///   its body, if the server refuses the handshake; `WebServiceError.Code.webSocketHandshake`
    ///   if the response does not match the handshake request;
    ///   `WebServiceError.Code.webSocketUnsupported` if the session cannot open a connection;
    ///   `WebServiceError.Code.invalidHeader` if a subprotocol is not a token or occurs twice; and
    ///   the errors of a request.
    public func webSocket(
        _ path: String, subprotocols: [String] = [], options: WebSocket.Options = WebSocket.Options(),
        configuring configure: (inout Request) -> Void = { _ in }
    ) async throws -> WebSocket {
        var request = request(.GET, path: Self.httpURL(path))
        configure(&request)
        let opened = Mutex<OpenedConnection?>(nil)
        let task = upgrade(request) { [taskClock] session in
            HandshakeSession(
                base: session, clock: taskClock, subprotocols: subprotocols, compresses: options.compresses
            ) { connection in opened.withLock { $0 = connection } }
        }
        let stream = try await task.value
        guard let connection = opened.withLock({ $0.take() }) else { throw URLError(.unknown) }  // unreachable
        return WebSocket(connection, stream, options, of: self)
    }

    /// Returns the URL with `http` or `https` in place of the scheme `ws` or `wss`.
    static func httpURL(_ path: String) -> String {
        for (scheme, replacement) in [("ws://", "http://"), ("wss://", "https://")]
        where path.prefix(scheme.count).lowercased() == scheme {
            return replacement + path.dropFirst(scheme.count)
        }
        return path
    }
}
