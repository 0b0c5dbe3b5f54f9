public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A transport that sends one request and returns one response.
///
/// This protocol is the extension point for custom transports. ``FoundationSession`` is the
/// default, `URLSession` conforms, `MockSession` responds in tests, and a custom session implements
/// one method. A session does not implement rules above the transport: retries, redirects,
/// credentials and deadlines work identically over every session.
///
/// The following session adds a header field to every request and passes the request to another
/// session:
/// ```swift
/// struct TaggingSession: Session {
///     let inner: any Session
///     func dataTask(
///         request: any URLRequestEncodable,
///         completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
///     ) -> any DataTask {
///         var request = request.urlRequestValue
///         request.setValue("beta", forHTTPHeaderField: "X-Channel")
///         return inner.dataTask(request: request, completion: completion)
///     }
/// }
/// ```
public protocol Session: Sendable {
    /// Creates a task that sends `request` when it is resumed; nothing happens until then.
    ///
    /// - Parameters:
    ///   - request: The request to send. Use `urlRequest()` if the session can report the error
    ///     that it throws.
    ///   - completion: A closure that the session calls exactly once after the task is resumed, on
    ///     any thread, possibly within `resume()`. It receives the body and the response, or an
    ///     error; after `cancel()`, the error is `URLError.cancelled`. ``SessionTask`` ignores
    ///     calls after the first.
    func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) -> Void
    ) -> any DataTask

    /// The ``Response/source`` of the responses.
    ///
    /// Defaults to ``Response/Source/network``.
    var responseSource: Response.Source { get }

    /// Returns whether the session may add its own credentials, such as a client certificate,
    /// cookies or a password, to a request for a URL.
    ///
    /// If the session may add credentials, a `ResponseCache` without an account stores nothing.
    /// This method is called on any thread. Defaults to `false`.
    func addsCredentials(to url: URL) -> Bool
}

extension Session {
    /// The source of responses from a server, ``Response/Source/network``.
    public var responseSource: Response.Source { .network }

    /// Returns `false`: the session adds no credentials.
    public func addsCredentials(to url: URL) -> Bool { false }
}

/// One exchange of a ``Session``.
///
/// All members may be called from any thread, in any order, any number of times.
public protocol DataTask: AnyObject, Sendable {
    /// The state of the exchange, initially `.suspended`.
    var state: DataTaskState { get }

    /// Sends the request. This method has no effect if the request was already sent or cancelled.
    func resume()

    /// Holds back a request that has not been sent yet.
    ///
    /// ``SessionTask`` never calls this method: it holds requests back before they reach the
    /// session.
    func suspend()

    /// Cancels the exchange.
    ///
    /// The completion receives `URLError.cancelled` unless a result is about to be delivered.
    func cancel()
}

/// The state of a ``DataTask`` or a ``SessionTask``.
public typealias DataTaskState = URLSessionTask.State

/// The session of services whose session is not set. This default session can be set once, before
/// it is used.
final class DefaultSession: Sendable {
    private struct State {
        var session: (any Session)?
        /// Whether the session was set or used.
        var isFixed = false
    }

    /// The session of the process.
    static let shared = DefaultSession()

    private let state = Mutex(State())

    /// The session. After the first access, it can no longer be set.
    var session: any Session {
        let session = state.withLock { state in
            state.isFixed = true
            return state.session
        }
        return session ?? FoundationSession.shared
    }

    /// Sets the default session of the process.
    ///
    /// - Throws: ``WebServiceError/Code/defaultSessionInUse`` if the session was set or used
    ///   before.
    func set(_ session: any Session) throws(WebServiceError) {
        let wasFixed = state.withLock { state in
            guard !state.isFixed else { return true }
            state = State(session: session, isFixed: true)
            return false
        }
        guard !wasFixed else {
            throw WebServiceError(
                .defaultSessionInUse,
                "the default session can be set only once, and only before the first service is created")
        }
    }
}

extension WebServiceError.Code {
    /// A default session that cannot be set, because it was set or used before; see
    /// ``WebService/setDefaultSession(_:)``.
    public static let defaultSessionInUse = WebServiceError.Code("defaultSessionInUse")
}

/// A session that delivers a response in parts: interim heads, head, bytes of the body, trailers.
///
/// The bundled sessions conform. A service streams bodies over such a session. Over any other
/// ``Session``, the service receives the whole body first, and usually reports no progress.
public protocol StreamingSession: Session {
    /// Creates a task that sends `request` when it is resumed; nothing happens until then.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - receiver: The receiver of the response. The session retains it until the exchange has
    ///     ended.
    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask
}

/// A session that sends a ``StreamedBody`` while the sequence produces it.
package protocol UploadingSession: StreamingSession {}

/// One exchange of a ``StreamingSession``.
public protocol StreamTask: DataTask {
    /// Continues an exchange whose receiver returned ``Demand/pause``.
    ///
    /// This method returns immediately; the receiver is called later, on another thread. If the
    /// exchange is not paused, the method has no effect.
    func receiveMore()
}

/// A receiver of one response, called by a ``StreamingSession``.
///
/// The session calls the methods one after another, on any thread: at most one head, then bytes,
/// then ``didComplete(_:metrics:)`` exactly once after the task was resumed or cancelled. A method
/// must return immediately. If a method throws, the session ends the exchange and completes it with
/// that error.
public protocol BodyReceiver: AnyObject, Sendable {
    /// Whether the receiver may pause the exchange.
    ///
    /// Such an exchange may take arbitrarily long. By default, `CurlSession` sends it over a
    /// dedicated HTTP/1.1 connection, which does not count toward the connection limits once the
    /// head has been received.
    var mayPause: Bool { get }

    /// Receives an interim head (RFC 9110, section 15.2), if the session provides them.
    func didReceive(interim head: ResponseHead) throws

    /// Receives the head of the response.
    ///
    /// - Parameters:
    ///   - head: The head of the final response.
    ///   - length: The number of bytes that follow; `nil` if it is unknown.
    ///   - decoder: The decoder of the bytes that follow; `nil` if they are not encoded, or if the
    ///     session decodes them.
    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws

    /// Receives bytes of the body.
    ///
    /// - Parameter bytes: The bytes, which are valid only until the method returns.
    /// - Returns: ``Demand/more`` if the receiver took the bytes, or ``Demand/pause`` if it took
    ///   none of them. The session delivers the same bytes again after
    ///   ``StreamTask/receiveMore()``.
    func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand

    /// Reports the progress of the request body.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes passed to the system so far.
    ///   - length: The length of the body in bytes; `nil` if it is unknown.
    func didSend(_ byteCount: Int64, of length: Int64?)

    /// Receives the result of the exchange.
    ///
    /// - Parameters:
    ///   - result: The trailer fields (RFC 9110, section 6.5) of a complete response, empty if the
    ///     session does not provide them, or the error.
    ///   - metrics: The metrics of the exchange; `nil` if the session does not measure any.
    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?)
}

extension BodyReceiver {
    /// `false`: the receiver does not pause the exchange.
    public var mayPause: Bool { false }
    /// Ignores the interim head.
    public func didReceive(interim head: ResponseHead) {}
    /// Ignores the progress of the request body.
    public func didSend(_ byteCount: Int64, of length: Int64?) {}
}

/// A value that indicates whether a ``BodyReceiver`` accepts more bytes.
public enum Demand: Sendable {
    /// The receiver took the bytes and accepts more.
    case more
    /// The receiver took no bytes and accepts none until ``StreamTask/receiveMore()``.
    case pause
}

/// A decoder of a content coding (RFC 9110, section 8.4.1), used by one receiver.
///
/// The receiver decides when to decode, so that a small compressed body cannot exhaust memory.
public protocol ContentDecoder: Sendable {
    /// Decodes the next bytes of the body.
    ///
    /// - Parameters:
    ///   - bytes: The encoded bytes that follow those already decoded.
    ///   - limit: The number of decoded bytes after which to return.
    ///   - append: A closure that receives decoded bytes in pieces of up to 64 KiB.
    /// - Returns: The number of encoded bytes that were consumed. If the limit was reached, call
    ///   the method again with the remaining bytes, even if none remain: the decoder may hold
    ///   further output.
    /// - Throws: `URLError.cannotDecodeContentData` after the bytes before the invalid ones were
    ///   decoded, and the errors of `append`.
    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int

    /// Checks that the encoded bytes are complete.
    ///
    /// - Throws: `URLError.cannotDecodeContentData` if they are truncated.
    func finish() throws
}

/// A session that opens connections for protocols other than HTTP, such as WebSocket (RFC 6455).
package protocol ConnectingSession: Session {
    /// The header fields that the session adds to requests that do not have them.
    var defaultHeaders: Headers { get }

    /// Opens a connection to the host and port of a request. No byte of the request is sent.
    ///
    /// The method returns when the connection is established, including the tunnel of a proxy and
    /// the TLS handshake, which offers HTTP/1.1. A ``FoundationSession`` connects at the first use
    /// instead. The request's connect timeout applies; its idle timeout does not.
    ///
    /// - Parameters:
    ///   - request: A request for an `http` or `https` URL.
    ///   - waitDidChange: A closure that is called with `true` when the request begins to wait
    ///     until the session may connect, because the number of connections is limited, and with
    ///     `false` when it no longer waits.
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

    /// An executor that runs jobs on the threads of the transport, which avoids waking other
    /// threads; `nil` if there is none.
    ///
    /// Swift tasks on the executor must not block or call code of the program.
    var executor: (any TaskExecutor)? { get }

    /// The number of bytes at which a sender of messages ends a batch for one call of ``send(_:)``.
    var batchSize: Int { get }

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
    package var batchSize: Int { 64 << 10 }
}
