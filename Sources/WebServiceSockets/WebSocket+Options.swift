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
        /// The number of bytes of received messages that are buffered for the reader before the
        /// server is held back, and of sent messages that are buffered before `send` waits.
        /// Defaults to 256 KiB.
        public var bufferSize = 256 << 10
        /// The interval of automatic pings, on the clock of the service; `nil` to send none.
        /// Defaults to 30 seconds.
        ///
        /// A connection on which nothing was received since the last ping has failed, with
        /// `URLError.timedOut`. While messages wait for a reader, no ping is sent.
        public var pingInterval: Duration? = .seconds(30)
        /// The maximum wait for the server to close the connection, on the clock of the service.
        /// Defaults to 5 seconds.
        public var closeTimeout: Duration = .seconds(5)
        /// A Boolean value that indicates whether messages are compressed if the server supports it
        /// (permessage-deflate, RFC 7692). Defaults to `true`.
        ///
        /// Compression of secrets together with data of an attacker can reveal the secrets.
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
