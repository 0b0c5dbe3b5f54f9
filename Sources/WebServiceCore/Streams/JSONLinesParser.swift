import Foundation

/// A parser that decodes each line of a body as one JSON value.
///
/// Lines that are empty or contain only whitespace are ignored. Each line may begin with a record
/// separator (RFC 7464, section 2.2). The last line does not require a line break: it is decoded
/// after ``finish()``.
///
/// ``next()`` throws ``WebServiceError/Code/decoding`` with the line as its body and the line
/// number, counted from 1, in its message. The lines after that one remain available.
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
