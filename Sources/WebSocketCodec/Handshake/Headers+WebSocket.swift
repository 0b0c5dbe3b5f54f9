import WebServiceCore

extension Headers.Name {
    static let upgrade = Self("Upgrade")
    static let connection = Self("Connection")
    static let webSocketKey = Self("Sec-WebSocket-Key")
    static let webSocketVersion = Self("Sec-WebSocket-Version")
    static let webSocketProtocol = Self("Sec-WebSocket-Protocol")
    static let webSocketExtensions = Self("Sec-WebSocket-Extensions")
    static let webSocketAccept = Self("Sec-WebSocket-Accept")
}

extension Headers {
    /// Returns the members of a list (RFC 9110, section 5.6.1), without spaces around them.
    func members(of name: Name) -> [String] {
        values(for: name).flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
            .map { String(decoding: ASCII.trimmed($0), as: UTF8.self) }.filter { !$0.isEmpty }
    }

    /// Throws an error unless the fields request or accept the upgrade to WebSocket (RFC 6455,
    /// sections 4.1 and 4.2.1).
    func requireUpgrade() throws(WebSocketHandshakeError) {
        guard members(of: .upgrade).contains(where: { $0.equalsIgnoringASCIICase("websocket") }) else {
            throw .missingUpgrade
        }
        guard members(of: .connection).contains(where: { $0.equalsIgnoringASCIICase("Upgrade") }) else {
            throw .missingConnectionUpgrade
        }
    }

    /// Returns the only value of a field, without the spaces around it; `nil` if there are none or
    /// several.
    func onlyValue(of name: Name) -> String? {
        let values = values(for: name)
        guard values.count == 1 else { return nil }
        return values.first.map { String(decoding: ASCII.trimmed($0.utf8), as: UTF8.self) }
    }
}
