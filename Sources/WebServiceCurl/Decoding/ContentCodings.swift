import CCurl
import WebServiceCore

/// A content coding (RFC 9110, section 8.4.1) that a session can decode.
enum ContentCoding: String, CaseIterable {
    case gzip
    case brotli = "br"
    case zstd
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

    /// A Boolean value that indicates whether libcurl decodes the bodies, because zlib is missing.
    var areLeftToLibrary: Bool { gzip == nil }

    /// The value of the field `Accept-Encoding`.
    ///
    /// An empty string if libcurl decodes the bodies. It then requests the codings that it
    /// supports.
    var acceptedNames: String {
        let names = [gzip != nil, brotli != nil, zstd != nil]
        return areLeftToLibrary
            ? "" : zip(ContentCoding.allCases, names).filter(\.1).map(\.0.rawValue).joined(separator: ", ")
    }

    /// Returns a decoder of one body; `nil` if the library is missing or has no memory.
    func decoder(of coding: ContentCoding) -> (any ContentDecoder)? {
        guard !areLeftToLibrary else { return nil }
        return switch coding {
        case .gzip: gzip.flatMap { StreamDecoder<GzipStream>($0) }
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
