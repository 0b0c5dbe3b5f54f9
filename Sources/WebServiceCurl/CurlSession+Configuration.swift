import WebServiceCore

extension CurlSession {
    /// What a ``CurlSession`` is to use. Values outside what is possible are moved to the nearest that is.
    public struct Configuration: Sendable {
        /// How many threads with an event loop of their own; each has its own connections. One moves tens of thousands of requests in a second.
        public var loops = 1

        /// How many connections to one host and port, for each loop; requests beyond wait in the order in which they came. From 1.
        public var maximumConnectionsPerHost = 64

        /// How many connections in all, for each loop, and how many requests are under way at most; requests beyond wait. From 1.
        public var maximumConnections = 512

        /// How many connections are kept for later when nothing is sent on them, for each loop.
        public var maximumIdleConnections = 64

        /// How long a connection without a request is kept, in whole seconds.
        ///
        /// When a loop has had no request for that long, all its connections are closed, and libcurl drops the certificates
        /// that it has parsed for the loop. The next TLS connection parses them again, which takes about 17 ms of
        /// processor time with the certificates of the system; later connections do not.
        public var idleConnectionLifetime = Duration.seconds(60)

        /// How long connecting may take, name look-up and TLS included, where `Request.connectTimeout` does not say it; in milliseconds.
        public var connectTimeout = Duration.seconds(30)

        /// How long the header fields of an answer may be, interim answers included, in bytes.
        public var maximumHeaderBytes = 128 << 10

        /// Whether HTTP/2 is spoken with servers that offer it over TLS.
        public var allowsHTTP2 = true

        /// What secure connections ask for.
        public var tls = TLS()

        /// How servers are reached.
        public var proxy = Proxy.environment

        /// The `User-Agent` of requests that have none; `nil` for none.
        public var userAgent: String? = "WebService"

        /// Makes a configuration with the defaults.
        public init() {}
    }

    /// What secure connections ask for. A server that cannot prove who it is is never talked to.
    public struct TLS: Sendable {
        /// The path of a file with the certificates (PEM) that are trusted; `nil` for those of the system. A file that changes is read again after at most
        /// five minutes, also the one of the system.
        public var trustedCertificatesFile: String?

        /// The certificate that is shown to servers that ask for one.
        public var clientCertificate: ClientCertificate?

        /// The public keys that servers may have, on top of a certificate that is trusted: `sha256//` and the base64 of the SHA-256 of the key's
        /// `SubjectPublicKeyInfo` (RFC 7469, section 2.4). Empty for any.
        public var pinnedPublicKeys: [String] = []

        /// The oldest version that is spoken.
        public var minimumVersion = Version.tls12

        /// Makes the defaults.
        public init() {}

        /// A version of TLS.
        public enum Version: Sendable, Hashable {
            /// TLS 1.2 (RFC 5246).
            case tls12
            /// TLS 1.3 (RFC 8446).
            case tls13
        }

        /// A certificate with its key, in PEM files.
        public struct ClientCertificate: Sendable {
            /// The path of the certificate.
            public var certificateFile: String
            /// The path of the private key.
            public var keyFile: String
            /// What the key is encrypted with, if it is.
            public var keyPassword: String?

            /// Makes a client certificate.
            public init(certificateFile: String, keyFile: String, keyPassword: String? = nil) {
                self.certificateFile = certificateFile
                self.keyFile = keyFile
                self.keyPassword = keyPassword
            }
        }
    }

    /// How servers are reached.
    public enum Proxy: Sendable {
        /// As the environment says: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, by libcurl's rules.
        case environment
        /// Directly, whatever the environment says.
        case none
        /// By way of a proxy: `http://host:port`, also with `https`, `socks5` or `socks5h`, and with a user and a password.
        case url(String)
    }
}

// MARK: - Checks

extension CurlSession.Configuration {
    /// libcurl ends strings at NUL and copies a user agent and the host of a proxy into requests as they are.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    func check() throws(WebServiceError) {
        func check(_ text: String?, _ what: StaticString, allowed: (UInt8) -> Bool = { $0 != 0 }) throws(WebServiceError) {
            guard let text, !text.utf8.allSatisfy(allowed) else { return }
            throw WebServiceError(.curl, "\(what) has a control character")
        }
        try check(userAgent, "the user agent") { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        try check(tls.trustedCertificatesFile, "the path of the trusted certificates")
        try check(tls.clientCertificate?.certificateFile, "the path of the client certificate")
        try check(tls.clientCertificate?.keyFile, "the path of the client's key")
        try check(tls.clientCertificate?.keyPassword, "the password of the client's key")
        for key in tls.pinnedPublicKeys { try check(key, "a pinned key") }
        guard case .url(let url) = proxy else { return }
        try check(url, "the URL of the proxy") { $0 >= 0x20 && $0 != 0x7F }
        guard !url.isEmpty else { throw WebServiceError(.curl, "the URL of the proxy is empty; use 'none' to connect directly") }
    }
}

// MARK: - Descriptions without secrets

extension CurlSession.Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind, or scheme, host and port without user and password: safe to log.
    public var description: String {
        switch self {
        case .environment: return "environment"
        case .none: return "none"
        case .url(let url):
            // Bytes, because a character that combines with a delimiter is another `Character`.
            let bytes = Array(url.utf8)
            let scheme = bytes[..<(bytes.firstRange(of: "://".utf8)?.upperBound ?? 0)]
            let authority = bytes[(bytes.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? scheme.endIndex)...]
            if scheme.contains(UInt8(ascii: "@")) { return "url" }
            return String(decoding: scheme + authority.prefix { !"/?#".utf8.contains($0) }, as: UTF8.self)
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the same as ``description``, because the URL may hold a password.
    public var customMirror: Mirror { Mirror(self, children: ["proxy": description], displayStyle: .struct) }
}

extension CurlSession.TLS.ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The paths, without the password: safe to log.
    public var description: String { "certificate \(certificateFile), key \(keyFile)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the paths, and whether there is a password.
    public var customMirror: Mirror {
        let children: [(String?, Any)] = [("certificateFile", certificateFile), ("keyFile", keyFile), ("hasKeyPassword", keyPassword != nil)]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
