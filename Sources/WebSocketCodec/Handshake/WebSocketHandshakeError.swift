/// The reason why a handshake fails (RFC 6455, section 4).
package enum WebSocketHandshakeError: Error, Sendable, Hashable {
    // Responses
    case unexpectedStatus(Int)
    case invalidAccept
    case unexpectedSubprotocol
    case unexpectedExtension
    case invalidExtensionParameters

    // Requests
    case invalidMethod
    case invalidKey
    case unsupportedVersion

    // Both
    case missingUpgrade
    case missingConnectionUpgrade
    case malformedSubprotocols
    case malformedExtensions

    /// The status of the response to an invalid request.
    package var status: Int {
        switch self {
        case .invalidMethod: 405
        case .missingUpgrade, .unsupportedVersion: 426
        default: 400
        }
    }
}

extension WebSocketHandshakeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unexpectedStatus(let status): "the response has status \(status) instead of 101; check the URL"
        case .invalidAccept: "the field Sec-WebSocket-Accept does not correspond to the key of the request"
        case .unexpectedSubprotocol: "the response selects a subprotocol that was not offered"
        case .unexpectedExtension: "the response selects an extension that was not offered"
        case .invalidExtensionParameters: "the parameters of permessage-deflate do not correspond to the offer"
        case .invalidMethod: "the method of the request is not GET"
        case .invalidKey: "the field Sec-WebSocket-Key is not 16 bytes in Base64"
        case .unsupportedVersion: "the version of the protocol is not 13"
        case .missingUpgrade: "the field Upgrade is not websocket"
        case .missingConnectionUpgrade: "the field Connection does not contain Upgrade"
        case .malformedSubprotocols: "the field Sec-WebSocket-Protocol is malformed"
        case .malformedExtensions: "the field Sec-WebSocket-Extensions is malformed"
        }
    }
}
