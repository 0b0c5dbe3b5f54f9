extension DeflateParameters {
    private static let maximumWindowBits = 15

    /// The offer of a client, as an element of `Sec-WebSocket-Extensions`.
    var offer: String {
        field(
            serverWindow: limit(serverMaxWindowBits), clientWindow: limit(clientMaxWindowBits) ?? "")
    }

    /// Returns the response of a server to an offer, as an element of `Sec-WebSocket-Extensions`.
    ///
    /// The response contains the window of the server if the offer does (section 7.1.2.1).
    func response(to offer: DeflateElement) -> String {
        field(
            serverWindow: offer.serverMaxWindowBits == nil ? limit(serverMaxWindowBits) : "=\(serverMaxWindowBits)",
            clientWindow: limit(clientMaxWindowBits))
    }

    /// Returns the value of a parameter that limits a window; `nil` for the maximum.
    private func limit(_ bits: Int) -> String? { bits < Self.maximumWindowBits ? "=\(bits)" : nil }

    private func field(serverWindow: String?, clientWindow: String?) -> String {
        var field = DeflateElement.name
        if serverNoContextTakeover { field += "; server_no_context_takeover" }
        if clientNoContextTakeover { field += "; client_no_context_takeover" }
        if let serverWindow { field += "; server_max_window_bits" + serverWindow }
        if let clientWindow { field += "; client_max_window_bits" + clientWindow }
        return field
    }

    /// Returns the parameters that a server with these preferences applies if it accepts an offer.
    func accepting(_ offer: DeflateElement) -> DeflateParameters {
        var accepted = self
        accepted.serverNoContextTakeover = serverNoContextTakeover || offer.serverNoContextTakeover
        accepted.clientNoContextTakeover = clientNoContextTakeover || offer.clientNoContextTakeover
        accepted.serverMaxWindowBits = min(serverMaxWindowBits, offer.serverMaxWindowBits ?? Self.maximumWindowBits)
        switch offer.clientMaxWindowBits {
        case .absent: accepted.clientMaxWindowBits = Self.maximumWindowBits
        case .supported: break
        case .bits(let bits): accepted.clientMaxWindowBits = min(clientMaxWindowBits, bits)
        }
        return accepted
    }

    /// Returns the parameters that a client with this offer applies after a response.
    ///
    /// - Returns: `nil` if the response does not correspond to the offer (section 7.1).
    func applying(_ response: DeflateElement) -> DeflateParameters? {
        guard response.serverNoContextTakeover || !serverNoContextTakeover else { return nil }
        var applied = self
        applied.serverNoContextTakeover = response.serverNoContextTakeover
        applied.clientNoContextTakeover = clientNoContextTakeover || response.clientNoContextTakeover
        applied.serverMaxWindowBits = response.serverMaxWindowBits ?? Self.maximumWindowBits
        switch response.clientMaxWindowBits {
        case .absent: break
        case .supported: return nil
        case .bits(let bits): applied.clientMaxWindowBits = bits
        }
        guard applied.serverMaxWindowBits <= serverMaxWindowBits, applied.clientMaxWindowBits <= clientMaxWindowBits
        else { return nil }
        return applied
    }
}
