import Foundation
import TestSupport
import Testing

@testable import WebServiceCurl

@Suite("Curl session: framing", .permit)
struct FramingTests {
    private func framing(_ lines: String...) -> Framing {
        var framing = Framing()
        for line in lines {
            (line + "\r\n").utf8.withContiguousStorageIfAvailable { framing.observe(UnsafeRawBufferPointer($0)) }
        }
        framing.finish()
        return framing
    }

    @Test(
        "A single length is accepted in every notation",
        arguments: [
            "Content-Length: 5", "content-length:5", "CONTENT-LENGTH:   5  ", "Content-Length: 5, 5",
            "Content-Length: 0005",
        ])
    func lengths(line: String) {
        let framing = framing(line)
        #expect(framing.contentLength == 5)
        #expect(framing.violation == nil)
    }

    @Test(
        "An invalid length or transfer coding is refused",
        arguments: [
            "Content-Length: ", "Content-Length: 5abc", "Content-Length: -3", "Content-Length: +3",
            "Content-Length: 5, 6", "Content-Length: 0x5",
            "Content-Length: 9223372036854775808", "Content-Length: 99999999999999999999999", "Content-Length: 5,",
            "Transfer-Encoding: gzip",
            "Transfer-Encoding: chunked, gzip", "Transfer-Encoding: chunked, chunked",
        ])
    func violations(line: String) {
        #expect(framing(line).violation != nil)
    }

    @Test("Contradictory framing fields are refused, and equal lengths are accepted")
    func pairs() {
        #expect(framing("Content-Length: 5", "Content-Length: 6").violation != nil)
        #expect(framing("Content-Length: 5", "Content-Length: 5").violation == nil)
        #expect(framing("Content-Length: 5", "Transfer-Encoding: chunked").violation != nil)
        #expect(framing("Transfer-Encoding: chunked", "Transfer-Encoding: chunked").violation != nil)
        #expect(framing("Transfer-Encoding: Chunked").violation == nil)
        #expect(framing("X-Content-Length: abc", "Content-Lengths: abc", "Content-Type: text/plain").violation == nil)
    }

    @Test(
        "The codings of all lines are collected in order, except identity",
        arguments: [
            (["gzip"], ["gzip"]), (["identity", "X-GZIP"], ["X-GZIP"]), (["zstd", ""], ["zstd"]),
            (["deflate", "gzip"], ["deflate", "gzip"]), (["gzip, deflate"], ["gzip", "deflate"]),
            (["br ,identity,\tgzip,,"], ["br", "gzip"]), (["Identity"], []), ([","], []),
        ])
    func codings(lines: [String], expected: [String]) {
        var framing = Framing()
        for coding in lines {
            "Content-Encoding: \(coding)\r\n".utf8.withContiguousStorageIfAvailable {
                framing.observe(UnsafeRawBufferPointer($0))
            }
        }
        framing.finish()
        #expect(framing.codings == expected)
        #expect(framing.violation == nil)
    }

    @Test("A folded line is refused in a field that defines the length or coding of the body")
    func continuations() {
        #expect(framing("Content-Length: 2", " 00").violation != nil)
        #expect(framing("Transfer-Encoding:", "\tchunked").violation != nil)
        #expect(framing("Content-Encoding:", " gzip").violation != nil)
        #expect(framing("X-Brew: pale", " ale", "Content-Length: 2").violation == nil)
        #expect(framing("Content-Length: 2", "X-Brew: pale", " 00").violation == nil)
    }
}
