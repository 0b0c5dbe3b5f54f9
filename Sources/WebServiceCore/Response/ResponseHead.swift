import Foundation
import Synchronization

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The head of a response: its status and header fields.
///
/// A session provides the received bytes or a Foundation object. Bytes are parsed on access,
/// because creating Foundation's strings and dictionaries for every response would take longer than
/// transferring the bytes. The bytes preserve repeated fields and the order of fields. All members
/// may be used from any thread.
public final class ResponseHead: Sendable {
    private enum Content {
        /// The status line and the header fields, and the URL of the response.
        case bytes([UInt8], url: String)
        case foundation(URLResponse)
    }

    /// The status code (RFC 9110, section 15); 0 if the response is not an HTTP response.
    public let status: Int

    private let content: Content
    private let built = AtomicLazyReference<HTTPURLResponse>()

    /// Creates a head from its bytes (RFC 9112, sections 4 and 5).
    ///
    /// - Parameters:
    ///   - bytes: The status line and the header fields, with lines terminated by CRLF or LF. Bytes
    ///     after an empty line are ignored.
    ///   - url: The URL of the response.
    /// - Returns: `nil` if the first line is not a status line.
    public init?(bytes: [UInt8], url: String) {
        guard let status = Self.status(of: bytes) else { return nil }
        content = .bytes(bytes, url: url)
        self.status = status
    }

    /// Creates a head from a Foundation object.
    public init(_ response: URLResponse) {
        content = .foundation(response)
        status = (response as? HTTPURLResponse)?.statusCode ?? 0
    }

    /// The URL of the response; empty if a Foundation object has none.
    public var url: String {
        switch content {
        case .bytes(_, let url): url
        case .foundation(let response): response.url?.absoluteString ?? ""
        }
    }

    /// Whether this is the head of an HTTP response.
    package var isHTTP: Bool {
        switch content {
        case .bytes: true
        case .foundation(let response): response is HTTPURLResponse
        }
    }

    /// Whether fields with the same name are provided as one value, joined by `", "`.
    var joinsFields: Bool { if case .foundation = content { true } else { false } }

    /// All header fields in the order received.
    ///
    /// Foundation joins repeated fields and does not preserve their order, so its fields are sorted
    /// by name.
    public var headers: Headers {
        switch content {
        case .bytes(let bytes, _):
            return Self.headers(of: bytes)
        case .foundation(let response):
            let fields = (response as? HTTPURLResponse)?.allHeaderFields ?? [:]
            return Headers(fields.map { ("\($0.key)", "\($0.value)") }.sorted { $0.0 < $1.0 })
        }
    }

    /// Returns the fields of a header or trailer section. The first line is ignored.
    package static func headers(of bytes: [UInt8]) -> Headers {
        var fields: [(String, String)] = []
        forEachField(of: bytes) { name, value in
            fields.append((text(name), text(value)))
            return true
        }
        return Headers(fields)
    }

    /// Returns every value of a header field, in order; one value if Foundation has joined them.
    public func values(for name: Headers.Name) -> [String] {
        switch content {
        case .foundation(let response):
            return (response as? HTTPURLResponse)?.value(forHTTPHeaderField: name.rawValue).map { [$0] } ?? []
        case .bytes(let bytes, _):
            var values: [String] = []
            let wanted = name.rawValue.utf8
            Self.forEachField(of: bytes) { name, value in
                if ASCII.areEqualIgnoringCase(name, wanted) { values.append(Self.text(value)) }
                return true
            }
            return values
        }
    }

    /// The value of a header field; `nil` if there is none.
    ///
    /// Repeated fields are joined by `", "` (RFC 9110, section 5.3).
    public subscript(name: Headers.Name) -> String? {
        Headers.joined(values(for: name))
    }

    /// The values of `Location`, including those that Foundation has joined.
    ///
    /// With Foundation, a single value that contains a comma and a space, which is rare, cannot be
    /// distinguished from two joined values.
    package var locations: [String] {
        let values = values(for: .location)
        guard joinsFields, let joined = values.first?.utf8 else { return values }
        return Array(joined).split(separator: Array(", ".utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The head as a Foundation object, in which repeated fields are joined. The object is created
    /// once.
    ///
    /// The value is `nil` if Foundation cannot create it.
    public var urlResponse: URLResponse? {
        switch content {
        case .foundation(let response):
            return response
        case .bytes(let bytes, let url):
            return built.load() ?? makeURLResponse(bytes, url).map { built.storeIfNil($0) }
        }
    }

    private func makeURLResponse(_ bytes: [UInt8], _ url: String) -> HTTPURLResponse? {
        guard let url = URL(string: url) else { return nil }
        let version = Self.text(bytes.prefix { $0 != UInt8(ascii: " ") })
        return HTTPURLResponse(url: url, statusCode: status, httpVersion: version, headerFields: headers.combined())
    }

    // MARK: Bytes

    /// Returns the status of a status line: `HTTP/`, a version, a space and three digits.
    private static func status(of bytes: [UInt8]) -> Int? {
        guard bytes.starts(with: "HTTP/".utf8), let space = bytes.prefix(16).firstIndex(of: UInt8(ascii: " ")) else {
            return nil
        }
        let digits = bytes[(space + 1)...].prefix { $0 != UInt8(ascii: " ") && $0 != 0x0D && $0 != 0x0A }
        guard digits.count == 3, let status = ASCII.number(digits), status >= 100 else { return nil }
        return status
    }

    /// Calls `body` with the name and value of each field, without surrounding whitespace, until
    /// `body` returns `false`.
    private static func forEachField(of bytes: [UInt8], _ body: (ArraySlice<UInt8>, ArraySlice<UInt8>) -> Bool) {
        var rest = bytes[...]
        /// Removes and returns the next line without its line feed.
        func popLine() -> ArraySlice<UInt8> {
            let line = rest.prefix { $0 != 0x0A }
            rest = rest[line.endIndex...].dropFirst()
            return line
        }
        _ = popLine()
        while let first = rest.first, first != 0x0D, first != 0x0A {
            let line = popLine()
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            var value = trimmed(line[(colon + 1)...])
            // A line that begins with whitespace continues the previous value (RFC 9112, section
            // 5.2).
            while let next = rest.first, ASCII.isSpaceOrTab(next) {
                let text = trimmed(popLine())
                if !value.isEmpty, !text.isEmpty { value.append(0x20) }
                value.append(contentsOf: text)
            }
            guard body(trimmed(line[..<colon]), value) else { return }
        }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        let bytes = bytes.drop(while: isSpace)
        return bytes[..<(bytes.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? bytes.startIndex)]
    }

    /// Returns the bytes decoded as UTF-8 or, if they are invalid, as ISO 8859-1, in which every
    /// byte is valid (RFC 9110, section 5.5).
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension ResponseHead: RedactedReflectable {
    /// A description that is safe to log: the status.
    public var description: String { "\(status)" }
}

extension Response {
    /// The status and its reason phrase, such as `404 Not Found`. If no phrase is registered, the
    /// string consists of `status` and the number, as in `status 599`.
    package var statusText: String {
        Self.reasonPhrases[status].map { "\(status) \($0)" } ?? "status \(status)"
    }

    /// The reason phrases of IANA's registry of HTTP status codes.
    package static let reasonPhrases = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created",
        202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content",
        206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used", 300: "Multiple Choices",
        301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy",
        307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
        402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
        407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
        411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long",
        415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
        421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency",
        425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests",
        431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons", 500: "Internal Server Error",
        501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
        505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage",
        508: "Loop Detected", 511: "Network Authentication Required",
    ]
}
