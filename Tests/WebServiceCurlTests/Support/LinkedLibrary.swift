import CCurl
import Foundation
import Testing

@testable import WebServiceCurl

/// The libcurl of this process, which `scripts/test-libcurl` replaces.
enum LinkedLibrary {
    /// Whether libcurl uses OpenSSL 3.0 or newer.
    static let hasOpenSSL3 = CurlSession.library.tls?.hasPrefix("OpenSSL/3") == true

    private static let number = curl_version_info(CURLVERSION_FIRST).pointee.version_num

    static let joinsFoldedLines = number >= 0x08_1200
    /// Whether libcurl rejects two `Location` fields that differ.
    static let rejectsLocations = number >= 0x08_1100
    /// Whether libcurl rejects more than 5,000 header fields.
    static let limitsFields = number >= 0x08_0E00
    static let limitsHead = number >= 0x07_5801
    /// Whether a connection that the program uses is closed with its handle. Older versions close
    /// it when they open another one.
    static let closesConnectionsWithHandle = ccurl_closes_with_handle() != 0

    /// Whether the functions of libcurl's OpenSSL can be called.
    ///
    /// Without them, TLS connections are not reused.
    static let exportsOpenSSL = ccurl_load_tls().SSL_has_pending != nil
}

extension TrustStore {
    /// Whether libcurl's default file exists.
    var isPresent: Bool { file.map { FileManager.default.fileExists(atPath: $0) } == true }

    static let absence = Comment("libcurl's default file of certificates does not exist: \(system.file ?? "none")")
}
