import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct JSONLinesParserTests {
    private struct Beer: Codable, Equatable {
        var name: String
    }

    @Test(
        "Blank lines, CRLF, a byte order mark, single values and a missing final line feed",
        arguments: [
            "1\n2\n3\n", "1\n2\n3", "1\r\n2\r\n3\r\n", "\u{FEFF}1\n2\n3\n", "\n1\n\n \t\r\n2\n\n3\n\n",
            " 1 \n\t2\t\n3\r",
        ])
    func values(body: String) {
        for chunks in Chunks.standard(Data(body.utf8)) {
            let result = JSONLinesParser(Int.self).result(of: chunks)
            #expect(result.elements == [1, 2, 3], "\(chunks.map(\.count))")
            #expect(result.error == nil, "\(chunks.map(\.count))")
        }
    }

    @Test("Objects, strings and null")
    func objects() {
        let beers = Data("{\"name\":\"a\"}\r\n{\"name\":\"\u{2028}\"}".utf8)
        for chunks in Chunks.standard(beers) {
            #expect(
                JSONLinesParser(Beer.self).result(of: chunks).elements == [Beer(name: "a"), Beer(name: "\u{2028}")])
        }
        let texts = JSONLinesParser(String?.self).result(of: [Data("\"a\"\nnull\n\"\"\n".utf8)])
        #expect(texts.elements == ["a", nil, ""])
    }

    @Test("A malformed line is an error with its number and bytes, after the values before it")
    func malformedLine() throws {
        for chunks in Chunks.standard(Data("1\n\n2\n{\"a\":\n5\n".utf8)) {
            var parser = JSONLinesParser(Int.self)
            let result = parser.parse(chunks + [Data()], finishing: false)
            #expect(result.elements == [1, 2])
            let error = try #require(result.error)
            #expect(error.code == .decoding)
            #expect(error.underlying is DecodingError)
            #expect(error.message.hasPrefix("Int cannot be decoded from line 4"), "\(error.message)")
            #expect(error.body == Data("{\"a\":".utf8))
        }
        var parser = JSONLinesParser(Int.self)
        #expect(parser.parse([Data("1\n\"x\"\n3\n".utf8)]).error?.message.contains("line 2") == true)
        #expect(parser.parse([]).elements == [3], "the lines after a malformed one remain available")
    }

    @Test("A line that is nested deeper than 512 levels is an error and does not trap")
    func nesting() {
        let line = Data(String(repeating: "[", count: 513).utf8)
        let result = JSONLinesParser(JSONValue.self).result(of: [Data("1\n".utf8), line])
        #expect(result.elements.count == 1)
        #expect(result.error?.code == .decoding)
    }

    @Test("The last line is decoded only at the orderly end of the body")
    func cutLine() {
        for chunks in Chunks.standard(Data("1\n23".utf8)) {
            #expect(JSONLinesParser(Int.self).result(of: chunks, finishing: false).elements == [1])
            #expect(JSONLinesParser(Int.self).result(of: chunks).elements == [1, 23])
        }
        let result = JSONLinesParser(Beer.self).result(of: [Data("{\"name\":\"a\"}\n{\"na".utf8)])
        #expect(result.elements.count == 1)
        #expect(result.error?.message.contains("line 2") == true)
    }

    @Test("Each value may begin with a record separator")
    func textSequence() {
        for chunks in Chunks.standard(Data("\u{1E}1\n\u{1E}2\n\u{1E}\u{1E}3\n\u{1E}\n".utf8)) {
            let result = JSONLinesParser(Int.self).result(of: chunks)
            #expect(result.elements == [1, 2, 3])
            #expect(result.error == nil)
        }
    }

    @Test("A parser limits the length of a line and uses the given decoder")
    func limitAndDecoder() {
        let parser = JSONLinesParser(Int.self, maximumLength: 3)
        let result = parser.result(of: [Data("123\n1234\n".utf8)])
        #expect(result.elements == [123])
        #expect(result.error?.code == .elementTooLarge)
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        let dates = JSONLinesParser(Date.self, decoder: decoder).result(of: [Data("5\n".utf8)])
        #expect(dates.elements == [Date(timeIntervalSince1970: 5)])
    }
}
