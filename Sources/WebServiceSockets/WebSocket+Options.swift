import WebServiceCore
import WebSocketCodec

extension WebSocket {
    /// The settings of a connection.
    public struct Options: Sendable, Hashable {
        /// The maximum size of a received message in bytes, after decompression. Defaults to 16
        /// MiB.
        public var maximumMessageBytes = 16 << 20
        /// The maximum number of frames of a received message. Defaults to 262,144.
        public var maximumFragmentCount = 1 << 18
        /// The size of each of the two buffers, in bytes. Defaults to 256 KiB.
        ///
        /// While the buffer of received messages is full, the server is held back. Each message
        /// takes its size plus 128 bytes. While the buffer of sent messages is full, `send` waits.
        public var bufferSize = 256 << 10
        /// The interval of automatic pings, on the clock of the service; `nil` to send none.
        /// Defaults to 30 seconds.
        ///
        /// If nothing is received between one ping and the next, the connection fails with
        /// `URLError.timedOut`. While the buffer of received messages is full, no ping is sent.
        public var pingInterval: Duration? = .seconds(30)
        /// The maximum wait for the server to close the connection after a Close frame, on the
        /// clock of the service. Defaults to 5 seconds.
        public var closeTimeout: Duration = .seconds(5)
        /// Whether messages are compressed if the server supports it (permessage-deflate, RFC
        /// 7692). Defaults to `true`.
        ///
        /// Compressing secrets together with data that an attacker controls can reveal the secrets.
        public var compresses = true

        /// Creates the default settings.
        public init() {}

        func settings(for agreement: WebSocketAgreement) -> WebSocketChannel.Settings {
            var settings = WebSocketChannel.Settings()
            settings.protocolOptions.deflate = agreement.deflate
            settings.protocolOptions.limits.maximumMessageLength = max(maximumMessageBytes, 0)
            settings.protocolOptions.limits.maximumFrameLength = max(maximumMessageBytes, 0)
            settings.protocolOptions.limits.maximumFragmentCount = max(maximumFragmentCount, 1)
            settings.bufferSize = max(bufferSize, 1)
            settings.pingInterval = pingInterval.map { max($0, .milliseconds(1)) }
            settings.closeTimeout = max(closeTimeout, .zero)
            return settings
        }
    }
}
