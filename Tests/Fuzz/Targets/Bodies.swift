import Foundation

@testable import WebServiceCore

extension FuzzTarget {
    /// Parsers of streamed bodies: the elements do not depend on the chunks.
    static let bodies: [FuzzTarget] = [
        FuzzTarget(
            "event-stream", runs: 3,
            seeds: [
                "\u{FEFF}data: a\r\ndata\r\n\r\nid: 1\nevent: b\nretry: 5\ndata:c\n\n", ":comment\r\rdata:a\rid\r\r",
            ],
            tokens: ["\r", "\n", "\r\n", "data", "data:", "id: ", "event:", "retry:99", "\0", "\u{FEFF}", "::"],
            check: { try checkChunks($0, ServerSentEventParser(maximumSize: 256)) }),
        FuzzTarget(
            "lines", share: 5, runs: 3, seeds: ["\u{FEFF}a\r\n\n\rb\n\nc\r", "\u{1E}1\n\u{1E}[2]\n"],
            tokens: ["\r", "\n", "\r\n", "\u{FEFF}", "\u{2028}"],
            check: { try checkChunks($0, LineParser(maximumLength: 256)) }),
        FuzzTarget(
            "json-lines", share: 5, runs: 3, seeds: ["1\n\n{\"a\":[2]}\r\n\u{1E}null\n \n3"],
            tokens: ["\r\n", "\n", "\u{FEFF}", "\u{1E}", "[", "{\"a\":", "[[[[[[[["],
            check: { try checkChunks($0, JSONLinesParser(JSONValue.self, maximumLength: 2_048)) }),
        FuzzTarget(
            "multipart", runs: 9,
            seeds: [
                "a\r\n--b\r\nA: 1\r\n 2\r\n\r\nx\r\n--b\r\n\r\ny\r\n--b--\r\nz", "Content-Type: a/b\n\nx\n----b\n\n",
            ],
            tokens: ["\r\n--b", "\r\n", "--", "--b--", "\n", "A:", "content-a:b", " ", "----b"],
            check: { bytes in
                for type in ["multipart/mixed; boundary=--b", "multipart/x-mixed-replace; boundary=b", text(bytes)] {
                    // A hostile Content-Type may have no boundary.
                    guard let parser = try? BodyPartParser(contentType: type, maximumPartSize: 256) else { continue }
                    try checkChunks(bytes, parser)
                }
            }),
    ]

    private static func checkChunks(_ bytes: [UInt8], _ parser: some BodyParser) throws {
        let whole = elements(of: [bytes], parser)
        for size in [1, 7] {
            let chunks = stride(from: 0, to: bytes.count, by: size).map {
                Array(bytes[$0..<min($0 + size, bytes.count)])
            }
            try require(elements(of: chunks, parser) == whole, "chunks of \(size) bytes give other elements")
        }
    }

    private static func elements<Parser: BodyParser>(of chunks: [[UInt8]], _ parser: Parser) -> [String] {
        var parser = parser
        var elements: [String] = []
        do {
            for chunk in chunks {
                parser.append(Data(chunk))
                while let element = try parser.next() { elements.append(fingerprint(element)) }
            }
            parser.finish()
            while let element = try parser.next() { elements.append(fingerprint(element)) }
        } catch {
            elements.append("\(error)")
        }
        return elements
    }

    private static func fingerprint(_ element: some Sendable) -> String {
        guard let part = element as? ResponseBody.Part else { return "\(element)" }
        return "\(part.headers.fields) \(part.data.base64EncodedString())"
    }
}
