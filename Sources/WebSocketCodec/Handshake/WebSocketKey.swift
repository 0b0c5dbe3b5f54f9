import Foundation
import WebServiceCore

/// The value of `Sec-WebSocket-Key` (RFC 6455, section 11.3.1): 16 random bytes in Base64.
package struct WebSocketKey: Sendable, Hashable {
    package let value: String

    private static let length = 16
    private static let identifier = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// Creates a random key.
    package init(using generator: inout some RandomNumberGenerator) {
        value = Data((0..<Self.length).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
            .base64EncodedString()
    }

    /// Creates a key from the value of the field.
    ///
    /// - Returns: `nil` if the value is not 16 bytes in Base64.
    package init?(_ value: String) {
        guard Data(base64Encoded: value)?.count == Self.length else { return nil }
        self.value = value
    }

    /// The value of `Sec-WebSocket-Accept` in the response (section 4.2.2).
    package var accept: String {
        Data(SHA1.hash(Data((value + Self.identifier).utf8))).base64EncodedString()
    }
}
