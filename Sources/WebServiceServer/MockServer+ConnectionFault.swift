extension MockServer {
    /// A fault of a connection before the server responds.
    ///
    /// A request that a fault interrupts is not recorded. `MockResponse.Wire` describes the faults
    /// of responses.
    public enum ConnectionFault: Sendable, Hashable {
        /// The connection is closed immediately.
        case disconnect
        /// The connection is reset immediately (RFC 9293, section 3.10.7.4).
        case reset
        /// The server reads nothing. The connection stays open until the server stops.
        case noRead
        /// The connection is closed when the head of a request and this number of bytes of its body
        /// have arrived.
        ///
        /// A request with a shorter body is handled as usual. Chunk framing counts as bytes until
        /// the body is complete.
        case disconnectInBody(after: Int)
        /// The same as ``disconnectInBody(after:)``, with a reset.
        case resetInBody(after: Int)
    }
}
