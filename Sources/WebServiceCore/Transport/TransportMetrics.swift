public import Foundation

/// The progress of an exchange, measured in bytes of the bodies.
public struct TransferProgress: Sendable, Hashable {
    /// The number of bytes of the request body that were passed to the system.
    public var bytesSent: Int64
    /// The length of the request body; 0 if there is no body, and `nil` if the length is unknown.
    ///
    /// The length is unknown for a sequence without a length, for a Foundation input stream, and
    /// for a file or sequence that is compressed while it is sent.
    public var bytesToSend: Int64?
    /// The number of bytes of the response body that were received, counted after decompression, or
    /// before decompression for a body that `CurlSession` streams.
    public var bytesReceived: Int64
    /// The length of the response body; `nil` if it is unknown.
    ///
    /// The length is unknown before the head has arrived, and for a body that is compressed or has
    /// no `Content-Length`.
    public var bytesToReceive: Int64?
    /// The transfer rate in bytes per second, averaged over the last three seconds.
    ///
    /// Until bytes of the response body arrive, this is the rate of the request body; from then on,
    /// it is the rate of the response body. The value is `nil` if no handler observes the progress,
    /// and during the first tenth of a second of each body.
    public var bytesPerSecond: Double?

    /// Creates the progress of an exchange.
    public init(
        bytesSent: Int64 = 0, bytesToSend: Int64? = 0, bytesReceived: Int64 = 0, bytesToReceive: Int64? = nil,
        bytesPerSecond: Double? = nil
    ) {
        self.bytesSent = bytesSent
        self.bytesToSend = bytesToSend
        self.bytesReceived = bytesReceived
        self.bytesToReceive = bytesToReceive
        self.bytesPerSecond = bytesPerSecond
    }

    /// The fraction of the request body that was sent, from 0 to 1; 1 if there is no body.
    ///
    /// The value is `nil` while the length is unknown.
    public var fractionSent: Double? { Self.fraction(bytesSent, of: bytesToSend) }

    /// The fraction of the response body that was received, from 0 to 1.
    ///
    /// The value is `nil` while the length is unknown.
    public var fractionReceived: Double? { Self.fraction(bytesReceived, of: bytesToReceive) }

    private static func fraction(_ count: Int64, of total: Int64?) -> Double? {
        total.map { $0 <= 0 ? 1 : min(1, Double(count) / Double($0)) }
    }

    /// The estimated number of seconds until the body in transfer is complete.
    ///
    /// The body is the one that ``bytesPerSecond`` measures. The value is `nil` while the length of
    /// that body or the rate is unknown, or while the rate is 0.
    public var secondsRemaining: Double? {
        let isSending = bytesReceived == 0 && bytesSent > 0
        guard let total = isSending ? bytesToSend : bytesToReceive, let bytesPerSecond, bytesPerSecond > 0 else {
            return nil
        }
        return max(0, Double(total - (isSending ? bytesSent : bytesReceived))) / bytesPerSecond
    }
}

/// The metrics of one request on a transport: durations and bytes.
///
/// A phase that did not take place, such as connecting on a reused connection, is `nil`.
public struct TransportMetrics: Sendable, Hashable {
    /// The duration of the name lookup.
    public var nameLookup: Duration?
    /// The duration of connecting, excluding TLS.
    public var connect: Duration?
    /// The duration of the TLS handshake.
    public var secureConnect: Duration?
    /// The duration from the start of the request to the first byte of the response.
    public var firstByte: Duration?
    /// The duration from the start of the request to its end.
    public var total: Duration
    /// The number of bytes sent, including the head.
    public var bytesSent: Int64
    /// The number of bytes received, including the head, before decompression and without chunk
    /// framing.
    public var bytesReceived: Int64
    /// Whether an existing connection was reused.
    public var isConnectionReused: Bool
    /// The protocol, such as `HTTP/1.1` or `HTTP/2`; `nil` if it is unknown, for example because
    /// nothing was received.
    public var networkProtocol: String?
    /// The IP address to which the request was sent: that of the server, or of the proxy.
    ///
    /// The value is `nil` if the session does not report the address, and for a Unix domain socket.
    public var remoteAddress: String?
    /// The port of ``remoteAddress``.
    public var remotePort: Int?
    /// The version of TLS, such as `TLSv1.3`.
    ///
    /// The value is `nil` if the connection to the server does not use TLS, or if the session does
    /// not report the version.
    public var tlsVersion: String?
    /// The cipher suite of TLS, such as `TLS_AES_256_GCM_SHA384`.
    ///
    /// The value is `nil` if the connection to the server does not use TLS, or if the session does
    /// not report the cipher suite.
    public var tlsCipher: String?
    /// The certificates of the server in DER, beginning with its own; empty if the session does not
    /// report them.
    public var certificates: [Data] = []
    /// The header fields of the request as they were sent, with those that the session has added,
    /// such as `Host`, `User-Agent` and `Content-Length`.
    ///
    /// The fields may contain credentials and cookies. They are empty if the session does not
    /// report them.
    public var requestHeaders: Headers = [:]

    /// Creates the metrics of a request.
    public init(
        nameLookup: Duration? = nil, connect: Duration? = nil, secureConnect: Duration? = nil,
        firstByte: Duration? = nil, total: Duration, bytesSent: Int64 = 0, bytesReceived: Int64 = 0,
        isConnectionReused: Bool = false, networkProtocol: String? = nil, remoteAddress: String? = nil
    ) {
        self.nameLookup = nameLookup
        self.connect = connect
        self.secureConnect = secureConnect
        self.firstByte = firstByte
        self.total = total
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived
        self.isConnectionReused = isConnectionReused
        self.networkProtocol = networkProtocol
        self.remoteAddress = remoteAddress
    }
}
