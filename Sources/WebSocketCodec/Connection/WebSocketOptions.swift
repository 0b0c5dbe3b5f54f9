/// The properties of a connection after its handshake.
package struct WebSocketOptions: Sendable, Hashable {
    package var limits = WebSocketLimits()
    /// The parameters of the extension permessage-deflate; `nil` if it was not negotiated.
    package var deflate: DeflateParameters?
    /// The minimum size of a message that is compressed, in bytes. Defaults to 64.
    package var minimumCompressedLength = 64
    /// The maximum payload size of a frame that is sent, in bytes. Defaults to 128 KiB.
    ///
    /// Larger messages are sent in fragments, so that pongs can be sent between them.
    package var maximumSentFrameLength = 128 << 10

    /// Whether the endpoint responds to pings. Defaults to `true`.
    package var respondsToPings = true

    package init() {}
}
