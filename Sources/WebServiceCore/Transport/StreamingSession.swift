/// A session that delivers a response in parts: interim heads, head, bytes of the body, trailers.
///
/// The bundled sessions conform. A service streams bodies over such a session; over any other
/// ``Session``, it receives the whole body first. There is no other visible difference.
public protocol StreamingSession: Session {
    /// Creates a task that sends `request` when it is resumed; nothing happens until then.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - receiver: The receiver of the response. The session retains it until the exchange has
    ///     ended.
    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask
}

/// A session that sends a ``StreamedBody`` while it is produced.
package protocol UploadingSession: StreamingSession {}

/// One exchange of a ``StreamingSession``.
public protocol StreamTask: DataTask {
    /// Continues an exchange whose receiver returned ``Demand/pause``.
    ///
    /// This method returns immediately; the receiver is called later, on a thread of the session.
    /// If the exchange is not paused, the method has no effect.
    func receiveMore()
}

/// A receiver of one response, called by a ``StreamingSession``.
///
/// The session calls the methods one after another, on any thread: at most one head, then bytes,
/// then ``didComplete(_:metrics:)`` exactly once after the task was resumed or cancelled. A method
/// must return immediately. If a method throws, the session ends the exchange and completes it with
/// that error.
public protocol BodyReceiver: AnyObject, Sendable {
    /// A Boolean value that indicates whether the receiver may pause the exchange.
    ///
    /// Such an exchange may take arbitrarily long. `CurlSession` sends it over a dedicated HTTP/1.1
    /// connection, which does not count toward the connection limits once the head has been
    /// received.
    var mayPause: Bool { get }

    /// Receives an interim head (RFC 9110, section 15.2), if the session provides them.
    func didReceive(interim head: ResponseHead) throws

    /// Receives the head.
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

    /// Receives the result.
    ///
    /// - Parameters:
    ///   - result: The trailer fields (RFC 9110, section 6.5) of a complete response, empty if the
    ///     session does not provide them, or the error.
    ///   - metrics: The metrics of the exchange; `nil` if the session does not measure any.
    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?)
}

extension BodyReceiver {
    /// Defaults to `false`.
    public var mayPause: Bool { false }
    /// Ignores the head.
    public func didReceive(interim head: ResponseHead) {}
    /// Ignores the progress.
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
    /// Decodes bytes.
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
