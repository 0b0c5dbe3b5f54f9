package import WebServiceCore

/// The handshake of a client (RFC 6455, section 4.1).
package struct ClientHandshake: Sendable, Hashable {
    package let key: WebSocketKey
    /// The subprotocols that are offered, in order of preference.
    package let subprotocols: [String]
    /// The parameters of the offered permessage-deflate; `nil` if it is not offered.
    package let deflate: DeflateParameters?

    /// Creates a handshake with a random key.
    ///
    /// - Parameters:
    ///   - subprotocols: The subprotocols to offer, in order of preference. Each must be a token
    ///     and occur only once. Defaults to an empty array.
    ///   - deflate: The preferred parameters of permessage-deflate, which is offered only if the
    ///     system has zlib.
    /// - Throws: ``WebSocketHandshakeError/malformedSubprotocols`` if a subprotocol occurs twice or
    ///   is not a token.
    package init(
        subprotocols: [String] = [], deflate: DeflateParameters? = DeflateParameters(), zlib: Zlib? = .system,
        using generator: inout some RandomNumberGenerator
    ) throws(WebSocketHandshakeError) {
        guard subprotocols.allSatisfy({ ASCII.isToken($0.utf8) }), Set(subprotocols).count == subprotocols.count else {
            throw .malformedSubprotocols
        }
        key = WebSocketKey(using: &generator)
        self.subprotocols = subprotocols
        self.deflate = zlib == nil ? nil : deflate
    }

    /// The header fields of the request.
    package var fields: Headers {
        var fields = Headers([
            ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", key.value),
            ("Sec-WebSocket-Version", "13"),
        ])
        if !subprotocols.isEmpty { fields.add(subprotocols.joined(separator: ", "), for: .webSocketProtocol) }
        if let deflate { fields.add(deflate.offer, for: .webSocketExtensions) }
        return fields
    }

    /// Verifies the response, and returns the result of the handshake.
    package func agreement(status: Int, headers: Headers) throws(WebSocketHandshakeError) -> WebSocketAgreement {
        guard status == 101 else { throw .unexpectedStatus(status) }
        try headers.requireUpgrade()
        guard headers.onlyValue(of: .webSocketAccept) == key.accept else { throw .invalidAccept }
        return WebSocketAgreement(
            subprotocol: try selectedSubprotocol(headers), deflate: try selectedDeflate(headers))
    }

    private func selectedSubprotocol(_ headers: Headers) throws(WebSocketHandshakeError) -> String? {
        guard !headers.values(for: .webSocketProtocol).isEmpty else { return nil }
        guard let selected = headers.onlyValue(of: .webSocketProtocol), subprotocols.contains(selected) else {
            throw .unexpectedSubprotocol
        }
        return selected
    }

    private func selectedDeflate(_ headers: Headers) throws(WebSocketHandshakeError) -> DeflateParameters? {
        guard let elements = ExtensionElement.parse(headers.values(for: .webSocketExtensions)) else {
            throw .malformedExtensions
        }
        guard let element = elements.first else { return nil }
        guard elements.count == 1, element.name == DeflateElement.name, let deflate else { throw .unexpectedExtension }
        guard let applied = DeflateElement(element).flatMap({ deflate.applying($0) }) else {
            throw .invalidExtensionParameters
        }
        return applied
    }
}
