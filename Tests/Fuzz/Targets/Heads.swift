import Foundation

@testable import WebServiceCore

#if WEBSERVICE_CURL
@testable import WebServiceCurl
#endif

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    static let heads: [FuzzTarget] = {
        let seeds = [
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=b\r\nset-cookie: c=d\r\nAge: 5\r\n\r\n",
            "HTTP/2 204 \r\nx-folded: one\r\n two\r\n\tthree\r\nX-Empty:\r\n\r\nbehind",
            "HTTP/1.0 301\nLocation: /x\nlocation: /y\n\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\n Content-Length: 1\r\nContent-Length: 2, 2\r\nContent-Encoding: gzip\r\n",
        ]
        let tokens = [
            "HTTP/1.1 ", "HTTP/", "\r\nContent-Length: ", "\r\nTransfer-Encoding: chunked", "\r\nContent-Encoding: ",
            "identity", "gzip", "\r\nA: b", ": ",
            "\r\n\r\n", "\r\nX",
        ]
        var targets = [FuzzTarget("head", share: 14, seeds: seeds, tokens: tokens, check: checkHead)]
        #if WEBSERVICE_CURL
        targets.append(FuzzTarget("framing", share: 20, seeds: seeds, tokens: tokens, check: checkFraming))
        targets.append(
            FuzzTarget(
                "trailer",
                seeds: [
                    "X-Sum: 1\r\nx-sum:2\r\nEmpty:\r\n\r\n", "A: 1\r\n folded\r\n\ttwice\r\nB : 2\n\n",
                    "Content-Length: 3\r\n", "no colon\r\n", " X: 1\r\n", "X: 1\rY: 2\r\n", "X\0: 1\r\n\rZ: 2\r\n",
                ], tokens: tokens + ["\r", "\n ", "\0", "\rX: 1\r\n"], check: checkTrailer))
        #endif
        return targets
    }()

    @Sendable private static func checkHead(_ bytes: [UInt8]) throws {
        guard let head = ResponseHead(bytes: bytes, url: "https://a.example/x") else { return }
        try require((100...999).contains(head.status), "the status is \(head.status)")
        let headers = head.headers
        for field in headers {
            try require(
                !field.name.utf8.contains(0x0A) && !field.value.utf8.contains(0x0A), "a field contains a line feed")
            try require(field.name.utf8.first != 0x20 && field.value.utf8.first != 0x09, "a field is not trimmed")
        }
        if let first = headers.fields.first, first.name.utf8.allSatisfy({ $0 < 128 }) {
            let name = Headers.Name(first.name)
            try require(head.values(for: name) == headers.values(for: name), "values(for:) and the headers differ")
            try require(
                head[name] == headers.values(for: name).joined(separator: ", "),
                "the subscript and the headers differ")
        }
        // The conversion by Foundation takes most of the time, so only every eighth length is
        // checked.
        guard bytes.count % 8 == 0, let response = head.urlResponse as? HTTPURLResponse else { return }
        try require(response.statusCode == head.status, "the status of urlResponse is different")
    }

    #if WEBSERVICE_CURL
    @Sendable private static func checkFraming(_ bytes: [UInt8]) throws {
        var framing = Framing()
        for line in bytes.split(separator: 0x0A) { (line + [0x0A]).withUnsafeBytes { framing.observe($0) } }
        framing.finish()
        try require(framing.contentLength ?? 0 >= 0, "the length is \(framing.contentLength ?? 0)")
        try require(!framing.codings.contains { $0.lowercased() == "identity" }, "identity is no content coding")
        guard framing.violation == nil else { return }
        let lengths = Set(
            text(bytes).asciiLowercased().split(separator: "\n").filter { $0.hasPrefix("content-length:") })
        try require(
            lengths.isEmpty == (framing.contentLength == nil) || framing.contentLength != nil,
            "a Content-Length is not recognized")
    }

    /// Checks that the accepted trailer fields satisfy the rules of header fields.
    @Sendable private static func checkTrailer(_ bytes: [UInt8]) throws {
        let maximum = 4_096
        var head = IncomingHead(maximumBytes: maximum)
        head.begin(for: try request.get(), IgnoringReceiver(), mayBeHTTP2: false)
        let start = ["HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n", "\r\n"].map { Array($0.utf8) }
        let rest = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        let lines = rest.dropLast().map { Array($0) + [0x0A] } + rest.suffix(1).filter { !$0.isEmpty }.map { Array($0) }
        for line in start { try line.withUnsafeBytes { try head.receive(line: $0) } }
        do {
            for line in lines { try line.withUnsafeBytes { try head.receive(line: $0) } }
        } catch {
            let isTyped = error is URLError || (error as? WebServiceError)?.code == .responseTooLarge
            return try require(isTyped, "the error is \(error)")
        }
        try require((start + lines).joined().count <= maximum, "the limit is exceeded")
        let names = lines.filter { ![0x0D, 0x0A, 0x20, 0x09].contains($0.first) }
        try require(head.trailers.fields.count == names.count, "\(names.count) lines are \(head.trailers.fields)")
        let framing = ["content-length", "transfer-encoding", "content-encoding"]
        let symbols = Set("!#$%&'*+-.^_`|~".utf8)
        for field in head.trailers {
            let isToken = field.name.utf8.allSatisfy {
                symbols.contains($0)
                    || $0 < 128 && (Character(Unicode.Scalar($0)).isLetter || $0 & 0xF0 == 0x30 && $0 < 0x3A)
            }
            try require(isToken && !field.name.isEmpty, "the name \(field.name) is accepted")
            try require(!framing.contains(field.name.asciiLowercased()), "\(field.name) is accepted")
            try require(
                !field.value.utf8.contains { [0, 0x0A, 0x0D].contains($0) }, "a value contains a control character")
        }
        for line in lines where line.first == 0x0D { try require(line == [0x0D, 0x0A], "a line begins with CR") }
    }

    private static let request = Result { try EncodedRequest.encoding(Request(.GET, url: "http://a.example/")) }

    private final class IgnoringReceiver: BodyReceiver {
        func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) {}
        func didReceive(_ bytes: UnsafeRawBufferPointer) -> Demand { .more }
        func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {}
    }
    #endif
}
