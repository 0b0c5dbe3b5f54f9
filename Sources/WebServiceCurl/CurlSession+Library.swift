import CCurl
import WebServiceCore

extension CurlSession {
    /// The libcurl that the process has loaded.
    ///
    /// Its version can differ from the version that the program was built against.
    public struct Library: Sendable, Hashable, CustomStringConvertible {
        /// The version, such as `"8.16.0"`.
        public let version: String
        /// The TLS library and its version, such as `"OpenSSL/3.5.3"`; `nil` if libcurl does not
        /// support TLS.
        public let tls: String?
        /// Whether libcurl supports HTTP/2 (RFC 9113).
        public let supportsHTTP2: Bool
        /// Whether libcurl supports HTTP/3 (RFC 9114), which ``HTTPVersion/http3`` needs.
        public let supportsHTTP3: Bool
        /// The content codings that a session requests and decodes, as in `Accept-Encoding` (RFC
        /// 9110, section 12.5.3).
        public let contentCodings: [String]

        /// The version and the features, such as `libcurl 8.16.0, OpenSSL/3.5.3, HTTP/2, gzip`.
        public var description: String {
            let features = [tls, supportsHTTP2 ? "HTTP/2" : nil, supportsHTTP3 ? "HTTP/3" : nil].compactMap(\.self)
            return (["libcurl \(version)"] + features + contentCodings).joined(separator: ", ")
        }

        /// - Parameter information: The version information, of which only the fields of
        ///   `CURLVERSION_FIRST` are read. In an older libcurl, the structure has fewer fields than
        ///   the header declares, so it is never copied as a whole.
        init(_ information: UnsafePointer<curl_version_info_data>, _ codings: ContentCodings) {
            func supports(_ feature: Int32) -> Bool { information.pointee.features & feature != 0 }
            version = information.pointee.version.map { String(cString: $0) } ?? ""
            tls = information.pointee.ssl_version.map { String(cString: $0) }
            supportsHTTP2 = supports(CURL_VERSION_HTTP2)
            supportsHTTP3 = supports(CURL_VERSION_HTTP3)
            if codings.areLeftToLibrary {
                let own = [
                    ("gzip", CURL_VERSION_LIBZ), ("br", CURL_VERSION_BROTLI), ("zstd", CURL_VERSION_ZSTD),
                ]
                contentCodings = own.filter { supports($0.1) }.map(\.0)
            } else {
                contentCodings = codings.names
            }
        }

        /// Verifies that libcurl has the options that a session needs.
        ///
        /// - Parameter version: The number of the version, such as `0x075000` for 7.80.0.
        /// - Throws: `WebServiceError.Code.curl`.
        static func check(version: UInt32) throws(WebServiceError) {
            guard version >= 0x075000 else {
                throw WebServiceError(
                    .curl,
                    "libcurl \(version >> 16).\(version >> 8 & 0xFF) is older than 7.80; install a newer version")
            }
        }
    }

    /// The libcurl that the process has loaded.
    public static let library = Library(curl_version_info(CURLVERSION_FIRST), .system)
}
