public import Foundation

extension MockResponse {
    /// The way in which a `MockServer` sends a response.
    ///
    /// Except for `.raw`, `.noResponse` and `.disconnect`, the server writes the status line,
    /// ``MockResponse/headers``, the fields that frame the body and, with most cases,
    /// `Connection: close` if it closes the connection afterwards.
    ///
    /// A `Content-Length` or `Transfer-Encoding` in ``MockResponse/headers`` replaces the correct
    /// field. If it does not match the body, the connection is closed after the body, so that the
    /// client detects an incomplete response instead of waiting.
    ///
    /// `.cut`, `.reset`, `.stall`, `.drip`, `.throttle`, `.surplus` and `.halfClose` send the bytes
    /// of `.fixedLength`; the head does not indicate that the response is truncated. `.drip` and
    /// `.throttle` are intended for a body in ``MockResponse/data``. A count is a number of bytes of
    /// the whole response, starting with the status line and including chunk framing, and is
    /// clamped to the valid range.
    ///
    /// `MockServer.onConnect(_:)` causes faults before a response.
    public enum Wire: Sendable, Hashable {
        /// The body with its `Content-Length`.
        case fixedLength
        /// The body in chunks of this number of bytes, at least one.
        ///
        /// HTTP/1.0 requests are handled as with `.untilClose`.
        case chunked(size: Int)
        /// The body without its length. The end of the connection ends the body.
        case untilClose
        /// Exactly these bytes, after which the connection is closed.
        ///
        /// Use this case to send malformed responses, or an interim response before the final one:
        ///
        /// ```swift
        /// let interim = "HTTP/1.1 103 Early Hints\r\n\r\n"
        /// response.wire = .raw(Data("\(interim)HTTP/1.1 204 No Content\r\n\r\n".utf8))
        /// ```
        case raw(Data)
        /// No bytes on a connection that stays open until the client closes it or the server stops.
        case noResponse
        /// No bytes on a connection that is closed immediately.
        case disconnect
        /// The first bytes, followed by an orderly close of the connection.
        ///
        /// With `Int.max`, the server sends the complete response, and then closes the connection
        /// even if it is persistent.
        case cut(after: Int)
        /// The first bytes, followed by a reset (RFC 9293, section 3.10.7.4).
        ///
        /// The client loses bytes that it has not read before the reset.
        case reset(after: Int)
        /// The first bytes and nothing more.
        ///
        /// The connection stays open until the client closes it or the server stops.
        case stall(after: Int)
        /// The whole response in pieces of this number of bytes, at least one, with pauses between
        /// them.
        ///
        /// Pauses have a resolution of one millisecond and end early when the client closes its
        /// side or the server stops. The connection is reused as with `.fixedLength`.
        case drip(size: Int, pause: Duration)
        /// The whole response at this rate in bytes per second, at least one.
        ///
        /// The response is sent in pieces with pauses of a few milliseconds or more, as with
        /// `.drip(size:pause:)`.
        case throttle(bytesPerSecond: Int)
        /// The whole response, followed by these bytes, which belong to no response.
        ///
        /// The connection is reused as with `.fixedLength`.
        case surplus(Data)
        /// The body in one chunk, followed by a chunk whose size is not a number.
        ///
        /// The connection is then closed.
        case invalidChunk
        /// The whole response, after which the server closes its side of the connection.
        ///
        /// The head contains `Connection: close` only if that of `.fixedLength` would. The server
        /// reads until the client closes the other side.
        case halfClose
        /// An endless sequence of chunks, each of which contains ``MockResponse/data``, or a
        /// placeholder if the data is empty.
        ///
        /// The chunks end when the client closes the connection or the server stops. HTTP/1.0
        /// requests receive the bytes without chunk framing. A response that has no body ends
        /// normally.
        case endless
    }
}
