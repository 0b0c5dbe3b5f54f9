import Foundation

/// A parser that splits a multipart body into its parts (RFC 2046, section 5.1).
///
/// A body without the close delimiter is an error, except for `multipart/x-mixed-replace`: there,
/// the end of the body ends the last part, whose data excludes a final line break. The preamble,
/// the epilogue and `Content-Length` are ignored. A nested multipart body is data.
///
/// The parser tolerates LF instead of CRLF, a `boundary` parameter that includes the two dashes of
/// the delimiter, and a body without the first delimiter if its first line is a `Content-` field.
struct BodyPartParser: BodyParser {
    private enum Position {
        case start, preamble, delimiterLine, headers, data, epilogue
    }

    private static let maximumHeaderSize = 16 << 10
    private static let headerStart = "content-"

    private let endsWithoutDelimiter: Bool
    private let maximumPartSize: Int
    private var search: DelimiterSearch
    private var bytes = UnparsedBytes()
    private var position = Position.start
    private var isFinished = false
    private var headers = PartHeaders()

    /// - Parameters:
    ///   - contentType: The value of the `Content-Type` field of the response.
    ///   - maximumPartSize: The maximum size of a part's data, in bytes.
    /// - Throws: ``WebServiceError/Code/unexpectedContentType`` if the type is not a multipart type
    ///   or has no boundary of 1 to 70 bytes.
    init(contentType: String, maximumPartSize: Int = 64 << 20) throws(WebServiceError) {
        let type = MediaType.essence(contentType)
        guard type.hasPrefix("multipart/") else {
            throw WebServiceError(
                .unexpectedContentType, "the response is not multipart; read it with data() or stream()")
        }
        let boundary = MediaType.parameter("boundary", of: contentType, quotes: ["\""]) ?? ""
        guard (1...70).contains(boundary.utf8.count) else {
            throw WebServiceError(
                .unexpectedContentType,
                "the Content-Type of the response has no boundary of 1 to 70 bytes; read the response with data() "
                    + "or stream()")
        }
        endsWithoutDelimiter = type == "multipart/x-mixed-replace"
        self.maximumPartSize = maximumPartSize
        search = DelimiterSearch(boundary: boundary)
        // A delimiter follows a line break, even at the start of the body.
        bytes.append([UInt8.lineFeed])
    }

    mutating func append(_ bytes: Data) {
        self.bytes.append(bytes)
    }

    mutating func finish() {
        isFinished = true
    }

    mutating func next() throws(WebServiceError) -> ResponseBody.Part? {
        while true {
            switch position {
            case .start:
                guard let isHeader = beginsWithHeader() else { return nil }
                if isHeader { bytes.consume(1) }
                position = isHeader ? .headers : .preamble
            case .preamble:
                guard let delimiter = nextDelimiter() else {
                    consume(search.searched)
                    return try checkEnd()
                }
                consume(delimiter)
            case .delimiterLine:
                guard let lineFeed = bytes.withBytes({ $0.firstIndex(of: .lineFeed, from: 0) }) else {
                    consume(bytes.count)
                    return try checkEnd()
                }
                consume(lineFeed + 1)
                position = .headers
            case .headers:
                guard try readHeaders() else { return try checkEnd() }
                position = .data
            case .data:
                let delimiter = nextDelimiter()
                let isLast = delimiter == nil && isFinished && endsWithoutDelimiter
                let size = isLast ? lastDataSize : dataSize(upTo: delimiter?.index ?? search.searched)
                guard size <= maximumPartSize else {
                    throw .tooLarge("a part", maximum: maximumPartSize, option: "maximumSize")
                }
                guard delimiter != nil || isLast else { return try checkEnd() }
                let data = bytes.withBytes { Data($0.bytes(1..<size + 1)) }
                if let delimiter { consume(delimiter) } else { position = .epilogue }
                return ResponseBody.Part(headers: headers.removeAll(), data: data)
            case .epilogue:
                consume(bytes.count)
                return nil
            }
        }
    }

    /// Returns whether the body begins with a header field; `nil` if more bytes are needed.
    private func beginsWithHeader() -> Bool? {
        bytes.withBytes { bytes in
            let start = bytes.dropFirst().prefix(Self.headerStart.utf8.count)
            guard zip(start, Self.headerStart.utf8).allSatisfy({ ASCII.lowercased($0) == $1 }) else { return false }
            return start.count == Self.headerStart.utf8.count ? true : isFinished ? false : nil
        }
    }

    private mutating func nextDelimiter() -> DelimiterSearch.Match? {
        bytes.withBytes { search.next(in: $0, isFinished: isFinished) }
    }

    private mutating func consume(_ delimiter: DelimiterSearch.Match) {
        consume(delimiter.end)
        position = delimiter.isLast ? .epilogue : .delimiterLine
    }

    private mutating func consume(_ count: Int) {
        bytes.consume(count)
        search.searched = 0
    }

    /// Reads complete lines of the header block.
    ///
    /// - Returns: Whether the block is complete. The LF of its last line is not consumed, because
    ///   it may begin a delimiter.
    private mutating func readHeaders() throws(WebServiceError) -> Bool {
        while true {
            let lineFeed = bytes.withBytes { $0.firstIndex(of: .lineFeed, from: search.searched) }
            let length = lineFeed ?? bytes.count
            guard headers.size + length < Self.maximumHeaderSize else {
                throw .tooLarge("the header of a part", maximum: Self.maximumHeaderSize, option: nil)
            }
            guard let lineFeed else {
                search.searched = length
                return false
            }
            let line = bytes.withBytes { bytes in
                let line = bytes.bytes(0..<lineFeed)
                return Array(line.last == .carriageReturn ? line.bytes(0..<lineFeed - 1) : line)
            }
            guard !line.isEmpty else {
                consume(lineFeed)
                return true
            }
            guard headers.add(line: line) else {
                throw WebServiceError(.decoding, "a part of the response body has a malformed header field")
            }
            headers.size += lineFeed + 1
            consume(lineFeed + 1)
        }
    }

    /// Returns the number of bytes of data before an index, excluding the CR of a line break there.
    ///
    /// The first byte is the LF that ends the header block.
    private func dataSize(upTo end: Int) -> Int {
        bytes.withBytes { bytes in
            let data = bytes.prefix(end).dropFirst()
            return data.last == .carriageReturn ? data.count - 1 : data.count
        }
    }

    /// The number of bytes of data before the end of the body, excluding a line break there.
    private var lastDataSize: Int {
        let end = bytes.count - 1
        let endsLine = end > 0 && bytes.withBytes { $0.last == .lineFeed }
        return endsLine ? dataSize(upTo: end) : end
    }

    /// Returns `nil` if the body has not ended or may end here, and throws an error otherwise.
    private func checkEnd() throws(WebServiceError) -> ResponseBody.Part? {
        guard isFinished, !endsWithoutDelimiter else { return nil }
        throw WebServiceError(.decoding, "the multipart body ends without its close delimiter")
    }
}

/// The search for the delimiters of a multipart body (RFC 2046, section 5.1.1).
///
/// A delimiter is a line feed, two dashes and the boundary, followed by a space, tab or line break,
/// or by two dashes in the close delimiter. Any other line that contains the boundary is data, such
/// as the delimiter of a nested body whose boundary is longer.
struct DelimiterSearch: Sendable {
    /// A delimiter in the body.
    struct Match {
        /// The index of the delimiter's line feed.
        var index: Int
        /// The index after the boundary, or after the two dashes of the close delimiter.
        var end: Int
        /// Whether this is the close delimiter.
        var isLast: Bool
    }

    /// The number of leading bytes in which no delimiter begins.
    var searched = 0
    /// The possible delimiters, reduced to the matching one after the first match.
    private var delimiters: [[UInt8]]

    init(boundary: String) {
        delimiters = [Array("\n--\(boundary)".utf8)]
        if boundary.hasPrefix("--") { delimiters.append(Array("\n\(boundary)".utf8)) }
    }

    /// Returns the first delimiter after the bytes that were already searched.
    ///
    /// - Parameter isFinished: Whether the body ends with these bytes.
    mutating func next(in bytes: UnsafeRawBufferPointer, isFinished: Bool) -> Match? {
        while let index = bytes.firstIndex(of: .lineFeed, from: searched) {
            searched = index
            for delimiter in delimiters {
                guard let isMatch = bytes.contains(delimiter, at: index) ?? (isFinished ? false : nil),
                    let isLast = isMatch ? Self.isLast(bytes, index + delimiter.count, isFinished) : .some(nil)
                else { return nil }
                guard let isLast else { continue }
                delimiters = [delimiter]
                return Match(index: index, end: index + delimiter.count + (isLast ? 2 : 0), isLast: isLast)
            }
            searched = index + 1
        }
        searched = bytes.count
        return nil
    }

    /// Returns whether the delimiter before an index is the close delimiter.
    ///
    /// - Returns: `nil` if more bytes are needed, and `.some(nil)` if the bytes are not a
    ///   delimiter.
    private static func isLast(_ bytes: UnsafeRawBufferPointer, _ index: Int, _ isFinished: Bool) -> Bool?? {
        let rest = bytes.dropFirst(index).prefix(2)
        guard let first = rest.first else { return isFinished ? .some(false) : nil }
        switch first {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), .carriageReturn, .lineFeed: return .some(false)
        case UInt8(ascii: "-") where rest.last == first:
            return rest.count == 2 ? .some(true) : isFinished ? .some(nil) : nil
        default: return .some(nil)
        }
    }
}

/// The header fields of a part of a multipart body while they are being read.
struct PartHeaders: Sendable {
    /// The number of bytes read.
    var size = 0
    private var fields: [(name: String, value: String)] = []

    /// Adds a line without its line break.
    ///
    /// - Returns: `false` if the line is neither a field nor the continuation of one.
    mutating func add(line: [UInt8]) -> Bool {
        if let first = line.first, ASCII.isSpaceOrTab(first) {
            guard !fields.isEmpty else { return false }
            fields[fields.count - 1].value += " " + Self.text(line[...])
            return true
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let name = Self.text(line[..<colon])
        guard ASCII.isToken(name.utf8) else { return false }
        fields.append((name, Self.text(line[(colon + 1)...])))
        return true
    }

    /// Returns the fields and removes them, in preparation for the next part.
    mutating func removeAll() -> Headers {
        defer { self = PartHeaders() }
        return Headers(fields.map { ($0.name, $0.value) })
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: ASCII.trimmed(bytes), as: UTF8.self)
    }
}
