import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct BodyPartParserTests {
    /// Parses a body in the standard chunks, all of which must give the same result.
    private func parse(
        _ body: String, type: String = "multipart/mixed; boundary=b", sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> ParserResult<ResponseBody.Part> {
        let parser = try BodyPartParser(contentType: type)
        let result = parser.result(of: [Data(body.utf8)])
        for chunks in Chunks.standard(Data(body.utf8)) {
            #expect(parser.result(of: chunks) == result, "\(chunks.map(\.count))", sourceLocation: sourceLocation)
        }
        return result
    }

    private func part(_ data: String, _ headers: Headers = [:]) -> ResponseBody.Part {
        ResponseBody.Part(headers: headers, data: Data(data.utf8))
    }

    @Test(
        "Forms of the boundary parameter",
        arguments: [
            ("b", "b"), ("\"b\"", "b"), ("\"simple boundary\"", "simple boundary"),
            ("gc0pJq0M:08jU534c0p", "gc0pJq0M:08jU534c0p"), ("\"a=b?'()+_,-./:\"", "a=b?'()+_,-./:"), ("'b'", "'b'"),
            (String(repeating: "7", count: 70), String(repeating: "7", count: 70)), ("b ; charset=utf-8", "b"),
            ("\"b;c, d\"; charset=utf-8", "b;c, d"),
            ("----WebKitFormBoundaryAb1", "----WebKitFormBoundaryAb1"),
            ("--b", "b"), ("\"--b\"", "b"), ("--b", "--b"), ("----b", "--b"), ("----", "----"), ("----", "--"),
        ])
    func boundaries(parameter: String, boundary: String) throws {
        let body = "--\(boundary)\r\nA: 1\r\n\r\nx\r\n--\(boundary) \t\r\n\r\ny\r\n--\(boundary)--\r\n"
        for name in ["boundary", "Boundary"] {
            let result = try parse(body, type: "multipart/mixed; \(name)=\(parameter)")
            #expect(result.elements == [part("x", ["A": "1"]), part("y")])
            #expect(result.error == nil)
        }
    }

    @Test(
        "A media type without a boundary of 1 to 70 bytes is a typed error",
        arguments: [
            "multipart/mixed", "multipart/mixed; boundary=", "multipart/mixed; boundary=\"\"", "text/plain; boundary=b",
            "",
            "multipart/mixed; boundary=" + String(repeating: "7", count: 71),
        ])
    func missingBoundary(type: String) {
        let error = #expect(throws: WebServiceError.self) { try BodyPartParser(contentType: type) }
        #expect(error?.code == .unexpectedContentType)
    }

    @Test("The first part may begin without a delimiter")
    func missingFirstBoundary() throws {
        let body = "content-type: image/jpeg\r\n\r\nx\r\n--b\r\nA: 1\r\n\r\ny\r\n--b--"
        let result = try parse(body)
        #expect(result.elements == [part("x", ["content-type": "image/jpeg"]), part("y", ["A": "1"])])
        #expect(result.error == nil)
        #expect(try parse("content-typo\r\n--b\r\n\r\nx\r\n--b--").error?.code == .decoding)
        #expect(try parse("contents\r\n--b\r\n\r\nx\r\n--b--").elements == [part("x")])
    }

    @Test(
        "Data that resembles a delimiter, without Content-Length",
        arguments: [
            "--b", "x--b", "x--b--", "\r\n--", "\r\n-b", "\r\n--c\r\n", "\r\n--bb\r\n", "\r\n--b-\r\n", "\r\n--b-x",
            "\r\n --b\r\n", "\r--b\r\n", "\r\n--B\r\n", "\r\n\r\n", "\n", "\r", "\r\r\n", "\r\n--bc--\r\n",
            "\r\n--\r\n--",
        ])
    func almostDelimiters(data: String) throws {
        // The line break before a delimiter belongs to it, so that data cannot begin with one.
        let data = data.hasPrefix("-") ? "." + data : data
        let result = try parse("--b\r\nA: 1\r\n\r\n\(data)\r\n--b\r\n\r\n\(data)\r\n--b--\r\n")
        #expect(result.elements == [part(data, ["A": "1"]), part(data)])
        #expect(result.error == nil)
    }

    @Test("Parts without fields, parts without data, parts with LF only, and a nested body")
    func sparseParts() throws {
        #expect(
            try parse("--b\r\n\r\n--b\r\n\r\n\r\n--b\r\nA: 1\r\n\r\n--b--").elements == [
                part(""), part(""), part("", ["A": "1"]),
            ])
        #expect(try parse("--b\nA: 1\n\nx\ny\n--b\n\nz\n--b--\n").elements == [part("x\ny", ["A": "1"]), part("z")])
        let nested = "--b2\r\n\r\nx\r\n--b2--"
        let type = "multipart/mixed; boundary=b2"
        let result = try parse("--b\r\nContent-Type: \(type)\r\n\r\n\(nested)\r\n--b--\r\n")
        #expect(result.elements == [part(nested, ["Content-Type": type])])
        #expect(result.error == nil)
        #expect(try parse("--b--").elements.isEmpty)
        #expect(try parse("--b--").error == nil)
    }

    @Test("Arbitrary bytes are preserved")
    func anyBytes() throws {
        var generator = SeededGenerator(seed: 2_046)
        let type = "multipart/mixed; boundary=bound"
        for size in [0, 1, 255, 256, 257, 70_000] {
            let data = Data((0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) })
            let body = Data("--bound\r\n\r\n".utf8) + data + Data("\r\n--bound--".utf8)
            for chunkSize in [1, 7, 1_460, body.count] {
                let result = try BodyPartParser(contentType: type).result(of: Chunks.of(chunkSize, body))
                #expect(result.elements == [ResponseBody.Part(headers: [:], data: data)])
                #expect(result.error == nil)
            }
        }
    }

    @Test("A delimiter that is divided at every byte")
    func dividedDelimiter() throws {
        let body = "pre\r\n--b\r\nA: 1\r\n\r\nx\r\n--b\r\n\r\ny\r\n--b--\r\nepilogue"
        #expect(try parse(body).elements == [part("x", ["A": "1"]), part("y")])
        // A part is complete with its delimiter, without the rest of the line.
        var parser = try BodyPartParser(contentType: "multipart/x-mixed-replace; boundary=b")
        parser.append(Data("--b\r\n\r\nx\r\n--b".utf8))
        #expect(try parser.next() == nil)
        parser.append(Data("\r".utf8))
        #expect(try parser.next() == part("x"))
    }

    @Test(
        "A body without the close delimiter is an error after its complete parts",
        arguments: ["mixed", "byteranges", "form-data", "related", "x-mixed-replace"])
    func missingEnd(subtype: String) throws {
        let isReplacing = subtype == "x-mixed-replace"
        let type = "multipart/\(subtype); boundary=b"
        let error: WebServiceError.Code? = isReplacing ? nil : .decoding
        for (rest, last) in [
            ("", nil), ("\r\n", nil), ("\r\nA: 1\r\n", nil), ("\r\n\r\n", ""), ("\r\n\r\ny", "y"),
            ("\r\n\r\ny\r", "y\r"), ("\r\n\r\ny\r\n", "y"), ("\r\n\r\ny\n", "y"), ("\r\n\r\n\r\n", ""),
            ("\r\n\r\n\n", ""), ("\r\n\r\ny\r\n\r\n", "y\r\n"),
            ("\r\n\r\ny\r\n--", "y\r\n--"),
        ] as [(String, String?)] {
            let result = try parse("--b\r\n\r\nx\r\n--b\(rest)", type: type)
            #expect(result.elements == [part("x")] + (isReplacing ? last.map { [part($0)] } ?? [] : []), "\(rest)")
            #expect(result.error?.code == error, "\(rest)")
        }
        for body in ["", "preamble", "\r\n", "--b"] {
            let result = try parse(body, type: type)
            #expect(result.elements.isEmpty, "\(body)")
            #expect(result.error?.code == error, "\(body)")
        }
        let parser = try BodyPartParser(contentType: type)
        let result = parser.result(of: [Data("--b\r\n\r\nx".utf8)], finishing: false)
        #expect(result.elements.isEmpty)
        #expect(result.error == nil)
    }

    @Test("A header block of more than 16 KiB is an error at the limit")
    func largeHeader() throws {
        // "A: " and the two line breaks are 7 bytes.
        let largest = String(repeating: "x", count: (16 << 10) - 7)
        let result = try BodyPartParser(contentType: "multipart/mixed; boundary=b").result(
            of: [Data("--b\r\nA: \(largest)\r\n\r\nd\r\n--b--".utf8)])
        #expect(result.elements == [part("d", ["A": largest])])
        #expect(result.error == nil)
        let endless = "A: \(largest)x\r\n"
        let many = String(repeating: "A:1\r\n", count: 4_000)
        for fields in [endless, many, String(repeating: " ", count: 20_000)] {
            let body = Data("--b\r\n\r\nd\r\n--b\r\n\(fields)\r\ne\r\n--b--".utf8)
            for chunks in [[body], Chunks.of(1, body), Chunks.of(1_460, body)] {
                let result = try BodyPartParser(contentType: "multipart/mixed; boundary=b").result(of: chunks)
                #expect(result.elements == [part("d")])
                #expect(result.error?.code == .elementTooLarge)
            }
        }
        var parser = try BodyPartParser(contentType: "multipart/mixed; boundary=b")
        #expect(parser.parse([Data("--b\r\n".utf8)], finishing: false).error == nil)
        let half = Data(repeating: 0x61, count: 8 << 10)
        #expect(parser.parse([half], finishing: false).error == nil)
        #expect(parser.parse([half], finishing: false).error?.code == .elementTooLarge)
    }

    @Test("Fields are unfolded and trimmed, and may be repeated; any other line is an error")
    func headerFields() throws {
        let fields = "A:1\r\nb : \t2 \r\nA: 3\r\n 4\r\n\t5\r\nEmpty:\r\nX: a:b\r\n"
        let headers = try #require(try parse("--b\r\n\(fields)\r\nd\r\n--b--").elements.first?.headers)
        #expect(headers.map(\.name) == ["A", "b", "A", "Empty", "X"])
        #expect(headers.map(\.value) == ["1", "2", "3 4 5", "", "a:b"])
        for line in ["no colon", ": no name", "a b: c", " folded", "--b--"] {
            let result = try parse("--b\r\n\r\nd\r\n--b\r\n\(line)\r\n\r\ne\r\n--b--")
            #expect(result.elements == [part("d")], "\(line)")
            #expect(result.error?.code == .decoding, "\(line)")
        }
    }

    @Test("The preamble and the epilogue are ignored")
    func preambleAndEpilogue() throws {
        for preamble in ["", "\r\n", "This is a message:\r\n\r\n--a\r\n--b-\r\n--bb\r\n", "a: b\r\n", "--\r\n"] {
            for epilogue in ["", "\r\n", "\r\nepilogue\r\n--b\r\n\r\nx\r\n--b--\r\n", "epilogue"] {
                let result = try parse("\(preamble)--b\r\n\r\nx\r\n--b--\(epilogue)")
                #expect(result.elements == [part("x")], "\(preamble), \(epilogue)")
                #expect(result.error == nil, "\(preamble), \(epilogue)")
            }
        }
    }

    @Test("Byte ranges (RFC 9110, section 15.3.7.2)")
    func byteRanges() throws {
        let body =
            "--THIS\r\nContent-Type: application/pdf\r\nContent-Range: bytes 500-502/8000\r\n\r\nabc\r\n"
            + "--THIS\r\nContent-Type: application/pdf\r\nContent-Range: bytes 7000-7001/8000\r\n\r\nde\r\n--THIS--\r\n"
        let result = try parse(body, type: "multipart/byteranges; boundary=THIS")
        #expect(result.elements.map(\.data) == [Data("abc".utf8), Data("de".utf8)])
        #expect(result.error == nil)
        let ranges = result.elements.map { $0.headers["content-range"] }
        #expect(ranges == ["bytes 500-502/8000", "bytes 7000-7001/8000"])
    }

    @Test("A part that exceeds the limit is an error at the limit, after the parts before it")
    func limit() throws {
        let parser = try BodyPartParser(contentType: "multipart/mixed; boundary=b", maximumPartSize: 4)
        for chunks in Chunks.standard(Data("--b\r\n\r\nabcd\r\n--b\r\n\r\nefgh\n--b--".utf8)) {
            let result = parser.result(of: chunks)
            #expect(result.elements == [part("abcd"), part("efgh")])
            #expect(result.error == nil)
        }
        for rest in ["abcde", "abcd\r\n.", "abcde\r\n--b--", "abcd\rx"] {
            for chunks in Chunks.standard(Data("--b\r\n\r\nx\r\n--b\r\n\r\n\(rest)".utf8)) {
                let result = parser.result(of: chunks)
                #expect(result.elements == [part("x")], "\(rest)")
                #expect(result.error?.code == .elementTooLarge, "\(rest)")
            }
        }
    }

    @Test("Parsing data full of near-delimiters in small chunks takes linear time")
    func linear() throws {
        let boundary = String(repeating: "b", count: 70)
        func time(_ size: Int) throws -> Double {
            let line = "\n--" + boundary.dropLast()
            let data = String(repeating: line, count: size / line.utf8.count)
            let body = Data("--\(boundary)\r\n\r\n\(data)\r\n--\(boundary)--".utf8)
            let chunks = Chunks.of(1_460, body)
            let parser = try BodyPartParser(contentType: "multipart/mixed; boundary=\(boundary)")
            let times = (0..<3).map { _ in
                processorTime { #expect(parser.result(of: chunks).elements.map(\.data) == [Data(data.utf8)]) }
            }
            return times.min() ?? 0
        }
        // Quadratic time would be 256 times as long.
        let small = try time(256 << 10)
        let large = try time(4 << 20)
        #expect(large <= small * 64, "\(small) s, \(large) s")
    }

    @Test("Random multipart bodies result in the same parts, however they are divided")
    func mutations() throws {
        var generator = SeededGenerator(seed: 1_521)
        let seeds = ["--b\r\nA: 1\r\n\r\nx\r\n--b\r\n\r\ny\r\n--b--\r\n", "Content-A: b\r\n\r\nx\r\n----b\r\n\r\n"]
        let tokens = ["\r\n", "\n", "\r", "--b", "\r\n--b", "--", "\r\n\r\n", "A: 1", ":", " ", "----b\r\n"]
        let parsers = try ["mixed; boundary=b", "x-mixed-replace; boundary=--b", "mixed; boundary=--"].map {
            try BodyPartParser(contentType: "multipart/\($0)", maximumPartSize: 12)
        }
        var parts = 0
        let count = amount(4_000, thorough: 20_000)
        for index in 0..<count {
            let seed = Data(seeds[index % seeds.count].utf8)
            let body = Mutation.of(seed, tokens: tokens.map { Data($0.utf8) }, &generator)
            let chunks = Chunks.random(body, &generator)
            let parser = parsers[index % parsers.count]
            let expected = parser.result(of: [body])
            parts += expected.elements.count
            guard parser.result(of: chunks) != expected else { continue }
            Issue.record("\(body.base64EncodedString()) in chunks of \(chunks.map(\.count))")
            return
        }
        #expect(parts > count / 4, "\(parts) parts are too few to compare")
    }
}
