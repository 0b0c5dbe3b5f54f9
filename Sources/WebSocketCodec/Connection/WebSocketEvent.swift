package import Foundation
package import WebServiceCore

/// An event that an endpoint receives from its peer.
package enum WebSocketEvent: Sendable, Hashable {
    case message(WebSocketMessage)
    /// A ping. The pong is part of the output.
    case ping(Data)
    case pong(Data)
    /// The Close frame of the peer; `nil` if it is empty. The response is part of the output.
    /// Nothing follows this event.
    case closed(WebSocketClosure?)
    /// A violation of the protocol. A Close frame is part of the output. Nothing follows this
    /// event.
    case failed(WebSocketViolation)
}
