/// The limits of what a peer can send.
///
/// They are compared with the lengths in headers and with the decompressed bytes before memory is
/// allocated for them.
package struct WebSocketLimits: Sendable, Hashable {
    /// The maximum size of the payload of a frame, in bytes, before decompression. Defaults to
    /// 16 MiB.
    package var maximumFrameLength = 16 << 20
    /// The maximum size of a message, in bytes, after decompression. Defaults to 16 MiB.
    package var maximumMessageLength = 16 << 20
    /// The maximum number of frames of a message. Defaults to 262,144.
    package var maximumFragmentCount = 1 << 18

    package init() {}
}
