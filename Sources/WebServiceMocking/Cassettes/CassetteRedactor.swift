import Foundation
import WebServiceCore

/// Replaces the secrets of exchanges by placeholders that are equal for equal secrets.
///
/// The placeholder of a string consists of characters that are valid in URLs, forms, cookies and
/// JSON. A number in JSON is replaced by the number of its placeholder, so that it can be decoded.
final class CassetteRedactor: Sendable {
    private struct State {
        /// The numbers of the placeholders, by the secrets.
        var numbers: [String: Int] = [:]
    }

    static let prefix = "redacted-"

    private let state = Mutex(State())
    private let redaction: Redaction
    /// Values that are replaced wherever they occur, the longest first.
    private let values: [String]

    init(_ redaction: Redaction, values: [String]) {
        self.redaction = redaction
        self.values = values.filter { !$0.isEmpty }.sorted { ($1.utf8.count, $0) < ($0.utf8.count, $1) }
    }

    /// The secrets that were replaced so far.
    var secrets: [String] { state.withLock { $0.numbers.keys.sorted() } }

    /// Replaces the secrets of a request or a response.
    func redact(_ fields: Headers, _ body: Data) -> (fields: Headers, body: Data) {
        let contentType = fields[.contentType]
        return (
            Headers(fields.map { ($0.name, header($0.name, $0.value)) }), self.body(body, contentType: contentType)
        )
    }

    /// Replaces the secret values of the query. User information and the fragment are removed.
    func url(_ url: String) -> String {
        replacingValues(in: numbered.url(url))
    }

    func header(_ name: String, _ value: String) -> String {
        let value =
            switch name.asciiLowercased() {
            case "cookie": value.split(separator: "; ").map { pair($0) }.joined(separator: "; ")
            case "set-cookie":
                value.split(separator: ";", omittingEmptySubsequences: false).enumerated()
                    .map { $0 == 0 ? pair($1) : String($1) }.joined(separator: ";")
            case "authorization", "proxy-authorization": credentials(value)
            default: numbered.value(ofHeader: name, value)
            }
        return replacingValues(in: value)
    }

    private func body(_ body: Data, contentType: String?) -> Data {
        guard let text = numbered.body(body, contentType: contentType) else {
            return String(validating: body, as: UTF8.self).map { Data(replacingValues(in: $0).utf8) } ?? body
        }
        return Data(replacingValues(in: text).utf8)
    }

    /// Redacts the value of `name=value`. Without `=`, the whole is the value of a cookie without a
    /// name (RFC 6265bis, section 5.7).
    private func pair(_ pair: Substring) -> String {
        let name = pair.prefix { $0 != "=" }
        guard name.endIndex < pair.endIndex else { return placeholder(for: String(pair)) }
        return name + "=" + placeholder(for: String(pair[name.endIndex...].dropFirst()))
    }

    /// Redacts credentials and retains their scheme (RFC 9110, section 11.4).
    private func credentials(_ value: String) -> String {
        guard let space = value.firstIndex(of: " ") else { return placeholder(for: value) }
        let credentials = String(value[value.index(after: space)...])
        if value[..<space].asciiLowercased() == "basic", let pair = Data(base64Encoded: credentials),
            let colon = pair.firstIndex(of: UInt8(ascii: ":"))
        {
            // The password must not appear elsewhere either.
            _ = placeholder(for: String(decoding: pair[(colon + 1)...], as: UTF8.self))
        }
        return value[...space] + placeholder(for: credentials)
    }

    private var numbered: Redaction {
        var redaction = redaction
        redaction.substitute = { [self] secret, isJSON in
            if isJSON { return json(secret) }
            return placeholder(for: String(decoding: percentDecoded(secret.utf8), as: UTF8.self))
        }
        return redaction
    }

    /// Returns the placeholder for a secret; an empty string and a placeholder remain unchanged.
    func placeholder(for secret: String) -> String {
        guard !secret.isEmpty, !Self.isPlaceholder(secret) else { return secret }
        return Self.prefix + String(number(of: secret))
    }

    private func number(of secret: String) -> Int {
        state.withLock { state in
            let number = state.numbers[secret] ?? state.numbers.count + 1
            state.numbers[secret] = number
            return number
        }
    }

    private static func isPlaceholder(_ text: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.dropFirst(prefix.utf8.count).allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Redacts the strings and the numbers in JSON text. Names, Booleans and `null` remain.
    private func json(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let start = index
            if byte == UInt8(ascii: "\"") {
                index += 1
                while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
                    index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
                }
                index = min(index + 1, bytes.count)
                let isName = bytes[index...].first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: ":")
                result += isName ? Array(bytes[start..<index]) : Array(string(bytes[start..<index]).utf8)
            } else if byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) {
                while index < bytes.count, "+-.eE0123456789".utf8.contains(bytes[index]) { index += 1 }
                result += Array(String(number(of: String(decoding: bytes[start..<index], as: UTF8.self))).utf8)
            } else {
                result.append(byte)
                index += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Redacts the literal of a string.
    private func string(_ literal: ArraySlice<UInt8>) -> String {
        let value = try? JSON.decode(String.self, from: Data(literal))  // a damaged literal is redacted as it is
        return "\"\(placeholder(for: value ?? String(decoding: literal.dropFirst(), as: UTF8.self)))\""
    }

    private func replacingValues(in text: String) -> String {
        values.reduce(text) { text, value in
            text.contains(value) ? text.replacingOccurrences(of: value, with: placeholder(for: value)) : text
        }
    }
}
