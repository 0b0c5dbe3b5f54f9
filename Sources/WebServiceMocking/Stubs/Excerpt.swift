package import WebServiceCore
import WebServiceDiagnostics

/// The format of values in the explanation of a mismatch, which is one short line without secrets.
package enum Excerpt {
    private static let length = 60

    /// Returns the start of a string without secrets, with its control characters escaped.
    package static func text(_ text: some StringProtocol) -> String {
        let text = Redaction.standard.text(String(text.prefix(8 * length)))
        let start = String(text.prefix(length))
        return start.escapingControls + (start.utf8.count < text.utf8.count ? "…" : "")
    }

    package static func header(_ name: String, _ value: String) -> String {
        text(Redaction.standard.value(ofHeader: name, value))
    }

    package static func parameter(_ name: String, _ value: String) -> String {
        Redaction.standard.isSecret(parameter: name) ? Redaction.standard.placeholder : text(value)
    }

    /// Returns the number of bytes of a body, and the beginning of the body if it is text.
    package static func body(_ body: some Collection<UInt8>) -> String {
        let text = String(decoding: body.prefix(4 * length), as: UTF8.self)
        guard !body.isEmpty else { return "no bytes" }
        return text.unicodeScalars.contains("\u{FFFD}")
            ? "\(body.count) bytes" : "\(body.count) bytes that begin with \(self.text(text).debugDescription)"
    }

    package static func json(_ value: JSONValue) -> String {
        switch value {
        case .null, .bool, .integer, .unsigned, .double: value.description
        case .string(let value): text(value).debugDescription
        case .array(let values): values.isEmpty ? "[]" : "an array of \(values.count)"
        case .object(let values):
            values.isEmpty ? "{}" : "an object with the names " + text(values.keys.sorted().joined(separator: ", "))
        }
    }
}
