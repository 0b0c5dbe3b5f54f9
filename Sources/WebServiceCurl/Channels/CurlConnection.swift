import Foundation
package import WebServiceCore

/// The object with which a caller uses an open connection of a ``CurlSession``.
///
/// The loop retains only the channel, so deallocating this object closes the connection.
final class CurlConnection: ByteConnection {
    private let channel: CurlChannel
    /// Retained while the connection is used.
    private let session: CurlSession

    /// - Parameter channel: An open channel.
    init(_ channel: CurlChannel, of session: CurlSession) {
        self.channel = channel
        self.session = session
    }

    deinit {
        channel.close()
    }

    var metrics: TransportMetrics { channel.metrics }

    var executor: (any TaskExecutor)? { channel.executor }

    func receive() async throws -> Data { try await channel.receive() }

    func send(_ bytes: Data) async throws { try await channel.send(bytes) }

    func close() { channel.close() }
}

extension CurlSession: ConnectingSession {
    package var defaultHeaders: Headers {
        var headers = Headers()
        headers[.userAgent] = configuration.userAgent
        headers[.acceptLanguage] = configuration.acceptLanguage
        return headers
    }

    /// Opens a connection that is separate from those of requests.
    ///
    /// ``Configuration/maximumWebSocketConnections`` limits the number of these connections. The
    /// session's options for the connections of requests apply to these connections as well.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        let channel = CurlChannel(request, loop: nextLoop(), waitDidChange: waitDidChange)
        try await channel.open(configuration)
        return CurlConnection(channel, of: self)
    }
}
