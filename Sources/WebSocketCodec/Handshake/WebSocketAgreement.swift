/// The result of a handshake.
package struct WebSocketAgreement: Sendable, Hashable {
    /// The subprotocol (RFC 6455, section 1.9); `nil` if there is none.
    package var subprotocol: String?
    /// The parameters of permessage-deflate; `nil` if messages are not compressed.
    package var deflate: DeflateParameters?

    package init(subprotocol: String? = nil, deflate: DeflateParameters? = nil) {
        self.subprotocol = subprotocol
        self.deflate = deflate
    }
}
