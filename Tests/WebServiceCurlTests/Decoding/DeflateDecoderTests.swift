import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

@Suite("Curl session: deflate and codings that are not decoded", .permit)
struct DeflateDecoderTests {
    private static let plain = GzipDecoderTests.plain
    /// With the zlib format (RFC 1950), as RFC 9110 specifies.
    private static let zlib = data(
        "eJxLzEnVUSjILypJLdJRKC7JLy3RUchJTAfxCjJzivNAjKT85GwdhfLUzKrUPKCixMzifCCdiEsnAMdjHTA=")
    /// Without it (RFC 1951), as some servers send.
    private static let raw = data(
        "S8xJ1VEoyC8qSS3SUSguyS8t0VHISUwH8Qoyc4rzQIyk/ORsHYXy1Myq1DygosTM4nwgnYhLJwA=")
    /// The last four bytes of the zlib format.
    private static let checksum = zlib.suffix(4)

    private static func data(_ base64: String) -> Data { Data(base64Encoded: base64) ?? Data() }

    private func text(_ bytes: Data, pieces: Int = .max) throws -> String? {
        try #require(ContentCodings.system.decoder(of: .deflate)).text(bytes, pieces: pieces)
    }

    @Test(
        "Both forms are decoded in one piece and byte by byte", arguments: [zlib, raw],
        [Int.max, 1, 7])
    func whole(bytes: Data, pieces: Int) throws {
        #expect(try text(bytes, pieces: pieces) == Self.plain)
    }

    @Test("Stored blocks and small windows are decoded in both forms", arguments: [1, .max])
    func forms(pieces: Int) throws {
        let stored = Data([0x01, 0x03, 0x00, 0xFC, 0xFF]) + Data("ale".utf8)
        #expect(try text(stored, pieces: pieces) == "ale")
        #expect(try text(Data([0x78, 0x01]) + stored + Data([0x02, 0x63, 0x01, 0x33]), pieces: pieces) == "ale")
        #expect(try text(Data([0x18, 0x19]) + stored + Data([0x02, 0x63, 0x01, 0x33]), pieces: pieces) == "ale")
        #expect(try text(Data(), pieces: pieces) == "")
    }

    @Test("A body that is truncated at any offset is an error", arguments: [zlib, raw])
    func truncated(bytes: Data) throws {
        for count in 1..<bytes.count { #expect(try text(bytes.prefix(count)) == nil, "\(count)") }
    }

    @Test("A flipped bit of the zlib format is an error or does not change the decoded body")
    func flipped() throws {
        for bit in 0..<Self.zlib.count * 8 {
            var bytes = Self.zlib
            bytes[bit / 8] ^= 1 << (bit % 8)
            let text = try text(bytes)
            #expect(text == nil || text == Self.plain, "\(bit)")
        }
    }

    @Test("Bytes after the end are an error, except for a checksum after the raw form")
    func surplus() throws {
        for pieces in [1, 7, Int.max] {
            #expect(try text(Self.zlib + Data([0]), pieces: pieces) == nil)
            #expect(try text(Self.zlib + Self.zlib, pieces: pieces) == nil)
            #expect(try text(Self.raw + Self.checksum, pieces: pieces) == Self.plain)
            #expect(try text(Self.raw + Self.checksum + Data([0]), pieces: pieces) == nil)
            #expect(try text(Self.raw + Self.raw, pieces: pieces) == nil)
        }
    }

    @Test("A body that requires a preset dictionary is an error")
    func dictionary() throws {
        #expect(try text(Data([0x78, 0x20, 1, 2, 3, 4]) + Self.raw) == nil)
    }

    // MARK: Over sockets

    private func response(_ codings: [String], _ body: Data, accepting accepted: String? = nil) async throws -> Data {
        let server = try MockServer { _ in
            var response = MockResponse(body)
            for coding in codings { response.headers.add(coding, for: "Content-Encoding") }
            return response
        }
        defer { server.stop() }
        let task = WebService(server, try CurlSession()).GET("/")
        if let accepted { task.setHeaderValue(accepted, forName: "Accept-Encoding") }
        return try await task.data().value
    }

    @Test(
        "A coding that a session does not decode is named by the error, also if the request asks for it",
        arguments: [
            (["compress"], "compress"), (["gzip, deflate, gzip"], "gzip, deflate, gzip"), (["br", "x"], "br, x"),
            (["gzip", "GZIP", "gzip"], "gzip, GZIP, gzip"), (["bra"], "bra"),
            ([String](repeating: "x", count: 100), "x, x"),
            (["caf\u{e9}\u{202E}"], "caf"),
        ])
    func refused(codings: [String], name: String) async throws {
        for accepted in [nil, codings[0]] as [String?] where accepted?.utf8.allSatisfy({ $0 < 0x80 }) ?? true {
            let error = await #expect(throws: URLError.self) {
                try await response(codings, Data("ale".utf8), accepting: accepted)
            }
            #expect(error?.code == .cannotDecodeContentData)
            let text = error?.localizedDescription ?? ""
            #expect(text.contains(name), "\(text)")
            #expect(text.utf8.count < 200)
            #expect(!text.contains("\u{202E}"))
        }
    }

    @Test("A body with the coding identity and one other coding is decoded")
    func identity() async throws {
        for codings in [["identity, x-gzip"], ["identity", "gzip"], ["gzip, "], ["GZip,identity"]] {
            let body = try await response(codings, GzipDecoderTests.gzip)
            #expect(String(decoding: body, as: UTF8.self) == Self.plain, "\(codings)")
        }
        #expect(try await response(["identity"], Data("ale".utf8)) == Data("ale".utf8))
        #expect(try await response([""], Data("ale".utf8)) == Data("ale".utf8))
    }

    @Test("A response without a body may have any coding", arguments: ["compress", "gzip, br"])
    func empty(coding: String) async throws {
        #expect(try await response([coding], Data()) == Data())
        let server = try MockServer.forTest { request in
            MockResponse(statusCode: request.method == .HEAD ? 200 : 304, headers: ["Content-Encoding": coding])
        }
        let service = WebService(server, try CurlSession())
        #expect(try await service.HEAD("/").data().response.status == 200)
        #expect(try await service.GET("/").data().validateNothing().response.status == 304)
    }
}
