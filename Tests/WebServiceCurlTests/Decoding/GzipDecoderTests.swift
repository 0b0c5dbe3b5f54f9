import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceCurl

@Suite("Curl session: gzip", .permit)
struct GzipDecoderTests {
    static let plain = "ale, porter, stout, lager, pilsner, bock, weizen, saison, ale, porter, stout, lager"
    static let gzip =
        Data(
            base64Encoded:
                "H4sIAAAAAAACA0vMSdVRKMgvKkkt0lEoLskvLdFRyElMB/EKMnOK80CMpPzkbB2F8tTMqtQ8oKLEzOJ8IJ2ISycA4oRG4VMAAAA=")
        ?? Data()

    private func decoder() throws -> any ContentDecoder {
        try #require(ContentCodings.system.decoder(of: .gzip))
    }

    private func text(_ bytes: Data, pieces: Int = .max) throws -> String? {
        try decoder().text(bytes, pieces: pieces)
    }

    @Test("A complete body is decoded in one piece and byte by byte, also with two members")
    func whole() throws {
        #expect(try text(Self.gzip) == Self.plain)
        #expect(try text(Self.gzip, pieces: 1) == Self.plain)
        #expect(try text(Self.gzip + Self.gzip, pieces: 7) == Self.plain + Self.plain)
    }

    @Test("A body that is truncated at any offset is an error")
    func cut() throws {
        for count in 1..<Self.gzip.count { #expect(try text(Self.gzip.prefix(count)) == nil, "\(count)") }
    }

    @Test("A flipped bit is an error or does not change the decoded body")
    func flipped() throws {
        for bit in 0..<Self.gzip.count * 8 {
            var bytes = Self.gzip
            bytes[bit / 8] ^= 1 << (bit % 8)
            let text = try text(bytes)
            #expect(text == nil || text == Self.plain, "\(bit)")
        }
    }

    @Test("Bytes after the end that do not start a member are an error")
    func garbage() throws {
        #expect(try text(Self.gzip + Data("garbage".utf8)) == nil)
        #expect(try text(Data("no gzip at all".utf8)) == nil)
    }

    @Test("Invalid bytes are an error when they arrive, and not only at the end of the body")
    func brokenAtOnce() throws {
        var flipped = Self.gzip
        flipped[flipped.count - 8] ^= 1  // in the checksum
        for bytes in [Data("no gzip at all".utf8), flipped, Self.gzip + Data("garbage".utf8)] {
            let decoder = try decoder()
            #expect(throws: URLError.self) {
                try bytes.withUnsafeBytes { _ = try decoder.decodeBytes($0, limit: .max) { _ in } }
            }
        }
    }

    @Test(
        "Zeros after the end are padding, and any other byte after them is an error",
        arguments: [1, 3, 17, 40_000])
    func padding(count: Int) throws {
        for pieces in [Int.max, 1, 7] where pieces > 1 || count < 100 {
            #expect(try text(Self.gzip + Data(count: count), pieces: pieces) == Self.plain)
            #expect(try text(Self.gzip + Self.gzip + Data(count: count), pieces: pieces) == Self.plain + Self.plain)
            #expect(try text(Self.gzip + Data(count: count) + Data([1]), pieces: pieces) == nil)
            #expect(try text(Self.gzip + Data(count: count) + Self.gzip, pieces: pieces) == nil)
        }
        #expect(try text(Data(count: count)) == nil)
    }

    @Test("A truncated second member is an error")
    func cutMember() throws {
        for count in 1..<Self.gzip.count { #expect(try text(Self.gzip + Self.gzip.prefix(count)) == nil, "\(count)") }
    }

    @Test("A decoder with a limit returns the output in pieces, also after the last input byte")
    func limited() throws {
        let (count, calls) = try decoder().countInPieces(of: Self.zeros)
        #expect(count == 1 << 20)
        #expect(calls > 16)
    }

    @Test("A decoder with a limit returns all output of the input so far")
    func limitedPrefix() throws {
        for count in 20..<150 {
            let bytes = Self.zeros.prefix(count)
            var (whole, limited) = (0, 0)
            try bytes.withUnsafeBytes { _ = try self.decoder().decodeBytes($0, limit: .max) { whole += $0.count } }
            let decoder = try decoder()
            var rest = bytes
            var last = -1
            while !rest.isEmpty || limited > last {
                last = limited
                let used = try rest.withUnsafeBytes { try decoder.decodeBytes($0, limit: 1) { limited += $0.count } }
                rest = rest.dropFirst(used)
            }
            #expect(limited == whole, "\(count) bytes")
        }
    }

    /// 1 MiB of zeros, compressed to about 1 KiB.
    private static let zeros =
        Data(
            base64Encoded:
                "H4sIAAAAAAACA+3BMQEAAADCoPVPbQhfoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPgMc6jinAAAQ"
                + "AA==") ?? Data()
}
