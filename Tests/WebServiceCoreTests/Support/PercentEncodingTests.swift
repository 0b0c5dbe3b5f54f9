import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct PercentEncodingTests {
    private struct ParserCase: Decodable {
        var input: String
        var output: [[String]]
    }

    private struct SerializerCases: Decodable {
        struct Case: Decodable {
            var pairs: [[String]]
            var out: String
        }
        var cases: [Case]
    }

    /// Encodes pairs as a query and as a form, and expects that both decode to the same bytes.
    @discardableResult
    private func roundTrip(
        _ pairs: [[String]], allowed: CharacterSet? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> (query: String, form: String) {
        let parameters = Parameters(pairs.map { ($0[0], .string($0[1])) })
        let query = try #require(try Request.make { $0.queryParameters = parameters }.encodedQuery())
        let form = try #require(
            try Request.make(.POST) {
                $0.formParameters = parameters
                $0.formParametersAllowedCharacters = allowed
            }.encodedBody())
        let bytes = pairs.map { $0.map { Array($0.utf8) } }
        #expect(Decoded.pairs(query) == bytes, sourceLocation: sourceLocation)
        #expect(Decoded.pairs(form) == bytes, sourceLocation: sourceLocation)
        #expect(
            !query.contains("+"), "a plus sign is ambiguous, because some servers decode it as a space",
            sourceLocation: sourceLocation)
        return (query, form)
    }

    @Test(
        "Reserved characters, control characters and non-ASCII letters are escaped",
        arguments: [
            ("+", "%2B", "%2B"), ("&", "%26", "%26"), ("=", "%3D", "%3D"), ("#", "%23", "%23"), ("%", "%25", "%25"),
            (";", "%3B", "%3B"),
            (" ", "%20", "+"), ("\u{0}", "%00", "%00"),
            ("\r\n", "%0D%0A", "%0D%0A"), ("?", "%3F", "%3F"), ("/", "%2F", "%2F"), ("[]", "%5B%5D", "%5B%5D"),
            ("*", "%2A", "*"), ("~", "~", "%7E"),
            ("-._", "-._", "-._"),
            ("aZ09", "aZ09", "aZ09"), ("%41", "%2541", "%2541"), ("é", "%C3%A9", "%C3%A9"),
            ("e\u{301}", "e%CC%81", "e%CC%81"),
            ("\u{1F4A9}", "%F0%9F%92%A9", "%F0%9F%92%A9"),
            ("'\"", "%27%22", "%27%22"), ("\u{7F}", "%7F", "%7F"), ("\u{FEFF}", "%EF%BB%BF", "%EF%BB%BF"), ("", "", ""),
        ])
    func escaping(text: String, query: String, form: String) throws {
        let encoded = try roundTrip([[text, text], ["x", text]])
        #expect(encoded.query == "\(query)=\(query)&x=\(query)")
        #expect(encoded.form == "\(form)=\(form)&x=\(form)")
    }

    @Test("Unicode scalars up to U+010F survive a round trip", arguments: 0..<0x110)
    func scalars(code: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(code))
        let text = String(scalar)
        let encoded = try roundTrip([[text, "a\(text)b"], [text + text, text]])
        let isAlphanumeric = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
        #expect((encoded.query.first == "%") == !(isAlphanumeric || "-._~".contains(text)))
        #expect((encoded.form.first == "%") == !(isAlphanumeric || "*-._ ".contains(text)))
    }

    @Test("Random strings survive a round trip", arguments: 0..<4)
    func randomTexts(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        func text() -> String {
            let scalars = (0..<Int.random(in: 0...12, using: &random)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0...(Bool.random(using: &random) ? 0x7F : 0x10FFFF), using: &random))
            }
            return String(String.UnicodeScalarView(scalars))
        }
        for _ in 0..<500 { try roundTrip((0...Int.random(in: 0...4, using: &random)).map { _ in [text(), text()] }) }
    }

    @Test("A long string is encoded completely", arguments: [1, 63, 64, 65, 21_845, 100_000])
    func long(count: Int) throws {
        for unit in ["a", "&", "é"] { try roundTrip([[unit, String(repeating: unit, count: count)], ["x", "y"]]) }
    }

    @Test(
        "The decoder of these tests agrees with the reference parser of the URL standard",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func decoder() throws {
        let cases = try JSONDecoder().decode(
            [ParserCase].self, from: Corpora.data("wpt-urlencoded/urlencoded-parser-data.json"))
        #expect(cases.count == 35)
        for row in cases {
            let decoded = Decoded.pairs(row.input).map {
                [$0[0], $0.count > 1 ? $0[1] : []].map { String(decoding: $0, as: UTF8.self) }
            }
            #expect(
                decoded.map { $0.map { Array($0.utf8) } } == row.output.map { $0.map { Array($0.utf8) } },
                "\(row.input)")
            if !row.output.isEmpty { try roundTrip(row.output) }
        }
    }

    @Test(
        "A form is identical to the output of the reference serializer of the URL standard",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func serializer() throws {
        let cases = try JSONDecoder().decode(
            SerializerCases.self, from: Corpora.data("wpt-urlencoded/urlencoded-serializer-data.json")
        ).cases
        #expect(cases.count == 19)
        for row in cases { #expect(try roundTrip(row.pairs).form == row.out) }
    }

    @Test(
        "Naughty strings survive a round trip as names and as values",
        .enabled(if: Corpora.areThere, Corpora.comment))
    func naughtyStrings() throws {
        let strings = try Corpora.naughtyStrings()
        #expect(strings.count == 515)
        for text in strings {
            try roundTrip([[text, text]])
            try roundTrip([[text, text]], allowed: CharacterSet().inverted)
        }
        try roundTrip(strings.map { [$0, String($0.reversed())] })
    }

    // MARK: Characters of a form

    @Test(
        "Allowed characters of a form are not escaped unless that would make the form ambiguous",
        arguments: [
            (CharacterSet(charactersIn: "/:~!"), "a b/:~!*é&=+%", "%61+%62/:~!%2A%C3%A9%26%3D%2B%25"),
            (.urlQueryAllowed, "a b?/é&=+%;", "a+b?/%C3%A9%26%3D%2B%25;"),
            (.alphanumerics, "aé日0-", "a%C3%A9%E6%97%A50%2D"), (CharacterSet(), "aZ ", "%61%5A+"),
            (CharacterSet(charactersIn: " "), "a b", "%61 %62"),
            (CharacterSet().inverted, "a b\r\n&=+%é", "a b\r\n%26%3D%2B%25%C3%A9"),
        ] as [(CharacterSet, String, String)])
    func allowedCharacters(allowed: CharacterSet, text: String, encoded: String) throws {
        let form = try roundTrip([[text, text]], allowed: allowed).form
        #expect(Array(form.utf8) == Array("\(encoded)=\(encoded)".utf8))
        let body = try Request.make(.POST) {
            $0.parameters = [text: ""]
            $0.formParametersAllowedCharacters = allowed
        }.encodedBody()
        #expect(body == encoded + "=")
    }

    @Test("The allowed characters of a form do not apply to a query")
    func queryIgnoresAllowedCharacters() throws {
        let query = try Request.make {
            $0.queryParameters = ["a/": "b/"]
            $0.formParametersAllowedCharacters = CharacterSet(charactersIn: "/")
        }.encodedQuery()
        #expect(query == "a%2F=b%2F")
    }
}
