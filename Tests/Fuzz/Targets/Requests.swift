import Foundation

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    static let requests: [FuzzTarget] = [
        FuzzTarget(
            "request", share: 10,
            seeds: [
                "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n",
                "PUT * HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
                "\r\nDELETE http://h/ HTTP/1.1\r\nhost:h\r\nConnection: close, x\r\n\r\n",
            ],
            tokens: [
                "\r\n", "\r\n\r\n", "Content-Length: ", "Transfer-Encoding: chunked", "0\r\n\r\n",
                "ffffffffffffffff\r\n", "Host: h\r\n", " HTTP/1.1", "GET / ",
            ],
            check: checkRequest),
        FuzzTarget(
            "multipart", share: 8, seeds: ["name", "a\"b\r\nc", "Content-Type: x\r\n\r\n", "--WebService-", "é\u{0}"],
            tokens: ["\r\n--", "\r\n\r\n", "; filename=\""],
            check: checkMultipart),
    ]

    /// Checks that the requests do not depend on the sizes of the pieces in which the bytes arrive.
    @Sendable private static func checkRequest(_ bytes: [UInt8]) throws {
        let whole = events(bytes, pieceLength: max(bytes.count, 1))
        try require(whole.count <= bytes.count / 10 + 2, "\(whole.count) events")
        let pieceLength = bytes.count <= 4 << 10 ? 1 + bytes.count % 7 : 1 + bytes.count / 64
        try require(
            events(bytes, pieceLength: pieceLength) == whole,
            "pieces of \(pieceLength) bytes result in different events")
        for case .request(let request) in whole {
            _ = (request.queryItems, request.formItems)
            _ = try? request.json()  // invalid JSON may throw
        }
    }

    private static func events(_ bytes: [UInt8], pieceLength: Int) -> [RequestParser.Event] {
        var parser = RequestParser()
        var events: [RequestParser.Event] = []
        for start in stride(from: 0, to: bytes.count, by: pieceLength) {
            parser.append(bytes[start..<min(start + pieceLength, bytes.count)])
            while let event = parser.next() {
                // This event depends on whether the body has already arrived.
                if event != .continueExpected { events.append(event) }
                if case .violation = event { return events }
            }
        }
        return events
    }

    @Sendable private static func checkMultipart(_ bytes: [UInt8]) throws {
        var generator = Random(state: 1)
        var form = MultipartFormData(using: &generator)
        let value = text(bytes)
        form.append(value, name: value)
        form.append(Data(bytes), name: "data", fileName: value, contentType: "text/plain")
        guard let body = try? form.encoded().source?.bytes else { return }  // invalid input may throw
        let delimiter = Data("--\(form.boundary)".utf8)
        guard !bytes.contains(delimiter) else { return }
        var parts: [Data] = []
        var rest = body[...]
        while let found = rest.range(of: delimiter) {
            parts.append(rest[..<found.lowerBound])
            rest = rest[found.upperBound...]
        }
        try require(
            parts.count == 3 && parts[0].isEmpty && rest.elementsEqual("--\r\n".utf8), "there are \(parts.count) parts")
        for (part, content, lines) in [(parts[1], Data(value.utf8), 1), (parts[2], Data(bytes), 2)] {
            guard let end = part.range(of: Data("\r\n\r\n".utf8)) else {
                throw Finding(text: "a part has no end of its head")
            }
            try require(part[..<end.lowerBound].split(separator: 0x0A).count == lines + 1, "a name adds a line")
            try require(part[end.upperBound...].elementsEqual(content + Data("\r\n".utf8)), "the content is different")
        }
    }
}

extension [UInt8] {
    fileprivate func contains(_ bytes: Data) -> Bool { Data(self).range(of: bytes) != nil }
}
