import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceCurl

/// Bodies with two content codings.
@Suite("Curl session: two content codings", .permit, .enabled(if: ContentCodings.system.gzip != nil, "zlib is needed"))
struct DecoderPairTests {
    /// ``GzipDecoderTests/plain``, encoded twice.
    private static let twice =
        Data(
            base64Encoded:
                "H4sIAAAAAAACA5Pv5mAAASZm7zOeVwM1TuhreepeCtTQO6mvezHwhKcP+0cuo+Kuzw49S/48yZFt/XTlzKorNgsWHTnzqEZhboe3OsOjFreHwUATALn7NopKAAAA"
        )
        ?? Data()
    /// 1 MiB of zeros, encoded twice.
    private static let zeros =
        Data(base64Encoded: "H4sIAAAAAAACA5Pv5mAAASbmtwcNGYGMQwu++udyxC9gGAWjYBSMOGDHLPPKYjkDgwADACPwtJAbBAAA")
        ?? Data()

    private func decoder(_ names: [String] = ["gzip", "gzip"]) throws -> any ContentDecoder {
        try #require(ContentCodings.system.decoder(of: names))
    }

    @Test("A body is decoded twice, in one piece and byte by byte")
    func whole() throws {
        for pieces in [1, 7, .max] {
            #expect(try decoder().text(Self.twice, pieces: pieces) == GzipDecoderTests.plain, "\(pieces)")
        }
        #expect(try decoder().text(Data(), pieces: .max) == "")
    }

    @Test("A body that is truncated at any offset is an error")
    func cut() throws {
        for count in 1..<Self.twice.count {
            #expect(try decoder().text(Self.twice.prefix(count), pieces: .max) == nil, "\(count)")
        }
    }

    @Test("With a limit, the output is returned in pieces")
    func limited() throws {
        let (count, calls) = try decoder().countInPieces(of: Self.zeros)
        #expect(count == 1 << 20)
        #expect(calls > 7)
    }

    /// A coding whose bytes each stand for 1,000 zeros.
    private struct Zeros: ContentDecoder {
        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int {
            for _ in bytes { try [UInt8](repeating: 0, count: 1_000).withUnsafeBytes(append) }
            return bytes.count
        }

        func finish() throws {}
    }

    /// A coding without content.
    private struct Nothing: ContentDecoder {
        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int { bytes.count }

        func finish() throws {}
    }

    @Test("A body of over 1 MiB that is 64 times as long after the first coding is an error")
    func bomb() throws {
        #expect(try DecoderPair(Zeros(), Nothing()).text(Data(count: 1_000), pieces: .max) == "")
        let error = #expect(throws: URLError.self) {
            let pair = DecoderPair(Zeros(), Nothing())
            try Data(count: 1_200).withUnsafeBytes { _ = try pair.decodeBytes($0, limit: .max) { _ in } }
        }
        #expect(error?.code == .cannotDecodeContentData)
        #expect(error?.localizedDescription.contains("64 times") == true)
    }

    /// A coding that decodes each byte to ten, per call either for one byte or up to the limit.
    private struct Ten: ContentDecoder {
        var isLimited = true

        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int {
            let count = isLimited ? min(bytes.count, (limit + 9) / 10) : min(bytes.count, 1)
            for _ in 0..<count { try [UInt8](repeating: 0, count: 10).withUnsafeBytes(append) }
            return count
        }

        func finish() throws {}
    }

    @Test("The limit of a call applies to the output of all pieces")
    func limitOfCall() throws {
        // Each byte becomes ten, and each of them ten again.
        let pair = DecoderPair(Ten(isLimited: false), Ten())
        var count = 0
        let consumed = try Data(count: 10).withUnsafeBytes { bytes in
            try pair.decodeBytes(bytes, limit: 150) { count += $0.count }
        }
        #expect(count == 150)
        #expect(consumed == 2)
    }

    /// A coding whose body is never complete.
    private struct Endless: ContentDecoder {
        func decodeBytes(
            _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
        ) throws -> Int { bytes.count }

        func finish() throws { throw URLError(.cannotDecodeContentData) }
    }

    @Test("A body is complete only if both codings are complete")
    func ends() throws {
        #expect(throws: Never.self) { try DecoderPair(Nothing(), Nothing()).finish() }
        #expect(throws: URLError.self) { try DecoderPair(Endless(), Nothing()).finish() }
        #expect(throws: URLError.self) { try DecoderPair(Nothing(), Endless()).finish() }
    }

    @Test("Lists of more than two codings or with an unknown one are rejected with their names")
    func lists() throws {
        for names in [["gzip", "gzip", "gzip"], ["gzip", "a"], ["a", "gzip"], ["a", "b"]] {
            let rejecting = try #require(try decoder(names) as? RejectingDecoder)
            #expect(rejecting.names == names)
        }
        #expect(ContentCodings.system.decoder(of: []) == nil)
    }
}
