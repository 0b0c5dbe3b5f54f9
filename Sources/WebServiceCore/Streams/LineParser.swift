import Foundation

/// A parser that splits a body into lines of UTF-8 text, according to the rules of
/// ``LineSplitter``.
///
/// Invalid UTF-8 is replaced with U+FFFD. U+0085, U+2028 and U+2029 do not end a line.
struct LineParser: BodyParser {
    private var lines: LineSplitter

    /// - Parameter maximumLength: The maximum size of a line without its line break, in bytes.
    init(maximumLength: Int = 1 << 20) {
        lines = LineSplitter(maximumLength: maximumLength)
    }

    mutating func append(_ bytes: Data) {
        lines.append(bytes)
    }

    mutating func finish() {
        lines.finish()
    }

    mutating func next() throws(WebServiceError) -> String? {
        try lines.next { String(decoding: $0, as: UTF8.self) }
    }
}

/// A parser that splits a body into the bytes of its lines.
///
/// Lines end with LF or CRLF; a lone CR is content. Empty lines are elements. The last line does
/// not require a line break. A byte order mark at the start of the body is removed.
struct LineSplitter: BodyParser {
    private let maximumLength: Int
    private var bytes = UnparsedBytes()
    /// The number of leading bytes without an LF.
    private var searched = 0
    private var isAtStart = true
    private var isFinished = false

    /// - Parameter maximumLength: The maximum size of a line without its line break, in bytes.
    init(maximumLength: Int) {
        self.maximumLength = maximumLength
    }

    mutating func append(_ bytes: Data) {
        self.bytes.append(bytes)
    }

    mutating func finish() {
        isFinished = true
    }

    mutating func next() throws(WebServiceError) -> Data? {
        try next { Data($0) }
    }

    /// Returns the next line, converted by a closure.
    mutating func next<Line>(_ transform: (UnsafeRawBufferPointer) -> Line) throws(WebServiceError) -> Line? {
        if isAtStart {
            guard bytes.removeByteOrderMark() || isFinished else { return nil }
            isAtStart = false
        }
        let lineFeed = bytes.withBytes { $0.firstIndex(of: .lineFeed, from: searched) }
        var length = lineFeed ?? bytes.count
        // A CR at the end of the bytes may be part of a CRLF.
        if lineFeed != nil || !isFinished, bytes.withBytes({ $0.prefix(length).last == .carriageReturn }) {
            length -= 1
        }
        guard length <= maximumLength else {
            throw .tooLarge("a line", maximum: maximumLength, option: "maximumLength")
        }
        guard lineFeed != nil || (isFinished && length > 0) else {
            searched = bytes.count
            return nil
        }
        let line = bytes.withBytes { transform($0.bytes(0..<length)) }
        bytes.consume(lineFeed.map { $0 + 1 } ?? bytes.count)
        searched = 0
        return line
    }
}

/// A parser that decodes each line of a body as one JSON value.
///
/// Lines that are empty or contain only whitespace are ignored. Each line may begin with a record
/// separator (RFC 7464, section 2.2). The last line does not require a line break: it is decoded
/// after ``finish()``.
///
/// ``next()`` throws ``WebServiceError/Code/decoding`` with the line as its body and the line
/// number, counted from 1, in its message. The following lines remain available.
struct JSONLinesParser<Value: Decodable & Sendable>: BodyParser {
    private static var recordSeparator: UInt8 { 0x1E }

    private let decoder: any BodyDecoder
    private var lines: LineSplitter
    private var number = 0

    /// - Parameter maximumLength: The maximum size of a line without its line break, in bytes.
    init(_ type: Value.Type = Value.self, decoder: any BodyDecoder = JSONDecoder(), maximumLength: Int = 16 << 20) {
        self.decoder = decoder
        lines = LineSplitter(maximumLength: maximumLength)
    }

    mutating func append(_ bytes: Data) {
        lines.append(bytes)
    }

    mutating func finish() {
        lines.finish()
    }

    mutating func next() throws(WebServiceError) -> Value? {
        while var line = try lines.next() {
            number += 1
            if line.first == Self.recordSeparator { line = Data(line.drop { $0 == Self.recordSeparator }) }
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != .carriageReturn }) else { continue }
            return try JSON.decode(Value.self, from: line, of: "line \(number)", using: decoder)
        }
        return nil
    }
}
