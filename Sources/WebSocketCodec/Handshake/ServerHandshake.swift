package import WebServiceCore

/// The handshake of a server (RFC 6455, section 4.2).
package struct ServerHandshake: Sendable, Hashable {
    package let key: WebSocketKey
    /// The subprotocols that the client offers, in order of its preference.
    package let subprotocols: [String]
    private let extensions: [ExtensionElement]

    /// Creates a handshake from an HTTP/1.1 request. Throws an error if the request is not a valid
    /// handshake.
    package init(method: String, headers: Headers) throws(WebSocketHandshakeError) {
        guard method == "GET" else { throw .invalidMethod }
        try headers.requireUpgrade()
        guard headers.onlyValue(of: .webSocketVersion) == "13" else { throw .unsupportedVersion }
        guard let key = headers.onlyValue(of: .webSocketKey).flatMap({ WebSocketKey($0) }) else { throw .invalidKey }
        guard let extensions = ExtensionElement.parse(headers.values(for: .webSocketExtensions)) else {
            throw .malformedExtensions
        }
        self.key = key
        self.extensions = extensions
        subprotocols = headers.members(of: .webSocketProtocol)
        guard subprotocols.allSatisfy({ ASCII.isToken($0.utf8) }) else { throw .malformedSubprotocols }
    }

    /// The first valid offer of permessage-deflate.
    private var offer: DeflateElement? { extensions.lazy.compactMap { DeflateElement($0) }.first }

    /// Returns the result of the handshake according to the server's preferences.
    ///
    /// - Parameters:
    ///   - supported: The subprotocols of the server, in order of preference. The first one that
    ///     the client offers is selected.
    ///   - deflate: The preferred parameters of permessage-deflate, which is accepted only if the
    ///     system has zlib. The first valid offer applies.
    package func agreement(
        subprotocols supported: [String] = [], deflate: DeflateParameters? = DeflateParameters(),
        zlib: Zlib? = .system
    ) -> WebSocketAgreement {
        let offered = Set(subprotocols)
        return WebSocketAgreement(
            subprotocol: supported.first(where: offered.contains),
            deflate: zlib == nil ? nil : offer.flatMap { deflate?.accepting($0) })
    }

    /// Returns the header fields of the response with status 101.
    package func fields(for agreement: WebSocketAgreement) -> Headers {
        var fields = Headers([
            ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", key.accept),
        ])
        if let subprotocol = agreement.subprotocol { fields.add(subprotocol, for: .webSocketProtocol) }
        if let deflate = agreement.deflate, let offer {
            fields.add(deflate.response(to: offer), for: .webSocketExtensions)
        }
        return fields
    }

    /// Returns the header fields of the response to an invalid request.
    package static func fields(for error: WebSocketHandshakeError) -> Headers {
        switch error {
        case .invalidMethod: ["Allow": "GET"]
        case .missingUpgrade: ["Upgrade": "websocket", "Connection": "Upgrade"]
        case .unsupportedVersion:
            ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"]
        default: [:]
        }
    }
}
