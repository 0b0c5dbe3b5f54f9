import Foundation
package import WebServiceCore

/// The object with which a caller uses an open connection of a ``CurlSession``.
///
/// The loop retains only the channel, so deallocating this object closes the connection.
final class CurlConnection: ByteConnection {
    private let channel: CurlChannel
    /// Retained for as long as the connection is used.
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

    /// Opens a connection in addition to those of requests.
    ///
    /// ``Configuration/maximumWebSocketConnections`` limits the number of these connections. The
    /// options of the session for connections of requests apply to them.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        let channel = CurlChannel(request, loop: nextLoop(), waitDidChange: waitDidChange)
        try await channel.open(configuration)
        return CurlConnection(channel, of: self)
    }
}
