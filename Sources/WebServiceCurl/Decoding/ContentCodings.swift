import CCurl
import Foundation
import WebServiceCore

/// A content coding (RFC 9110, section 8.4.1) that a session can decode.
enum ContentCoding: String, CaseIterable {
    case gzip
    case deflate
    case brotli = "br"
    case zstd

    /// Creates a coding from its name.
    ///
    /// - Parameter name: The name in a header field. Its case is ignored.
    init?(name: String) {
        let name = name.asciiLowercased()
        self.init(rawValue: name == "x-gzip" ? "gzip" : name)
    }
}

/// The content codings whose libraries are available on the system.
struct ContentCodings: Sendable {
    /// The codings of the system. The libraries are loaded once per process.
    static let system = ContentCodings(
        gzip: loaded { ccurl_load_zlib($0) }, brotli: loaded { ccurl_load_brotli($0) },
        zstd: loaded { ccurl_load_zstd($0) })

    let gzip: ccurl_zlib?
    let brotli: ccurl_brotli?
    let zstd: ccurl_zstd?

    /// Whether libcurl decodes the bodies, because zlib is missing.
    var areLeftToLibrary: Bool { gzip == nil }

    /// The names of the codings that are requested.
    ///
    /// The session does not request deflate, because servers send two forms of it, one of which has
    /// no checksum.
    var names: [String] {
        [(ContentCoding.gzip, gzip != nil), (.brotli, brotli != nil), (.zstd, zstd != nil)].filter(\.1)
            .map(\.0.rawValue)
    }

    /// Returns a decoder for one body.
    ///
    /// The decoder rejects a body with more than two codings or with a coding that cannot be
    /// decoded.
    ///
    /// - Parameter names: The names of the codings in the order in which they were applied, without
    ///   `identity`.
    /// - Returns: `nil` if the body has no coding, or if libcurl decodes it.
    func decoder(of names: [String]) -> (any ContentDecoder)? {
        guard !names.isEmpty, !areLeftToLibrary else { return nil }
        let decoders = names.count > 2 ? [] : names.compactMap { ContentCoding(name: $0).flatMap { decoder(of: $0) } }
        guard decoders.count == names.count, let inner = decoders.first, let outer = decoders.last else {
            return RejectingDecoder(names: names)
        }
        return decoders.count == 1 ? inner : DecoderPair(outer, inner)
    }

    /// Returns a decoder for one body; `nil` if libcurl decodes the bodies, or if the library of
    /// the coding is missing or cannot allocate memory.
    func decoder(of coding: ContentCoding) -> (any ContentDecoder)? {
        guard !areLeftToLibrary else { return nil }
        return switch coding {
        case .gzip: gzip.flatMap { StreamDecoder<GzipStream>($0) }
        case .deflate: gzip.flatMap { StreamDecoder<DeflateStream>($0) }
        case .brotli: brotli.flatMap { StreamDecoder<BrotliStream>($0) }
        case .zstd: zstd.flatMap { StreamDecoder<ZstdStream>($0) }
        }
    }

    private static func loaded<Library>(_ load: (UnsafeMutablePointer<Library>) -> CInt) -> Library? {
        withUnsafeTemporaryAllocation(of: Library.self, capacity: 1) { place in
            place.baseAddress.flatMap { load($0) == 1 ? $0.pointee : nil }
        }
    }
}

/// A decoder for a body whose coding is not supported. It throws an error unless the body is empty.
struct RejectingDecoder: ContentDecoder {
    /// The names of the codings.
    let names: [String]

    /// The error of the body.
    var error: URLError {
        let text = names.prefix(10).joined(separator: ", ").shortenedForDisplay
        return CurlError.error(
            .cannotDecodeContentData, "the body has the content coding '\(text)', which cannot be decoded")
    }

    func decodeBytes(
        _ bytes: UnsafeRawBufferPointer, limit: Int, append: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        if !bytes.isEmpty { throw error }
        return 0
    }

    func finish() throws {}
}
