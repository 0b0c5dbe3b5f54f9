/// The parameters of the permessage-deflate extension (RFC 7692, section 7.1).
///
/// Before the handshake, the parameters are the preferences of one endpoint. Afterwards, both
/// endpoints apply them.
package struct DeflateParameters: Sendable, Hashable {
    /// Whether the server compresses each message independently.
    package var serverNoContextTakeover = false
    /// Whether the client compresses each message independently.
    package var clientNoContextTakeover = false
    /// The base-2 logarithm of the maximum window size of the server, from 8 to 15.
    package var serverMaxWindowBits = 15
    /// The base-2 logarithm of the maximum window size of the client, from 8 to 15.
    package var clientMaxWindowBits = 15

    package init() {}

    /// Returns the maximum window size of an endpoint's messages.
    func windowBits(from role: WebSocketRole) -> Int {
        role == .client ? clientMaxWindowBits : serverMaxWindowBits
    }

    /// Returns whether compressed messages of an endpoint refer to its earlier messages.
    func hasContextTakeover(from role: WebSocketRole) -> Bool {
        role == .client ? !clientNoContextTakeover : !serverNoContextTakeover
    }
}
