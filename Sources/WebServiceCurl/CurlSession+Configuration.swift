import WebServiceCore

extension CurlSession {
    /// The configuration of a ``CurlSession``. Values out of range are clamped.
    public struct Configuration: Sendable {
        /// The number of threads, each with one event loop and its own connections.
        ///
        /// One loop handles tens of thousands of requests per second. Clamped to 1 through 64.
        /// Defaults to 1.
        public var loops = 1

        /// The maximum number of connections per host and port, for each loop.
        ///
        /// Further requests wait in first-in, first-out order. At least 1. Defaults to 64.
        public var maximumConnectionsPerHost = 64

        /// The maximum number of connections and of requests in flight, for each loop.
        ///
        /// Further requests wait. At least 1. Defaults to 512.
        public var maximumConnections = 512

        /// The maximum number of idle connections, for each loop. Defaults to 64.
        public var maximumIdleConnections = 64

        /// The lifetime of an idle connection, in whole seconds. Defaults to 60 seconds.
        ///
        /// After a loop has had no request for this duration, it closes all its connections, and
        /// libcurl discards the certificates parsed for the loop. The next TLS connection parses
        /// them again, which takes about 17 ms of processor time with the system certificates.
        /// Further connections reuse the result.
        public var idleConnectionLifetime = Duration.seconds(60)

        /// The timeout for establishing a connection, including name lookup and TLS handshake.
        ///
        /// Applies to requests without `Request.Options.connectTimeout`. In whole milliseconds.
        /// Defaults to 30 seconds.
        public var connectTimeout = Duration.seconds(30)

        /// The maximum size of the response header fields, interim responses included, in bytes.
        ///
        /// Defaults to 128 KiB.
        public var maximumHeaderBytes = 128 << 10

        /// A Boolean value that indicates whether HTTP/2 is negotiated over TLS.
        ///
        /// Defaults to `true`.
        public var allowsHTTP2 = true

        /// The TLS configuration.
        public var tls = TLS()

        /// The proxy configuration. Defaults to ``Proxy/environment``.
        public var proxy = Proxy.environment

        /// The `User-Agent` of requests without one; `nil` sends none. Defaults to `"WebService"`.
        public var userAgent: String? = "WebService"

        /// Creates a configuration with the default values.
        public init() {}
    }

    /// The TLS configuration of a session. Server certificates are always verified.
    public struct TLS: Sendable {
        /// The path of a PEM file with the trusted certificates; `nil` trusts those of the system.
        ///
        /// A changed file, the system's included, is read again after at most five minutes.
        /// Defaults to `nil`.
        public var trustedCertificatesFile: String?

        /// The certificate to present to servers that request one. Defaults to `nil`.
        public var clientCertificate: ClientCertificate?

        /// The pins of the accepted public keys, required in addition to a trusted certificate.
        ///
        /// A pin is `sha256//` followed by the base64 of the SHA-256 of the key's
        /// `SubjectPublicKeyInfo` (RFC 7469, section 2.4). An empty array accepts every key.
        /// Defaults to an empty array.
        public var pinnedPublicKeys: [String] = []

        /// The minimum TLS version. Defaults to ``Version/tls12``.
        public var minimumVersion = Version.tls12

        /// Creates a configuration with the default values.
        public init() {}

        /// A version of TLS.
        public enum Version: Sendable, Hashable {
            /// TLS 1.2 (RFC 5246).
            case tls12
            /// TLS 1.3 (RFC 8446).
            case tls13
        }

        /// A client certificate and its private key, in PEM files.
        public struct ClientCertificate: Sendable {
            /// The path of the certificate file.
            public var certificateFile: String
            /// The path of the private key file.
            public var keyFile: String
            /// The password of the private key; `nil` when the key is not encrypted.
            public var keyPassword: String?

            /// Creates a client certificate.
            public init(certificateFile: String, keyFile: String, keyPassword: String? = nil) {
                self.certificateFile = certificateFile
                self.keyFile = keyFile
                self.keyPassword = keyPassword
            }
        }
    }

    /// The proxy configuration of a session.
    public enum Proxy: Sendable {
        /// The proxy specified by the environment.
        ///
        /// libcurl evaluates `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`.
        case environment
        /// A direct connection, regardless of the environment.
        case none
        /// The proxy with this URL, such as `http://host:port`.
        ///
        /// The scheme is `http`, `https`, `socks5` or `socks5h`. The URL may contain a user and a
        /// password.
        case url(String)
    }
}

// MARK: - Checks

extension CurlSession.Configuration {
    /// Validates the strings that are passed to libcurl.
    ///
    /// libcurl ends strings at NUL and copies the user agent and the proxy host into requests
    /// unchanged.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    func check() throws(WebServiceError) {
        func check(
            _ text: String?, _ what: StaticString, allowed: (UInt8) -> Bool = { $0 != 0 }
        ) throws(WebServiceError) {
            guard let text, !text.utf8.allSatisfy(allowed) else { return }
            throw WebServiceError(.curl, "\(what) contains a control character")
        }
        try check(userAgent, "the user agent") { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        try check(tls.trustedCertificatesFile, "the path of the trusted certificates")
        try check(tls.clientCertificate?.certificateFile, "the path of the client certificate")
        try check(tls.clientCertificate?.keyFile, "the path of the private key")
        try check(tls.clientCertificate?.keyPassword, "the password of the private key")
        for key in tls.pinnedPublicKeys { try check(key, "a pinned public key") }
        guard case .url(let url) = proxy else { return }
        try check(url, "the proxy URL") { $0 >= 0x20 && $0 != 0x7F }
        guard !url.isEmpty else {
            throw WebServiceError(.curl, "the proxy URL is empty; use 'none' to connect directly")
        }
    }
}

// MARK: - Descriptions without secrets

extension CurlSession.Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind of proxy, or scheme, host and port without user and password; safe to log.
    public var description: String {
        switch self {
        case .environment: return "environment"
        case .none: return "none"
        case .url(let url):
            // UTF-8 bytes, because a delimiter and a combining character form another `Character`.
            let bytes = Array(url.utf8)
            let scheme = bytes[..<(bytes.firstRange(of: "://".utf8)?.upperBound ?? 0)]
            let authority = bytes[(bytes.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? scheme.endIndex)...]
            if scheme.contains(UInt8(ascii: "@")) { return "url" }
            return String(decoding: scheme + authority.prefix { !"/?#".utf8.contains($0) }, as: UTF8.self)
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The mirror of ``description``, because the URL may contain a password.
    public var customMirror: Mirror { Mirror(self, children: ["proxy": description], displayStyle: .struct) }
}

extension CurlSession.TLS.ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The paths, without the password; safe to log.
    public var description: String { "certificate \(certificateFile), key \(keyFile)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The paths, and whether a password is set.
    public var customMirror: Mirror {
        let children: [(String?, Any)] =
            [("certificateFile", certificateFile), ("keyFile", keyFile), ("hasKeyPassword", keyPassword != nil)]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
