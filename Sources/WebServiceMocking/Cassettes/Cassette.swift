import Foundation
public import WebServiceCore

/// The content of a cassette file: exchanges in the order in which their requests were sent.
struct Cassette: Codable, Sendable {
    struct Exchange: Codable, Sendable {
        var request: Message
        /// The response; `nil` if the transport failed.
        var response: Message?
        /// The code of the `URLError`; `nil` if there is a response.
        var error: Int?
    }

    /// A request or a response.
    struct Message: Codable, Sendable {
        /// The method and the URL of a request.
        var method: String?
        var url: String?
        /// The status code of a response.
        var status: Int?
        /// The header fields in order, each as `name: value`; `nil` if there are none.
        var headers: [String]?
        /// A body of text; `nil` if it is empty or binary.
        var text: String?
        /// The bytes of a binary body.
        var base64: Data?

        var body: Data { text.map { Data($0.utf8) } ?? base64 ?? Data() }

        var fields: Headers {
            Headers(
                (headers ?? []).compactMap { line in
                    guard let colon = line.firstIndex(of: ":") else { return nil }
                    return (String(line[..<colon]), line[line.index(after: colon)...].drop { $0 == " " }.description)
                })
        }

        /// Sets the header fields and the body.
        mutating func set(_ fields: Headers, _ body: Data) {
            headers = fields.isEmpty ? nil : fields.map { "\($0.name): \($0.value)" }
            text = Self.text(of: body)
            base64 = text == nil && !body.isEmpty ? body : nil
        }

        /// Returns a body as text; `nil` if it is empty, is not UTF-8 or has control characters
        /// other than tab, line feed and carriage return.
        private static func text(of body: Data) -> String? {
            guard !body.isEmpty, !body.contains(where: { $0 < 0x20 && ![9, 10, 13].contains($0) || $0 == 0x7F }) else {
                return nil
            }
            return String(validating: body, as: UTF8.self)
        }

        /// The head of the response; `nil` if a damaged file does not contain one.
        func head(url: String) -> ResponseHead? {
            guard let status, (100...999).contains(status) else { return nil }
            var lines = "HTTP/1.1 \(status)\r\n"
            for field in fields {
                guard ASCII.isToken(field.name.utf8), ASCII.isFieldValue(field.value.utf8) else { return nil }
                lines += "\(field.name): \(field.value)\r\n"
            }
            return ResponseHead(bytes: Array(lines.utf8), url: url)
        }
    }

    var version = 1
    var exchanges: [Exchange] = []

    /// Reads a file.
    ///
    /// - Throws: `WebServiceError` with the code `cassette` if the file cannot be read or is
    ///   damaged.
    init(contentsOf file: URL) throws {
        let name = file.lastPathComponent
        let data: Data
        do { data = try Data(contentsOf: file) } catch {
            throw WebServiceError(.cassette, "the cassette \(name) cannot be read", underlying: error)
        }
        do { self = try JSON.decode(Cassette.self, from: data) } catch {
            throw WebServiceError(.cassette, "the cassette \(name) is damaged: \(error)", underlying: error)
        }
        guard version == 1 else {
            throw WebServiceError(.cassette, "the cassette \(name) has the unknown version \(version)")
        }
        for (place, exchange) in exchanges.enumerated() where !exchange.isValid {
            throw WebServiceError(
                .cassette, "the cassette \(name) is damaged: exchange \(place + 1) has no valid request and response")
        }
    }

    init(_ exchanges: [Exchange]) {
        self.exchanges = exchanges
    }

    /// Writes the file atomically, and its folder if it does not exist.
    ///
    /// - Throws: `WebServiceError` with the code `cassette`.
    func write(to file: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            let data = try encoder.encode(self) + Data("\n".utf8)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try data.write(to: file, options: .atomic)
        } catch {
            throw WebServiceError(
                .cassette, "the cassette \(file.lastPathComponent) cannot be written", underlying: error)
        }
    }
}

extension Cassette.Exchange {
    fileprivate var isValid: Bool {
        guard request.method != nil, let url = request.url else { return false }
        return response.map { $0.head(url: url) != nil } ?? (error != nil)
    }
}

extension WebServiceError.Code {
    /// A cassette that cannot be read or written, or whose recording was not replayed completely.
    public static let cassette = WebServiceError.Code("cassette")
    /// A request that matches no exchange of a cassette.
    public static let cassetteMismatch = WebServiceError.Code("cassetteMismatch")
    /// A recording that is not written, because it contains a value that looks like a secret.
    public static let cassetteSecret = WebServiceError.Code("cassetteSecret")
}
