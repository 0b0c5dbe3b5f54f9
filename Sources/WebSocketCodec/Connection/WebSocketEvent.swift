package import Foundation
package import WebServiceCore

/// An event that an endpoint receives from its peer.
package enum WebSocketEvent: Sendable, Hashable {
    case message(WebSocketMessage)
    /// A ping. The pong, if one is sent, is part of the output.
    case ping(Data)
    case pong(Data)
    /// The Close frame of the peer; `nil` if it is empty. The response is part of the output,
    /// unless this endpoint has sent a Close frame before. Nothing follows this event.
    case closed(WebSocketClosure?)
    /// A violation of the protocol. If it requires a Close frame, the frame is part of the output.
    /// Nothing follows this event.
    case failed(WebSocketViolation)
}
