import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// The names of a request's secrets, such as the names of header fields. They are determined only
/// once, because the inspector creates a row for each change of the exchange.
final class SentSecrets: Sendable {
    private let names = Mutex<[String]?>(nil)

    /// The maximum number of names from a body, and the maximum number of bytes of each name.
    private static let (maximumNames, maximumLength) = (8, 60)

    /// A mark that replaces the placeholder while a body is searched, so that a placeholder in the
    /// body itself does not count as a secret. No format escapes it.
    private static let mark = Array("SecretThatTheInspectorHasFound".utf8)

    /// Returns the names of the header fields that contain secrets, `URL` if the URL contains one,
    /// and the names of the secret values in the body, such as `password in the body`.
    func names(in attempt: RecordedAttempt, _ redaction: Redaction) -> [String] {
        if let known = names.withLock({ $0 }) { return known }
        var found = Self.fields(attempt.requestHeaders, redaction)
        if redaction.containsPlaceholder(redaction.url(attempt.url)) { found.append("URL") }
        found += Self.body(of: attempt, redaction)
        names.withLock { $0 = found }
        return found
    }

    /// Returns the names of the header fields that contain secrets.
    static func fields(_ headers: Headers, _ redaction: Redaction) -> [String] {
        headers.filter { redaction.value(ofHeader: $0.name, $0.value) != $0.value }.map(\.name)
    }

    private static func body(of attempt: RecordedAttempt, _ redaction: Redaction) -> [String] {
        guard let body = attempt.body, body.size > 0 else { return [] }
        var redaction = redaction
        redaction.placeholder = String(decoding: mark, as: UTF8.self)
        let headers = attempt.requestHeaders
        let redacted = redaction.body(
            body.data, contentType: headers[.contentType], contentEncoding: headers["Content-Encoding"])
        var names: [String] = []
        var rest = Array((redacted ?? "").utf8)[...]
        var isUnnamed = false
        while names.count < maximumNames, let place = rest.firstRange(of: mark) {
            if let name = name(before: rest[..<place.lowerBound]) {
                if !names.contains(name) { names.append(name) }
            } else {
                isUnnamed = true
            }
            rest = rest[place.upperBound...]
        }
        if names.isEmpty && isUnnamed { return ["body"] }
        return names.map { "\($0) in the body" }
    }

    /// Returns the name that precedes a value in a form, in JSON, in XML or in another notation.
    private static func name(before value: ArraySlice<UInt8>) -> String? {
        let separators = Set("\"'=:;, \t\r\n[{(>\\".utf8)
        let end = value.lastIndex { !separators.contains($0) }.map { $0 + 1 } ?? value.startIndex
        let others = Set("_-.%".utf8)
        let start =
            value[..<end].lastIndex { !ASCII.isAlphanumeric($0) && !others.contains($0) }.map { $0 + 1 }
            ?? value.startIndex
        guard (1...maximumLength).contains(end - start) else { return nil }
        let name = String(decoding: value[start..<end], as: UTF8.self)
        return name.removingPercentEncoding ?? name
    }
}
