import Foundation
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

/// A redactor that replaces the secrets in exchanges with placeholders. Equal secrets have equal
/// placeholders.
///
/// A placeholder consists of characters that are valid in URLs, forms, cookies, JSON and XML.
final class CassetteRedactor: Sendable {
    private struct State {
        /// The numbers of the placeholders, by secret.
        var numbers: [String: Int] = [:]
    }

    static let prefix = "redacted-"

    private let state = Mutex(State())
    private let redaction: Redaction
    /// Values that are replaced wherever they occur, with the longest first.
    private let values: [String]

    private let recordsUnsearchedBodies: Bool
    /// The greatest number of a placeholder that was in the file before the recording.
    private let offset: Int

    /// - Parameter file: The content of the file to which exchanges are added; `nil` if there is
    ///   none.
    init(_ redaction: Redaction, values: [String], recordsUnsearchedBodies: Bool, addingTo file: Data? = nil) {
        let text = file.map { String(decoding: $0, as: UTF8.self) } ?? ""
        // Longer numbers cannot be those of placeholders.
        offset = text.matches(of: #/redacted-([0-9]{1,9})/#).compactMap { Int($0.output.1) }.max() ?? 0
        self.redaction = redaction
        self.recordsUnsearchedBodies = recordsUnsearchedBodies
        self.values = values.filter { !$0.isEmpty }.sorted { ($1.utf8.count, $0) < ($0.utf8.count, $1) }
    }

    /// The secrets that have been replaced so far.
    var secrets: [String] { state.withLock { $0.numbers.keys.sorted() } }

    /// Replaces the secrets of a request or a response.
    ///
    /// - Parameter place: The name of the body in errors.
    /// - Throws: `WebServiceError` with the code `cassetteSecret` if secrets in the body cannot be
    ///   recognized.
    func redact(_ fields: Headers, _ body: Data, _ place: String) throws -> (fields: Headers, body: Data) {
        (redact(fields), try self.body(body, fields, place))
    }

    func redact(_ fields: Headers) -> Headers { Headers(fields.map { ($0.name, header($0.name, $0.value)) }) }

    func redact(
        _ message: CassetteSession.Exchange.Message, _ place: String
    ) throws -> CassetteSession.Exchange.Message {
        var message = message
        switch message.content {
        case .message(let content):
            let stored = Cassette.Message(content)
            let bytes = try body(stored.body, stored.fields, place)
            message.content = .message(content.isText ? .text(String(decoding: bytes, as: UTF8.self)) : .data(bytes))
        case .close(var closure?):
            let stored = Cassette.Message(.text(closure.reason))
            closure.reason = String(decoding: try body(stored.body, stored.fields, place), as: UTF8.self)
            message.content = .close(closure.shortened)
        case .close(nil): break
        }
        return message
    }

    /// Replaces the secrets in a URL, and removes user information and the fragment.
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

    private func body(_ body: Data, _ fields: Headers, _ place: String) throws -> Data {
        var body = body
        let type = fields[.contentType]
        switch numbered.search(body, contentType: type, contentEncoding: fields["Content-Encoding"]) {
        case .text(let text): body = text
        case .media: break
        case .unsearchable where recordsUnsearchedBodies: break
        case .unsearchable:
            let kind = type.map { "the type \(Excerpt.text($0))" } ?? "no type"
            throw WebServiceError(
                .cassetteSecret,
                "the cassette was not written: \(place) has \(kind), and secrets in it cannot be recognized; "
                    + "pass recordsUnsearchedBodies: true to record it unchanged")
        }
        guard !values.isEmpty else { return body }
        return String(validating: body, as: UTF8.self).map { Data(replacingValues(in: $0).utf8) } ?? body
    }

    /// Redacts the value in `name=value`. If there is no `=`, the whole string is the value of a
    /// cookie without a name (RFC 6265bis, section 5.6).
    private func pair(_ pair: Substring) -> String {
        let name = pair.prefix { $0 != "=" }
        guard name.endIndex < pair.endIndex else { return placeholder(for: String(pair)) }
        return name + "=" + placeholder(for: String(pair[name.endIndex...].dropFirst()))
    }

    /// Redacts credentials, but retains their scheme (RFC 9110, section 11.4).
    private func credentials(_ value: String) -> String {
        guard let space = value.firstIndex(of: " ") else { return placeholder(for: value) }
        let credentials = String(value[value.index(after: space)...])
        if value[..<space].asciiLowercased() == "basic", let pair = Data(base64Encoded: credentials),
            let colon = pair.firstIndex(of: UInt8(ascii: ":"))
        {
            // The password alone is also a secret, and must not appear elsewhere.
            _ = placeholder(for: String(decoding: pair[(colon + 1)...], as: UTF8.self))
        }
        return value[...space] + placeholder(for: credentials)
    }

    private var numbered: Redaction {
        var redaction = redaction
        redaction.substitute = { [self] secret in
            placeholder(for: String(decoding: percentDecoded(secret.utf8), as: UTF8.self))
        }
        return redaction
    }

    /// Returns the placeholder for a secret. An empty string or a placeholder is returned
    /// unchanged.
    func placeholder(for secret: String) -> String {
        guard !secret.isEmpty, !Self.isPlaceholder(secret) else { return secret }
        return Self.prefix + String(number(of: secret))
    }

    private func number(of secret: String) -> Int {
        state.withLock { state in
            let number = state.numbers[secret] ?? offset + state.numbers.count + 1
            state.numbers[secret] = number
            return number
        }
    }

    private static func isPlaceholder(_ text: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.dropFirst(prefix.utf8.count).allSatisfy { (0x30...0x39).contains($0) }
    }

    private func replacingValues(in text: String) -> String {
        values.reduce(text) { text, value in
            text.contains(value) ? text.replacingOccurrences(of: value, with: placeholder(for: value)) : text
        }
    }
}
