package import Foundation

/// A session that opens connections for protocols other than HTTP, such as WebSocket (RFC 6455).
package protocol ConnectingSession: Session {
    /// The header fields that the session adds to requests that do not have them.
    var defaultHeaders: Headers { get }

    /// Opens a connection to the host and port of a request, without sending any byte of the
    /// request.
    ///
    /// The method returns when the connection is established, including the tunnel of a proxy and
    /// the TLS handshake, which offers HTTP/1.1. The request's connect timeout applies; its idle
    /// timeout does not.
    ///
    /// - Parameters:
    ///   - request: A request for an `http` or `https` URL.
    ///   - waitDidChange: Called with `true` when the request begins to wait for the end of other
    ///     connections, because their number is limited, and with `false` when it no longer waits.
    /// - Throws: The errors of a request that cannot be sent; `URLError.cancelled` if the task is
    ///   cancelled.
    func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection
}

extension ConnectingSession {
    /// Opens a connection to the host and port of a request.
    package func connect(_ request: EncodedRequest) async throws -> any ByteConnection {
        try await connect(request) { _ in }
    }
}

/// A connection that transfers bytes in both directions, opened by a ``ConnectingSession``.
///
/// All members may be called on any thread. Cancelling the Swift task of a call ends the
/// connection: this call and all others throw `URLError.cancelled`. Deallocating the object closes
/// the connection.
package protocol ByteConnection: AnyObject, Sendable {
    /// The metrics of opening the connection, and the number of bytes sent and received so far.
    var metrics: TransportMetrics { get }

    /// An executor that runs jobs on the threads of the transport, which saves waking others; `nil`
    /// if there is none.
    ///
    /// Its Swift tasks must not block or call code of the program.
    var executor: (any TaskExecutor)? { get }

    /// Returns the next bytes, at most 64 KiB, or no bytes at the end and in every later call.
    ///
    /// While this method is not called, at most 64 KiB are buffered. Concurrent calls receive
    /// successive bytes, in the order of the calls.
    ///
    /// - Throws: `URLError.networkConnectionLost` if the connection was lost, after the bytes that
    ///   arrived before. Over TLS, this includes an end without `close_notify`.
    func receive() async throws -> Data

    /// Sends bytes, and returns when all of them were passed to the system.
    ///
    /// The bytes of concurrent calls are sent one after another, in the order of the calls. The end
    /// of the received bytes does not prevent sending.
    ///
    /// - Throws: `URLError.networkConnectionLost` if the connection was lost.
    func send(_ bytes: Data) async throws

    /// Closes the connection immediately. Calls in progress and later ones throw
    /// `URLError.cancelled`.
    ///
    /// Bytes that ``send(_:)`` has passed to the system are still sent.
    func close()
}

extension ByteConnection {
    package var executor: (any TaskExecutor)? { nil }
}
