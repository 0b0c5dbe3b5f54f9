import Foundation

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
