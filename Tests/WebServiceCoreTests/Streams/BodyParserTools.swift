import Foundation
import TestSupport

@testable import WebServiceCore

/// The result of parsing a body.
struct ParserResult<Element: Sendable> {
    var elements: [Element] = []
    /// The error that ended the body; `nil` if there was none.
    var error: WebServiceError?
}

extension ParserResult: Equatable where Element: Equatable {
    static func == (first: Self, second: Self) -> Bool {
        first.elements == second.elements && first.error?.code == second.error?.code
            && first.error?.message == second.error?.message
    }
}

extension BodyParser {
    /// Parses the chunks of a body up to the first error.
    mutating func parse(_ chunks: [Data], finishing: Bool = true) -> ParserResult<Element> {
        var result = ParserResult<Element>()
        do throws(WebServiceError) {
            for chunk in chunks {
                append(chunk)
                while let element = try next() { result.elements.append(element) }
            }
            guard finishing else { return result }
            finish()
            while let element = try next() { result.elements.append(element) }
        } catch {
            result.error = error
        }
        return result
    }

    /// Returns the result of parsing the chunks with a copy of the parser.
    func result(of chunks: [Data], finishing: Bool = true) -> ParserResult<Element> {
        var parser = self
        return parser.parse(chunks, finishing: finishing)
    }
}

/// Ways to divide a body into chunks.
enum Chunks {
    /// Returns chunks of a size; the last one may be smaller.
    static func of(_ size: Int, _ body: Data) -> [Data] {
        stride(from: 0, to: body.count, by: size).map { Data(body.dropFirst($0).prefix(size)) }
    }

    /// Returns one chunk, chunks of 1 and 2 bytes, and every division into two chunks.
    static func standard(_ body: Data) -> [[Data]] {
        [[body], of(1, body), of(2, body)] + (0...body.count).map { [Data(body.prefix($0)), Data(body.dropFirst($0))] }
    }

    /// Returns every division of a body, 2ⁿ⁻¹ for n bytes.
    static func every(_ body: Data) -> [[Data]] {
        (0..<(1 << max(0, body.count - 1))).map { cuts in
            var chunks: [Data] = []
            for (index, byte) in body.enumerated() {
                if index == 0 || cuts >> (index - 1) & 1 == 1 { chunks.append(Data()) }
                chunks[chunks.count - 1].append(byte)
            }
            return chunks
        }
    }

    /// Returns chunks of 0 to 7 bytes.
    static func random(_ body: Data, _ generator: inout SeededGenerator) -> [Data] {
        var rest = body
        var chunks: [Data] = []
        while !rest.isEmpty {
            let size = Int.random(in: 0...7, using: &generator)
            chunks.append(Data(rest.prefix(size)))
            rest = Data(rest.dropFirst(size))
        }
        return chunks
    }
}

/// Random changes of bodies.
enum Mutation {
    /// Returns a body after 1 to 4 insertions, deletions and replacements.
    static func of(_ body: Data, tokens: [Data], _ generator: inout SeededGenerator) -> Data {
        var bytes = Array(body)
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let start = Int.random(in: 0...bytes.count, using: &generator)
            let end = min(bytes.count, start + Int.random(in: 0...6, using: &generator))
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: bytes.removeSubrange(start..<end)
            case 1: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: start)
            case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
            default: bytes.replaceSubrange(start..<start, with: tokens.randomElement(using: &generator) ?? Data())
            }
        }
        return Data(bytes)
    }
}
