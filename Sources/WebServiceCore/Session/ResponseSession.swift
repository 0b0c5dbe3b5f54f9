public import Foundation

/// A session that can say more than the completion of ``Session`` has room for: a head that is parsed when it is read, measurements of the transport, and
/// how far an exchange has come.
///
/// A service uses ``responseTask(request:progress:completion:)`` where the session has it, and
/// ``Session/dataTask(request:completion:)`` where not; users see no other difference.
public protocol ResponseSession: Session {
    /// Makes a task that sends `request` once it is resumed; until then nothing happens.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - progress: To be called as bytes move, one call after another, on any thread, and not after the completion; `nil` when nobody asks.
    ///   - completion: To be called exactly once after the task was resumed, with the answer or the error, and what was measured; after `cancel()` with
    ///     `URLError.cancelled`. It may be called on the session's own thread: what a service hands over returns at once and runs nothing of the user's.
    func responseTask(
        request: any URLRequestEncodable,
        progress: (@Sendable (_ progress: TransferProgress) -> Void)?,
        completion: @escaping @Sendable (_ result: Result<Response, any Error>, _ metrics: TransportMetrics?) -> Void
    ) -> any DataTask
}

/// How far an exchange has come, in bytes of the bodies.
public struct TransferProgress: Sendable, Hashable {
    /// Bytes of the request's body that were handed to the system.
    public var bytesSent: Int64
    /// The length of the request's body; 0 without one.
    public var bytesToSend: Int64
    /// Bytes of the response's body that were received, after decompression.
    public var bytesReceived: Int64
    /// The length of the response's body; `nil` while it is not known, and where it is compressed or comes in chunks.
    public var bytesToReceive: Int64?

    /// Makes a progress.
    public init(bytesSent: Int64 = 0, bytesToSend: Int64 = 0, bytesReceived: Int64 = 0, bytesToReceive: Int64? = nil) {
        self.bytesSent = bytesSent
        self.bytesToSend = bytesToSend
        self.bytesReceived = bytesReceived
        self.bytesToReceive = bytesToReceive
    }

    /// The part of the upload that is done, from 0 to 1; 1 without a body.
    public var fractionSent: Double { bytesToSend <= 0 ? 1 : min(1, Double(bytesSent) / Double(bytesToSend)) }

    /// The part of the download that is done, from 0 to 1; `nil` while the length is not known.
    public var fractionReceived: Double? {
        bytesToReceive.map { $0 <= 0 ? 1 : min(1, Double(bytesReceived) / Double($0)) }
    }
}

/// What a transport measured of one message, in seconds and bytes. A phase that did not take place, such as connecting on a kept-alive connection, is `nil`.
public struct TransportMetrics: Sendable, Hashable {
    /// Looking up the host's address.
    public var nameLookup: TimeInterval?
    /// Connecting, without TLS.
    public var connect: TimeInterval?
    /// The TLS handshake.
    public var secureConnect: TimeInterval?
    /// From the moment the transport took the message up until the first byte of the answer.
    public var firstByte: TimeInterval?
    /// From the moment the transport took the message up until its end.
    public var total: TimeInterval
    /// Bytes sent, head and body.
    public var bytesSent: Int64
    /// Bytes received, head and body, as they came: before decompression, without what frames chunks.
    public var bytesReceived: Int64
    /// Whether the connection was there before.
    public var isConnectionReused: Bool
    /// The protocol: `HTTP/1.1`, `HTTP/2` …; `nil` when nothing was received.
    public var networkProtocol: String?

    /// Makes measurements.
    public init(
        nameLookup: TimeInterval? = nil, connect: TimeInterval? = nil, secureConnect: TimeInterval? = nil, firstByte: TimeInterval? = nil,
        total: TimeInterval, bytesSent: Int64 = 0, bytesReceived: Int64 = 0, isConnectionReused: Bool = false, networkProtocol: String? = nil
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
    }
}
