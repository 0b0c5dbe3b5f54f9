import Foundation
import WebServiceCore
import WebServiceMocking

/// A search for secrets in a redacted exchange that the redaction does not cover.
struct SecretScan {
    /// The values that were redacted elsewhere, except short ones.
    private let secrets: [[UInt8]]
    private let allowed: Set<String>

    /// The minimum length of a redacted value to search for, in bytes.
    private static let minimumSecret = 8
    /// The minimum length of a string that looks like a token, in bytes.
    private static let minimumToken = 24
    private static let prefixes = ["AKIA", "eyJ", "ghp_", "github_pat_", "glpat-", "sk-", "sk_live_", "xoxb-", "xoxp-"]
    /// Header fields whose values are random but not secret.
    private static let randomFields: Set<String> = [
        "content-digest", "content-type", "etag", "if-match", "if-none-match", "if-range", "repr-digest",
        "sec-websocket-accept", "sec-websocket-key",
    ]

    init(secrets: [String], allowed: Set<String>) {
        self.secrets = secrets.filter { $0.utf8.count >= Self.minimumSecret && !allowed.contains($0) }
            .map { Array($0.utf8) }
        self.allowed = allowed
    }

    /// Returns a description of the first finding, or `nil` if there is none.
    func finding(in exchange: Cassette.Exchange) -> String? {
        if let url = exchange.request.url, let kind = finding(inText: url) { return "\(kind) in its URL" }
        for (message, name) in [(exchange.request, "request"), (exchange.response ?? .init(), "response")] {
            for field in message.fields {
                let scansTokens = !Self.randomFields.contains(field.name.asciiLowercased())
                if let kind = finding(inText: field.value, scansTokens: scansTokens) {
                    return "\(kind) in the \(name) header field \(Excerpt.text(field.name))"
                }
            }
            for field in message.trailerFields {
                if let kind = finding(inText: field.value) { return "\(kind) in a trailer field" }
            }
            if let text = message.text, let kind = finding(inText: text, boundary(of: message)) {
                return "\(kind) in its \(name) body"
            }
            if contains(message.body) { return "a redacted value in its \(name) body" }
        }
        for (number, frame) in (exchange.messages ?? []).enumerated() {
            if let kind = finding(in: frame) { return "\(kind) in message \(number + 1)" }
        }
        return nil
    }

    private func finding(in frame: Cassette.Frame) -> String? {
        if let text = frame.text ?? frame.base64.flatMap({ Cassette.Message.text(of: $0) }) {
            return finding(inText: text)
        }
        return frame.base64.map { contains($0) } == true ? "a redacted value" : nil
    }

    /// Returns the boundary of a multipart body, which is random but not secret.
    private func boundary(of message: Cassette.Message) -> String? {
        message.fields[.contentType].flatMap(CassetteRequest.boundary)
    }

    private func finding(inText text: String, scansTokens: Bool = true, _ boundary: String? = nil) -> String? {
        if contains(text.utf8) || contains(percentDecoded(text.utf8)) { return "a redacted value" }
        guard scansTokens else { return nil }
        var text = text
        if let boundary { text = text.replacingOccurrences(of: boundary, with: " ") }
        if text.contains(";base64,") || text.contains("sha") {
            // Images in data URLs and digests are not secret.
            text.replace(
                #/(?:data:(?:image|audio|video|font)\/[-+.a-z0-9]+;base64,|sha(?:256|384|512)-)[A-Za-z0-9+\/=_-]+/#,
                with: " ")
        }
        return Self.words(of: text).contains(where: isToken) ? "a value that looks like a token" : nil
    }

    private func contains(_ bytes: some Collection<UInt8>) -> Bool {
        let bytes = Array(bytes)
        return secrets.contains { bytes.firstRange(of: $0) != nil }
    }

    private static func words(of text: String) -> [Substring.UTF8View] {
        text.utf8.split { !(isLetterOrDigit($0) || "-_.+=".utf8.contains($0)) }.map { Substring($0).utf8 }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }

    /// Returns whether a word looks like a token. It does if it has at least 16 bytes and a
    /// well-known prefix, or if it is longer and contains uppercase letters, lowercase letters and
    /// digits in an irregular sequence.
    private func isToken(_ word: Substring.UTF8View) -> Bool {
        guard word.count >= 16, let text = String(word), !allowed.contains(text) else { return false }
        if Self.prefixes.contains(where: text.hasPrefix) { return true }
        guard word.count >= Self.minimumToken, word.contains(where: { (0x30...0x39).contains($0) }),
            word.contains(where: { (0x41...0x5A).contains($0) }), word.contains(where: { (0x61...0x7A).contains($0) })
        else { return false }
        return Self.entropy(of: word) >= 4
    }

    /// Returns the entropy of the bytes in bits per byte.
    private static func entropy(of bytes: Substring.UTF8View) -> Double {
        var counts: [UInt8: Int] = [:]
        for byte in bytes { counts[byte, default: 0] += 1 }
        let total = Double(bytes.count)
        return counts.values.reduce(0) { $0 - Double($1) / total * log2(Double($1) / total) }
    }
}
