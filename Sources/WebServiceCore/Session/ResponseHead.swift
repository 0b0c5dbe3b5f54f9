import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The head of an HTTP response as the bytes that came: the status line and the header fields, parsed when somebody reads them.
///
/// Building Foundation's strings and dictionaries for every answer costs a transport more than moving the bytes. A ``ResponseSession`` hands over this
/// instead, and ``urlResponse`` is built the first time it is asked for. Order and repeated fields are kept. All members may be used from any thread.
public final class ResponseHead: Sendable {
    /// The URL that answers.
    public let url: String

    /// The status code (RFC 9110, section 15).
    public let status: Int

    private let bytes: [UInt8]
    private let built = Mutex<HTTPURLResponse?>(nil)

    /// Makes a head out of its bytes (RFC 9112, sections 4 and 5).
    ///
    /// - Parameters:
    ///   - bytes: The status line and the header fields, lines ended by CRLF or LF. What follows an empty line is not looked at.
    ///   - url: The URL that answers.
    /// - Returns: `nil` when the first line is no status line.
    public init?(bytes: [UInt8], url: String) {
        guard let status = Self.status(of: bytes) else { return nil }
        self.bytes = bytes
        self.status = status
        self.url = url
    }

    /// All header fields in the order in which they came.
    public var headers: Headers {
        var fields: [(String, String)] = []
        forEachField { name, value in
            fields.append((Self.text(name), Self.text(value)))
            return true
        }
        return Headers(fields)
    }

    /// Every value of a header field, in order, not joined.
    public func values(for name: Headers.Name) -> [String] {
        var values: [String] = []
        let wanted = name.rawValue.utf8
        forEachField { name, value in
            if name.count == wanted.count, zip(name, wanted).allSatisfy({ $0 == $1 || ASCII.lowercased($0) == ASCII.lowercased($1) }) {
                values.append(Self.text(value))
            }
            return true
        }
        return values
    }

    /// The value of a header field, repeated ones joined with `", "` (RFC 9110, section 5.3); `nil` when there is none.
    public subscript(name: Headers.Name) -> String? {
        let values = values(for: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The head as Foundation knows it, with repeated fields joined; built once. `nil` where Foundation cannot build it.
    public var urlResponse: HTTPURLResponse? {
        if let response = built.withLock({ $0 }) { return response }
        guard let response = makeURLResponse() else { return nil }
        return built.withLock { built in
            if let built { return built }
            built = response
            return response
        }
    }

    private func makeURLResponse() -> HTTPURLResponse? {
        guard let url = URL(string: url) else { return nil }
        let version = Self.text(bytes.prefix { $0 != UInt8(ascii: " ") })
        return HTTPURLResponse(url: url, statusCode: status, httpVersion: version, headerFields: headers.combined())
    }

    // MARK: Bytes

    /// `HTTP/`, a version, a blank, three digits.
    private static func status(of bytes: [UInt8]) -> Int? {
        guard bytes.starts(with: "HTTP/".utf8), let blank = bytes.prefix(16).firstIndex(of: UInt8(ascii: " ")) else { return nil }
        let digits = bytes[(blank + 1)...].prefix { $0 != UInt8(ascii: " ") && $0 != 0x0D && $0 != 0x0A }
        guard digits.count == 3, digits.allSatisfy(ASCII.isDigit) else { return nil }
        let status = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return status >= 100 ? status : nil
    }

    /// Calls `body` with the name and the value of each field, without the blanks around them, until it returns `false`.
    private func forEachField(_ body: (ArraySlice<UInt8>, ArraySlice<UInt8>) -> Bool) {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropFirst()[...]
        while let line = lines.popFirst() {
            guard let first = line.first, first != 0x0D else { return }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            var value = Self.trimmed(line[(colon + 1)...])
            // A line that begins with a blank goes on with the value before it (RFC 9112, section 5.2).
            while let next = lines.first, next.first == 0x20 || next.first == 0x09 {
                let text = Self.trimmed(next)
                if !value.isEmpty, !text.isEmpty { value.append(0x20) }
                value.append(contentsOf: text)
                lines.removeFirst()
            }
            guard body(Self.trimmed(line[..<colon]), value) else { return }
        }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        let bytes = bytes.drop(while: isBlank)
        return bytes[..<(bytes.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? bytes.startIndex)]
    }

    /// UTF-8 where it is, else ISO 8859-1, which every sequence of bytes is (RFC 9110, section 5.5).
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension ResponseHead: CustomStringConvertible, CustomReflectable {
    /// The status alone: safe to log.
    public var description: String { "\(status)" }

    /// What `dump` shows: the same as ``description``, because header fields may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: ["status": status], displayStyle: .class) }
}

/// The head of an answer, by Foundation or in bytes, whichever the session gave.
enum Head: Sendable {
    case none
    case foundation(URLResponse)
    case bytes(ResponseHead)

    init(_ response: URLResponse?) {
        self = response.map(Head.foundation) ?? .none
    }

    var urlResponse: URLResponse? {
        switch self {
        case .none: nil
        case .foundation(let response): response
        case .bytes(let head): head.urlResponse
        }
    }

    /// 0 when the answer is not HTTP's.
    var status: Int {
        switch self {
        case .none: 0
        case .foundation(let response): (response as? HTTPURLResponse)?.statusCode ?? 0
        case .bytes(let head): head.status
        }
    }

    /// Whether fields of the same name arrive as one value, joined with `", "`.
    var joinsFields: Bool {
        if case .foundation = self { true } else { false }
    }

    var isHTTP: Bool {
        switch self {
        case .none: false
        case .foundation(let response): response is HTTPURLResponse
        case .bytes: true
        }
    }

    var headers: Headers {
        switch self {
        case .none: return [:]
        case .foundation(let response):
            let fields = (response as? HTTPURLResponse)?.allHeaderFields ?? [:]
            return Headers(fields.map { ("\($0.key)", "\($0.value)") }.sorted { $0.0 < $1.0 })
        case .bytes(let head): return head.headers
        }
    }

    /// Every value of a header field; one where Foundation has joined them.
    func values(for name: Headers.Name) -> [String] {
        switch self {
        case .none: []
        case .foundation(let response): (response as? HTTPURLResponse)?.value(forHTTPHeaderField: name.rawValue).map { [$0] } ?? []
        case .bytes(let head): head.values(for: name)
        }
    }
}
