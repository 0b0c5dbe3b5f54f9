import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// The exchanges whose redacted bodies or messages contain a string, as the page shows them.
struct BodySearch: Encodable {
    /// The numbers of the exchanges, with the oldest first.
    let numbers: [Int]

    /// The maximum length of the string to find, in bytes.
    private static let maximumText = 200

    init(_ text: String, in exchanges: [RecordedExchange], _ redaction: Redaction) {
        let wanted = Data(text.lowercased().utf8.prefix(Self.maximumText))
        numbers = wanted.isEmpty ? [] : exchanges.filter { Self.has(wanted, $0, redaction) }.map(\.number)
    }

    private static func has(_ wanted: Data, _ exchange: RecordedExchange, _ redaction: Redaction) -> Bool {
        let responses = exchange.attempts.map(\.response) + [exchange.response]
        return responses.contains { $0.map { has(wanted, $0.body, headers: $0.head.headers, redaction) } ?? false }
            || exchange.attempts.contains { attempt in
                attempt.body.map { has(wanted, $0, headers: attempt.requestHeaders, redaction) } ?? false
            }
            || exchange.messages?.messages.contains {
                has(wanted, RecordedBody($0), headers: $0.headers, redaction)
            } ?? false
    }

    /// Returns whether a redacted body contains the string.
    ///
    /// Bodies are redacted only if they contain the string before the redaction, because redacting
    /// takes more time.
    private static func has(
        _ wanted: Data, _ body: RecordedBody, headers: Headers, _ redaction: Redaction
    ) -> Bool {
        let isEncoded = headers["Content-Encoding"] != nil
        guard isEncoded || contains(wanted, String(decoding: body.data, as: UTF8.self)) else { return false }
        return ShownBody(body, headers, redaction).text.map { contains(wanted, $0) } ?? false
    }

    private static func contains(_ wanted: Data, _ text: String) -> Bool {
        Data(text.lowercased().utf8).range(of: wanted) != nil
    }
}
