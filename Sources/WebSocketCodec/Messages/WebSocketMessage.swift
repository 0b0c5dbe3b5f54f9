package import Foundation

/// A message with all its fragments (RFC 6455, section 5.6).
package enum WebSocketMessage: Sendable, Hashable {
    case text(String)
    case data(Data)
}
