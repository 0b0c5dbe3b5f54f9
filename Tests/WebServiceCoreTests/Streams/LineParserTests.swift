import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct LineParserTests {
    @Test("Every division of a body with CR, LF and CRLF results in the same lines")
    func divisions() {
        let body = Data("a\r\nb\rc\n\n\r\nd\r".utf8)
        #expect(body.count == 12)
        let divisions = Chunks.every(body)
        #expect(divisions.count == 2_048)
        for chunks in divisions {
            let result = LineParser().result(of: chunks)
            #expect(result.elements == ["a", "b\rc", "", "", "d\r"], "\(chunks.map(\.count))")
            #expect(result.error == nil, "\(chunks.map(\.count))")
        }
    }

    @Test(
        "Lines of a body",
        arguments: [
            ("no line", "", []),
            ("empty lines", "\n\r\n\na\n\n", ["", "", "", "a", ""]),
            ("no final LF", "a\nb", ["a", "b"]),
            ("final LF", "a\nb\n", ["a", "b"]),
            ("U+2028", "a\u{2028}b\nc", ["a\u{2028}b", "c"]),
            ("U+0085, U+2029, form feed", "a\u{85}b\u{2029}c\u{C}d\n", ["a\u{85}b\u{2029}c\u{C}d"]),
            ("lone CR", "a\rb\n\rc\n\r", ["a\rb", "\rc", "\r"]),
            ("CR before CRLF", "a\r\r\nb", ["a\r", "b"]),
            ("byte order mark", "\u{FEFF}a\n\u{FEFF}b\n", ["a", "\u{FEFF}b"]),
            ("two byte order marks", "\u{FEFF}\u{FEFF}a", ["\u{FEFF}a"]),
            ("only a byte order mark", "\u{FEFF}", []),
            ("NUL", "a\0b\n", ["a\0b"]),
        ] as [(String, String, [String])])
    func lines(name: String, body: String, lines: [String]) {
        for chunks in Chunks.standard(Data(body.utf8)) {
            let result = LineParser().result(of: chunks)
            // Scalars, because "\r\n" and canonically equivalent strings are equal characters.
            #expect(result.elements.map { Array($0.utf8) } == lines.map { Array($0.utf8) }, "\(chunks.map(\.count))")
            #expect(result.error == nil)
        }
    }

    @Test("A four-byte character is preserved wherever it is divided")
    func characters() {
        let body = Data("a😀b\n😀\n".utf8)
        for chunks in Chunks.every(body) {
            #expect(LineParser().result(of: chunks).elements == ["a😀b", "😀"])
        }
    }

    @Test("Invalid UTF-8 is replaced in text and preserved in bytes")
    func invalidText() {
        let body = Data([0x61, 0xFF, 0x0A, 0xE2, 0x82, 0x0A, 0xEF, 0xBB])
        for chunks in Chunks.every(body) {
            #expect(LineParser().result(of: chunks).elements == ["a\u{FFFD}", "\u{FFFD}", "\u{FFFD}"])
            let lines = LineSplitter(maximumLength: 10).result(of: chunks).elements
            #expect(lines == [Data([0x61, 0xFF]), Data([0xE2, 0x82]), Data([0xEF, 0xBB])])
        }
        #expect(LineParser().result(of: [Data([0xEF])]).elements == ["\u{FFFD}"])
    }

    @Test("A line that exceeds the limit is an error at the limit, after the lines before it")
    func limit() {
        var parser = LineParser()
        let chunk = Data(repeating: 0x61, count: 64 << 10)
        let first = parser.parse([Data("a\n".utf8)], finishing: false)
        #expect(first.elements == ["a"])
        var appended = 0
        var error: WebServiceError?
        while error == nil, appended < 10 << 20 {
            appended += chunk.count
            error = parser.parse([chunk], finishing: false).error
        }
        #expect(error?.code == .elementTooLarge)
        #expect(
            error?.message
                == "a line of the response body is larger than 1048576 bytes; increase maximumLength or read the bytes")
        #expect(appended == 1 << 20 + chunk.count)
        #expect(parser.parse([]).error?.code == .elementTooLarge)
    }

    @Test("The limit excludes the line break, however the body is divided")
    func exactLimit() {
        for end in ["", "\n", "\r\n"] {
            for chunks in Chunks.standard(Data("\u{FEFF}abcd\nabcd\(end)".utf8)) {
                let result = LineParser(maximumLength: 4).result(of: chunks)
                #expect(result.elements == ["abcd", "abcd"])
                #expect(result.error == nil)
            }
        }
        for body in ["ab\nabcde", "ab\nabcde\nf\n", "ab\nabcd\r", "ab\nabcd\rx"] {
            for chunks in Chunks.standard(Data(body.utf8)) {
                let result = LineParser(maximumLength: 4).result(of: chunks)
                #expect(result.elements == ["ab"], "\(body.debugDescription)")
                #expect(result.error?.code == .elementTooLarge, "\(body.debugDescription)")
            }
        }
    }

    @Test("Parsing one line in small chunks takes time linear in its length")
    func longLine() {
        func time(_ size: Int) -> Double {
            let chunks = Chunks.of(1_460, Data(repeating: 0x61, count: size))
            let times = (0..<5).map { _ in
                processorTime {
                    let result = LineParser(maximumLength: 16 << 20).result(of: chunks)
                    #expect(result.elements.map(\.utf8.count) == [size])
                }
            }
            return times.min() ?? 0
        }
        let small = time(512 << 10)
        let large = time(8 << 20)
        // A quadratic parser needs 256 times as long and several seconds.
        #expect(large <= small * 64, "\(small) s, \(large) s")
        #expect(large <= 0.5, "\(small) s, \(large) s")
    }

    @Test("Elements that are not read immediately remain available, and appending remains linear")
    func undrained() throws {
        var parser = LineParser()
        let chunk = Data(String(repeating: "line\n", count: 100).utf8)
        var taken = 0
        for _ in 0..<200 {
            parser.append(chunk)
            #expect(try parser.next() == "line")
            taken += 1
        }
        parser.finish()
        while try parser.next() != nil { taken += 1 }
        #expect(taken == 20_000)
    }
}
