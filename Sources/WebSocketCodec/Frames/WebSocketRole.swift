/// The role of an endpoint of a connection. A client masks its frames (RFC 6455, section 5.1).
package enum WebSocketRole: Sendable, CaseIterable {
    case client
    case server
}

extension WebSocketRole {
    /// The role of the other endpoint.
    package var peer: WebSocketRole { self == .client ? .server : .client }
}
