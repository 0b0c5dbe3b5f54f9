import Foundation
public import WebServiceCore

/// The content of a cassette file: exchanges in the order in which their requests were sent.
struct Cassette: Codable, Sendable {
    struct Exchange: Codable, Sendable {
        var request: Message
        /// The response, or the part of it that was received; `nil` if no head was received.
        var response: Message?
        /// The code of the `URLError` of the exchange; `nil` if the response is complete.
        var error: Int?
        /// The messages that followed an accepted WebSocket handshake; otherwise `nil`.
        var messages: [Frame]?
    }

    /// A request or a response.
    struct Message: Codable, Sendable {
        /// The method of a request.
        var method: String?
        var url: String?
        /// The protocol of a handshake, which is ``webSocket``; `nil` for HTTP.
        var upgrade: String?
        /// The status code of a response.
        var status: Int?
        /// The header fields in order, each as `name: value`; `nil` if there are none.
        var headers: [String]?
        /// The text of a body; `nil` if the body is empty or binary.
        var text: String?
        /// The bytes of a binary body.
        var base64: Data?
        /// The length that the head specified, or -1 if the head specified none; `nil` if the
        /// specified length is that of the body.
        var length: Int64?
        /// The trailer fields, in the form of ``headers``.
        var trailers: [String]?

        static let webSocket = "websocket"

        var body: Data { text.map { Data($0.utf8) } ?? base64 ?? Data() }

        var fields: Headers { Self.fields(headers) }
        var trailerFields: Headers { Self.fields(trailers) }

        private static func fields(_ lines: [String]?) -> Headers {
            Headers(
                (lines ?? []).compactMap { line in
                    guard let colon = line.firstIndex(of: ":") else { return nil }
                    return (String(line[..<colon]), line[line.index(after: colon)...].drop { $0 == " " }.description)
                })
        }

        /// Sets the header fields and the body.
        mutating func set(_ fields: Headers, _ body: Data) {
            headers = Self.lines(fields)
            text = Self.text(of: body)
            base64 = text == nil && !body.isEmpty ? body : nil
        }

        static func lines(_ fields: Headers) -> [String]? {
            fields.isEmpty ? nil : fields.map { "\($0.name): \($0.value)" }
        }

        /// Returns a body as text, or `nil` if it is empty, is not UTF-8 or contains control
        /// characters other than tab, line feed and carriage return.
        static func text(of body: Data) -> String? {
            guard !body.isEmpty, !body.contains(where: { $0 < 0x20 && ![9, 10, 13].contains($0) || $0 == 0x7F }) else {
                return nil
            }
            return String(validating: body, as: UTF8.self)
        }

        /// Returns the head of the response, or `nil` if a damaged file does not contain a valid
        /// one.
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

    private struct Version: Decodable { let version: Int }

    private static let currentVersion = 3

    /// The version of the format. A cassette without handshakes has version 2, so earlier versions
    /// of the library can read it.
    var version = currentVersion
    var exchanges: [Exchange] = []

    /// Reads a cassette file.
    ///
    /// - Throws: `WebServiceError` with the code `cassette` if the file cannot be read, is damaged,
    ///   or has a newer version.
    init(contentsOf file: URL) throws {
        let name = file.lastPathComponent
        let data: Data
        do { data = try Data(contentsOf: file) } catch {
            throw WebServiceError(
                .cassette, "the cassette \(name) could not be read; check its path and permissions", underlying: error)
        }
        do {
            // The version is decoded first, because a newer version may have a different structure.
            let version = try JSON.decode(Version.self, from: data).version
            guard (1...Self.currentVersion).contains(version) else {
                throw WebServiceError(
                    .cassette,
                    "the cassette \(name) has version \(version), but this library reads versions 1 to "
                        + "\(Self.currentVersion); update the library or record the cassette again")
            }
            self = try JSON.decode(Cassette.self, from: data)
        } catch let error as WebServiceError where error.code == .cassette {
            throw error
        } catch {
            throw WebServiceError(
                .cassette, "the cassette \(name) is damaged: \(error); record the cassette again", underlying: error)
        }
        for (place, exchange) in exchanges.enumerated() where !exchange.isValid {
            throw WebServiceError(
                .cassette,
                "the cassette \(name) is damaged, because the request, the response or a message of exchange "
                    + "\(place + 1) is missing or invalid; record the cassette again")
        }
    }

    init(_ exchanges: [Exchange]) {
        self.exchanges = exchanges
        if exchanges.allSatisfy({ $0.request.upgrade == nil }) { version = 2 }
    }

    /// Writes the file atomically, and creates its folder if it does not exist.
    ///
    /// - Parameter known: The content of the file that may be replaced; `nil` if the file did not
    ///   exist.
    /// - Returns: The new content.
    /// - Throws: `WebServiceError` with the code `cassette`, for example if the file no longer has
    ///   the known content.
    func write(to file: URL, replacing known: Data?) throws -> Data {
        let name = file.lastPathComponent
        let folder = file.deletingLastPathComponent()
        do { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) } catch {
            throw WebServiceError(
                .cassette, "the folder \(folder.path) of the cassette \(name) could not be created; create it first",
                underlying: error)
        }
        let lock = open(folder.path, O_RDONLY | O_CLOEXEC)
        defer { if lock >= 0 { close(lock) } }
        if lock >= 0 { flock(lock, LOCK_EX) }
        guard Self.content(of: file) == known else {
            throw WebServiceError(
                .cassette,
                "the cassette \(name) was not written, because another session or process has changed it since this "
                    + "session was created; use one file per session")
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            let data = try encoder.encode(self) + Data("\n".utf8)
            try data.write(to: file, options: .atomic)
            return data
        } catch {
            throw WebServiceError(
                .cassette, "the cassette \(name) could not be written; see the underlying error", underlying: error)
        }
    }

    /// Returns the content of a file, or `nil` if the file does not exist or cannot be read.
    static func content(of file: URL) -> Data? { try? Data(contentsOf: file) }  // an unreadable file is replaced
}

extension Cassette.Exchange {
    var urlError: URLError? { error.map { URLError(URLError.Code(rawValue: $0) ?? .unknown) } }

    var isValid: Bool {
        guard request.method != nil, let url = request.url else { return false }
        if let messages {
            guard response?.status == 101, messages.allSatisfy({ $0.content != nil }) else { return false }
        }
        return response.map { $0.head(url: url) != nil && $0.length ?? 0 >= -1 } ?? (error != nil)
    }
}

extension WebServiceError.Code {
    /// A cassette or an archive cannot be read or written, or a cassette was not replayed
    /// completely.
    public static let cassette = WebServiceError.Code("cassette")
    /// A request or a sent message does not match those of a cassette.
    public static let cassetteMismatch = WebServiceError.Code("cassetteMismatch")
    /// A recording is not written because it contains a value that looks like a secret, or a body
    /// in which secrets cannot be recognized.
    public static let cassetteSecret = WebServiceError.Code("cassetteSecret")
}
