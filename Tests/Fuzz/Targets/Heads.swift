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
        try require(framing.coding == nil || framing.isEncoded, "gzip does not count as a content coding")
        guard framing.violation == nil else { return }
        let lengths = Set(
            text(bytes).asciiLowercased().split(separator: "\n").filter { $0.hasPrefix("content-length:") })
        try require(
            lengths.isEmpty == (framing.contentLength == nil) || framing.contentLength != nil,
            "a Content-Length is not recognized")
    }
    #endif
}
