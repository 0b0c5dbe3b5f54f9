import Foundation
import Testing
import WebServiceDiagnostics

/// Text of an exchange that contains other text.
struct NestedText: CustomTestStringConvertible, Sendable {
    enum Place: Sendable {
        case url
        case header(String)
        case body(String)

        static let json = body("application/json")
        static let form = body("application/x-www-form-urlencoded")
        static let text = body("text/plain")
        static let html = body("text/html")
        static let xml = body("application/xml")
        static let events = body("text/event-stream")
        static let csv = body("text/csv")
        static let parts = body("multipart/form-data; boundary=b")
    }

    let place: Place
    let text: String
    /// The placeholder in the notation of its place.
    let mark: String

    /// Creates a text whose secrets are `canary-0`.
    ///
    /// - Parameter encodings: The number of times that a secret is percent-encoded.
    init(_ place: Place, encodings: Int = 0, _ text: String) {
        (self.place, self.text) = (place, text)
        let percent = "%" + String(repeating: "25", count: max(0, encodings - 1))
        mark = encodings == 0 ? "[redacted]" : "\(percent)5Bredacted\(percent)5D"
    }

    var testDescription: String { "\(place): \(text)".replacingOccurrences(of: "\n", with: "⏎") }

    /// The text without its secrets.
    var expected: String { text.replacingOccurrences(of: "canary-0", with: mark) }

    var redacted: String? {
        switch place {
        case .url: Redaction.standard.url(text)
        case .header(let name): Redaction.standard.value(ofHeader: name, text)
        case .body(let type): Redaction.standard.body(Data(text.utf8), contentType: type)
        }
    }
}
