/// The limits for the messages of a peer.
///
/// Lengths in headers and decompressed bytes are compared with the limits before memory is
/// allocated for them.
package struct WebSocketLimits: Sendable, Hashable {
    /// The maximum payload size of a frame, in bytes, before decompression. Defaults to
    /// 16 MiB.
    package var maximumFrameLength = 16 << 20
    /// The maximum size of a message, in bytes, after decompression. Defaults to 16 MiB.
    package var maximumMessageLength = 16 << 20
    /// The maximum number of frames of a message. Defaults to 262,144.
    package var maximumFragmentCount = 1 << 18

    package init() {}
}
