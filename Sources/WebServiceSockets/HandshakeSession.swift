import Foundation
import WebServiceCore
import WebSocketCodec

/// A connection whose handshake is complete.
struct OpenedConnection: Sendable {
    let bytes: any ByteConnection
    let agreement: WebSocketAgreement
    /// The bytes that followed the response.
    let rest: Data
    /// The timeout of the request.
    let timeout: Duration
    /// The exchange, which ends together with the connection.
    let task: HandshakeTask
}

/// The session of a handshake, which opens a connection, sends the request and receives the
/// response.
///
/// The stages of the exchange treat this session like any other, so interceptors, cookies,
/// redirects, observers and the log apply to a handshake.
struct HandshakeSession: StreamingSession {
    let base: any Session
    let clock: TaskClock
    let subprotocols: [String]
    let compresses: Bool
    /// A closure that receives the connection before the response is delivered.
    let didOpen: @Sendable (OpenedConnection) -> Void

    var responseSource: Response.Source { base.responseSource }

    func addsCredentials(to url: URL) -> Bool { base.addsCredentials(to: url) }

    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        HandshakeTask(request, receiver, self)
    }
}
