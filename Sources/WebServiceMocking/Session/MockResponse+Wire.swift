public import Foundation

extension MockResponse {
    /// How a ``MockServer`` sends a response. Except for `.raw` it writes the status line, ``MockResponse/headers``, what frames the body,
    /// and `Connection: close` where it closes afterwards.
    ///
    /// A `Content-Length` or `Transfer-Encoding` of your own is sent in place of the right one. Where the body is not as it says,
    /// the connection is closed after it, so that the client sees a broken message instead of waiting.
    ///
    /// `.cut`, `.reset`, `.stall` and `.drip` send the message that `.fixedLength` would send. Where they leave it in the middle, its head does
    /// not say so. A count is one of bytes of the whole message, from the first of the status line; one below zero is zero, one beyond the
    /// end is the end.
    public enum Wire: Sendable, Hashable {
        /// With `Content-Length`.
        case fixedLength
        /// In chunks of this many bytes, at least one. A request of HTTP/1.0 is answered as with `.untilClose`.
        case chunked(size: Int)
        /// Without a length: the body ends when the connection does.
        case untilClose
        /// Exactly these bytes and nothing of the response's own; then the connection is closed. This is how to send what no correct server
        /// sends, and also an interim response before the final one:
        /// ```swift
        /// response.wire = .raw(Data("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".utf8))
        /// ```
        case raw(Data)
        /// Nothing; the connection stays open until the client closes it or the server stops.
        case noAnswer
        /// Nothing; the connection is closed at once.
        case disconnect
        /// The first so many bytes, then an orderly end of the connection. With `Int.max` it is a server that answers whole and closes a
        /// connection that was to be kept.
        case cut(after: Int)
        /// The first so many bytes, then a reset (RFC 9293, section 3.10.7.4). The client loses what it has not taken from the network by then.
        case reset(after: Int)
        /// The first so many bytes; then nothing until the client closes the connection or the server stops.
        case stall(after: Int)
        /// The whole message in pieces of so many bytes, at least one, with a pause between them, in steps of a millisecond. Pauses end early
        /// when the client closes its side or the server stops. The connection is kept as with `.fixedLength`.
        case drip(size: Int, pause: Duration)
        /// In chunks that never end: ``MockResponse/data`` again and again, or bytes of no meaning where there is none, until the client
        /// leaves or the server stops. Without chunks to a request of HTTP/1.0. A response that has no body ends as ever.
        case endless
    }
}
