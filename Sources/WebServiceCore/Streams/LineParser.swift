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
