import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// brotli and zstd, with libbrotlidec and libzstd of the system. ``GzipDecoderTests`` has the cases of
/// gzip.
@Suite(
    "Curl session: brotli and zstd", .permit,
    .enabled(if: ContentCodings.system.brotli != nil && ContentCodings.system.zstd != nil, "the libraries are needed"))
struct ContentCodingTests {
    private static let plain = GzipDecoderTests.plain

    private static func data(_ base64: String) -> Data { Data(base64Encoded: base64) ?? Data() }

    /// The encoded ``plain``.
    private static func text(_ coding: ContentCoding) -> Data {
        switch coding {
        case .gzip: GzipDecoderTests.gzip
        case .deflate: data("S8xJ1VEoyC8qSS3SUSguyS8t0VHISUwH8Qoyc4rzQIyk/ORsHYXy1Myq1DygosTM4nwgnYhLJwA=")
        case .brotli: data("G1IA8I3UYq2xNKfbPJ+9j8UISTTUCAqQYCuSpMSIE9lMVMdtmCwmjlo5EyPmxqN+Okq0wiE=")
        case .zstd:
            data(
                "KLUv/QRYFQIApANhbGUsIHBvcnRlciwgc3RvdXQsIGxhZ2VyLCBwaWxzbmVyLCBib2NrLCB3ZWl6ZW4sIHNhaXNvbiwgAQDaFwUF4N1pIw=="
            )
        }
    }

    /// 1 MiB of zeros, encoded.
    private static func zeros(_ coding: ContentCoding) -> Data {
        switch coding {
        case .gzip, .deflate: Data()
        case .brotli: data("W///j38CIB4LBHLvHwA=")
        case .zstd: data("KLUv/QRYVAAAEAAAAQD7/znAAgIAEAACABAAAgAQAAIAEAACABAAAgAQAAMAEADxPhbh")
        }
    }

    private func decoder(_ coding: ContentCoding) throws -> any ContentDecoder {
        try #require(ContentCodings.system.decoder(of: coding))
    }

    private func text(_ bytes: Data, _ coding: ContentCoding, pieces: Int = .max) throws -> String? {
        try decoder(coding).text(bytes, pieces: pieces)
    }

    @Test(
        "A complete body is decoded in one piece and byte by byte",
        arguments: [ContentCoding.brotli, .zstd])
    func whole(coding: ContentCoding) throws {
        let bytes = Self.text(coding)
        #expect(try text(bytes, coding) == Self.plain)
        #expect(try text(bytes, coding, pieces: 1) == Self.plain)
        #expect(try text(bytes, coding, pieces: 7) == Self.plain)
        #expect(try text(Data(), coding) == "")
    }

    @Test(
        "A body that is truncated at any offset is an error", arguments: [ContentCoding.brotli, .zstd])
    func truncated(coding: ContentCoding) throws {
        let bytes = Self.text(coding)
        for count in 1..<bytes.count { #expect(try text(bytes.prefix(count), coding) == nil, "\(count)") }
    }

    @Test("Bytes after the end of a brotli body, and bytes that are no frame after one of zstd, are an error")
    func surplus() throws {
        #expect(try text(Self.text(.brotli) + Data([0]), .brotli) == nil)
        #expect(try text(Self.text(.brotli) + Self.text(.brotli), .brotli) == nil)
        #expect(try text(Self.text(.zstd) + Data("garbage".utf8), .zstd) == nil)
        #expect(try text(Self.text(.zstd) + Data([0x28]), .zstd) == nil)
        #expect(try text(Data("no zstd at all".utf8), .zstd) == nil)
        for pieces in [1, 7, .max] {
            #expect(
                try text(Self.text(.zstd) + Self.text(.zstd), .zstd, pieces: pieces) == Self.plain + Self.plain)
        }
    }

    @Test("A flipped bit of a zstd body with a checksum is an error or does not change the decoded body")
    func flipped() throws {
        for bit in 0..<Self.text(.zstd).count * 8 {
            var bytes = Self.text(.zstd)
            bytes[bit / 8] ^= 1 << (bit % 8)
            let text = try text(bytes, .zstd)
            #expect(text == nil || text == Self.plain, "\(bit)")
        }
    }

    @Test("A zstd window above 8 MiB is an error, so that a small body cannot allocate much memory")
    func window() throws {
        // The byte after the descriptor is that of a window of 128 MiB.
        let bytes = Self.data(
            "KLUv/QSIFQIApANhbGUsIHBvcnRlciwgc3RvdXQsIGxhZ2VyLCBwaWxzbmVyLCBib2NrLCB3ZWl6ZW4sIHNhaXNvbiwgAQDaFwUF4N1pIw=="
        )
        #expect(bytes[5] == 0x88)
        #expect(Self.text(.zstd)[5] == 0x58)
        #expect(try text(bytes, .zstd) == nil)
    }

    @Test(
        "A decoder with a limit returns the output in pieces, also after the last input byte",
        arguments: [ContentCoding.brotli, .zstd])
    func limited(coding: ContentCoding) throws {
        let (count, calls) = try decoder(coding).countInPieces(of: Self.zeros(coding))
        #expect(count == 1 << 20)
        #expect(calls > 7)
    }

    // MARK: Over sockets

    private func service(_ body: Data, _ coding: ContentCoding, wire: MockResponse.Wire = .fixedLength) throws -> (
        MockServer, WebService
    ) {
        let server = try MockServer { _ in
            var response = MockResponse(body, wire: wire)
            response.headers["Content-Encoding"] = coding.rawValue
            return response
        }
        return (server, WebService(server, try CurlSession()))
    }

    @Test(
        "A session requests the codings that it decodes except deflate, and decodes all of them",
        arguments: ContentCoding.allCases)
    func requested(coding: ContentCoding) async throws {
        for wire in [MockResponse.Wire.fixedLength, .chunked(size: 5), .untilClose] {
            let (server, service) = try service(Self.text(coding), coding, wire: wire)
            defer { server.stop() }
            let task = service.GET("/").string()
            #expect(try await task.value == Self.plain)
            #expect(try await task.response.headers["Content-Encoding"] == coding.rawValue)
            #expect(server.receivedRequests.first?.headers["Accept-Encoding"] == "gzip, br, zstd")
            var bytes = Data()
            for try await chunk in try await service.GET("/").stream().value.body { bytes.append(chunk) }
            #expect(String(decoding: bytes, as: UTF8.self) == Self.plain)
        }
    }

    @Test(
        "A truncated body with a matching length is an error",
        arguments: [ContentCoding.brotli, .zstd])
    func truncatedResponse(coding: ContentCoding) async throws {
        let (server, service) = try service(Self.text(coding).dropLast(1), coding)
        defer { server.stop() }
        #expect(await service.GET("/").string().result.urlErrorCode == .cannotDecodeContentData)
        let body = try await service.GET("/").stream().value.body
        await #expect(throws: URLError.self) { for try await _ in body {} }
    }

    @Test("The maximum size applies to the decoded body", arguments: [ContentCoding.brotli, .zstd])
    func bombs(coding: ContentCoding) async throws {
        let (server, service) = try service(Self.zeros(coding), coding)
        defer { server.stop() }
        #expect(try await service.GET("/").data().value == Data(count: 1 << 20))
        let task = service.GET("/").configure { $0.options.maximumResponseBytes = 1 << 20 - 1 }
        #expect(await task.data().result.code == .responseTooLarge)
    }
}
