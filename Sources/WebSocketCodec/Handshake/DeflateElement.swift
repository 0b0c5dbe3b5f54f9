import WebServiceCore

/// The parameters of an offer or a response of permessage-deflate (RFC 7692, section 7.1).
struct DeflateElement: Sendable, Hashable {
    /// The parameter `client_max_window_bits`.
    enum ClientWindow: Hashable {
        case absent
        /// The parameter without a value, which only an offer can contain.
        case supported
        case bits(Int)
    }

    static let name = "permessage-deflate"
    private static let windowBits = 8...15

    var serverNoContextTakeover = false
    var clientNoContextTakeover = false
    var serverMaxWindowBits: Int?
    var clientMaxWindowBits = ClientWindow.absent

    /// - Returns: `nil` if the element is a different extension, or a parameter is unknown, is
    ///   repeated or has an invalid value (section 7.1).
    init?(_ element: ExtensionElement) {
        guard element.name == Self.name else { return nil }
        var names: Set<String> = []
        for parameter in element.parameters {
            guard names.insert(parameter.name).inserted, apply(parameter) else { return nil }
        }
    }

    private mutating func apply(_ parameter: ExtensionElement.Parameter) -> Bool {
        switch (parameter.name, parameter.value) {
        case ("server_no_context_takeover", nil): serverNoContextTakeover = true
        case ("client_no_context_takeover", nil): clientNoContextTakeover = true
        case ("client_max_window_bits", nil): clientMaxWindowBits = .supported
        case ("client_max_window_bits", let value?):
            guard let bits = Self.windowBits(value) else { return false }
            clientMaxWindowBits = .bits(bits)
        case ("server_max_window_bits", let value?):
            guard let bits = Self.windowBits(value) else { return false }
            serverMaxWindowBits = bits
        default: return false
        }
        return true
    }

    /// Returns the value of a decimal number from 8 to 15 without leading zeros; `nil` for any
    /// other string.
    private static func windowBits(_ value: String) -> Int? {
        guard value.utf8.first != UInt8(ascii: "0"), let bits = ASCII.number(value.utf8) else { return nil }
        return windowBits.contains(bits) ? bits : nil
    }
}
