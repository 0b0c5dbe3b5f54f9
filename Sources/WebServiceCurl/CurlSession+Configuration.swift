// libcurl's header also declares socket constants.
import CCurl
import Foundation
import WebServiceCore

extension CurlSession {
    /// The configuration of a ``CurlSession``. Values out of range are clamped.
    public struct Configuration: Sendable {
        /// The number of threads, each with one event loop and its own connections.
        ///
        /// One loop handles tens of thousands of requests per second. The value is clamped to 1
        /// through 64. Defaults to 1.
        public var loops = 1

        /// The maximum number of connections per host and port, for each loop.
        ///
        /// Further requests wait in first-in, first-out order. A stream or a download stops
        /// counting when its head has arrived. The minimum is 1. Defaults to 64.
        public var maximumConnectionsPerHost = 64

        /// The maximum number of connections and of requests in flight, for each loop.
        ///
        /// Further requests wait. A stream or a download stops counting when its head has arrived.
        /// The minimum is 1. Defaults to 512.
        public var maximumConnections = 512

        /// The maximum number of idle connections, for each loop. Defaults to 64.
        public var maximumIdleConnections = 64

        /// The maximum number of WebSocket connections, for each loop.
        ///
        /// These connections count toward no other limit. Further connections wait in first-in,
        /// first-out order. The minimum is 1. Defaults to 512.
        public var maximumWebSocketConnections = 512

        /// The lifetime of an idle connection, rounded down to whole seconds. Defaults to 60
        /// seconds.
        ///
        /// After a loop has had no request for this duration, it closes all its connections, and
        /// libcurl discards the certificates parsed for the loop. The next TLS connection parses
        /// them again, which takes about 17 ms of processor time with the system certificates.
        /// Further connections reuse the result.
        public var idleConnectionLifetime = Duration.seconds(60)

        /// The timeout for establishing a connection, including name lookup and TLS handshake.
        ///
        /// This timeout applies to requests without `Request.Options.connectTimeout`. The value is
        /// rounded down to whole milliseconds. Defaults to 30 seconds.
        public var connectTimeout = Duration.seconds(30)

        /// The maximum size of the response header fields in bytes, including those of interim
        /// responses and the trailer fields.
        ///
        /// Defaults to 128 KiB.
        public var maximumHeaderBytes = 128 << 10

        /// The selection of the HTTP version. Defaults to ``HTTPVersion/negotiated``.
        public var httpVersion = HTTPVersion.negotiated

        /// Whether streams and downloads may use HTTP/2 and HTTP/3, and so share a connection with
        /// other requests.
        ///
        /// Over HTTP/2, libcurl can then retain 10 MiB or more for each stream that is not read, in
        /// addition to the buffer of the stream. This option has no effect with libcurl versions
        /// before 8.17, which lose or delay such responses. Defaults to `false`: streams use
        /// HTTP/1.1, each with its own connection.
        public var multiplexesStreams = false

        /// The path of the Unix domain socket to which all requests are sent, instead of the host
        /// and port of their URLs.
        ///
        /// The URL still determines the `Host` field and whether TLS is used. The proxy
        /// configuration has no effect. Each request uses a separate connection, because libcurl
        /// does not report which of several connections to one path it has selected. The path may
        /// have up to 107 bytes (103 on Darwin). Defaults to `nil`.
        public var unixSocketPath: String?

        /// The IP addresses of hosts, by host and port, such as `"api.example.com:443"`.
        ///
        /// The addresses replace the name lookup, and are tried in turn. The URL, the `Host` field
        /// and the verification of the certificate do not change. The option has no effect on
        /// requests that are sent to a proxy that looks the name up. Defaults to an empty
        /// dictionary.
        public var addresses: [String: [String]] = [:]

        /// A closure that looks up the IP addresses of a host before each request, instead of the
        /// system.
        ///
        /// The closure receives the host in lower case and the port, and returns the addresses to
        /// try in turn, or `nil` to let the system look the host up. An error that it throws fails
        /// the request. The URL, the `Host` field and the verification of the certificate do not
        /// change.
        ///
        /// The closure is called concurrently, on threads of the package, which it may block. It is
        /// not called for IP addresses, for hosts in ``addresses``, for a Unix domain socket, or if
        /// the configuration specifies a proxy. An existing connection to the host is reused
        /// regardless of the result. The deadline of the request limits the wait. Defaults to
        /// `nil`.
        public var resolver: (@Sendable (_ host: String, _ port: Int) async throws -> [String]?)?

        /// The URL of a server that looks up names over HTTPS (RFC 8484), such as
        /// `https://dns.example.com/dns-query`.
        ///
        /// The system looks up the host name in this URL. The certificate of the server is verified
        /// with the PEM file of ``TLS/trustedCertificatesFile``, or with the certificates of the
        /// system. The session does not use this server for hosts in ``addresses`` or for names
        /// that a proxy looks up. If libcurl does not support this option, the session cannot be
        /// created. Defaults to `nil`.
        public var dnsURL: String?

        /// The addresses to which the session may connect, for programs that send requests to URLs
        /// of their users. Defaults to ``Destinations/anywhere``.
        public var destinations = Destinations.anywhere

        /// The maximum average rate at which each request receives bytes, in bytes per second.
        ///
        /// Values below 16,384 count as 16,384. libcurl receives up to 100 KiB, or the bytes of one
        /// second if that is more, in one burst, and then waits. A smaller body is therefore not
        /// delayed. The wait counts toward the idle timeout. A download can have an additional
        /// limit; both limits then apply. Defaults to `nil`: no limit.
        public var maximumBytesPerSecondReceived: Int?

        /// The maximum average rate at which each request sends its body, in bytes per second.
        ///
        /// Values below 16,384 count as 16,384. A body of at most 32 KiB is sent together with
        /// the header. Defaults to `nil`: no limit.
        public var maximumBytesPerSecondSent: Int?

        /// The TLS configuration for all servers without an entry in ``hostTLS``.
        public var tls = TLS()

        /// The TLS configurations for specific hosts, by host name. Each of them replaces ``tls``
        /// as a whole.
        ///
        /// `"api.example.com"` matches one host, on every port. `"*.example.com"` matches every
        /// subdomain of `example.com` at any depth, but not `example.com` itself. An exact name
        /// takes precedence over a pattern, and a longer pattern over a shorter one. A name may
        /// also be an IP address; an IPv6 address is in brackets. A redirected request uses the
        /// configuration of its new host. The configuration applies to the connection through the
        /// tunnel of a proxy, but not to the connection to the proxy. Defaults to an empty
        /// dictionary.
        public var hostTLS: [String: TLS] = [:]

        /// Whether the metrics of a request contain the certificates of its server
        /// (`TransportMetrics.certificates`).
        ///
        /// libcurl then converts the certificates to text for each new TLS connection, which takes
        /// processor time. Defaults to `false`.
        public var recordsCertificates = false

        /// Whether the metrics of a request contain its header fields as they were sent
        /// (`TransportMetrics.requestHeaders`), for example for the inspector.
        ///
        /// libcurl then also formats debug messages for each request, which takes processor time.
        /// Defaults to `false`.
        public var recordsRequestHeaders = false

        /// The proxy configuration. Defaults to ``Proxy/environment``.
        public var proxy = Proxy.environment

        /// The TLS configuration of the connection to an `https` proxy.
        ///
        /// Defaults to `nil`, which applies the trusted certificates and the minimum version of
        /// ``tls``, but not its pins or its client certificate, because they are intended for the
        /// servers.
        public var proxyTLS: TLS?

        /// The `User-Agent` of requests that do not specify one; `nil` adds none. Defaults to the
        /// program and the system, as in `Headers.program`.
        public var userAgent: String? = Headers.program[.userAgent]

        /// The `Accept-Language` of requests that do not specify one; `nil` adds none. Defaults to
        /// the languages of the user, if they are known, as in `Headers.program`.
        public var acceptLanguage: String? = Headers.program[.acceptLanguage]

        /// Creates a configuration with the default values.
        public init() {}
    }

    /// The selection of the HTTP version.
    public enum HTTPVersion: Sendable, Hashable {
        /// HTTP/1.1 for all requests.
        case http1
        /// HTTP/2 if the server selects it in the TLS handshake (RFC 9113, section 3.2), otherwise
        /// HTTP/1.1.
        case negotiated
        /// Over TLS, the same as ``negotiated``. For `http` URLs, HTTP/2 without negotiation (RFC
        /// 9113, section 3.3).
        ///
        /// All `http` servers must support HTTP/2. Versions of libcurl before 8.0 cannot reuse such
        /// a connection, so each request uses a separate one. Exchanges that may pause still use
        /// HTTP/1.1. These are requests with a streamed body, requests with `expectsContinue` and,
        /// unless ``Configuration/multiplexesStreams`` is `true`, streams and downloads.
        case priorKnowledge
        /// HTTP/3 (RFC 9114) for `https` URLs, if a connection over UDP can be established.
        ///
        /// If it cannot, and for the exchanges that use HTTP/1.1 with ``priorKnowledge``, this case
        /// is the same as ``negotiated``. A connection over TCP is attempted as soon as the one
        /// over UDP fails or is slow, and the first connection that is established is used.
        /// Requests that are sent to a proxy or to a Unix domain socket do not use HTTP/3. If
        /// libcurl does not support HTTP/3 (``Library/supportsHTTP3``), the session cannot be
        /// created.
        case http3
    }
}

// MARK: - Checks

extension CurlSession.Configuration {
    /// Validates the strings that are passed to libcurl.
    ///
    /// libcurl ends strings at NUL and copies the user agent into requests unchanged.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    func check() throws(WebServiceError) {
        func check(
            _ text: String?, _ what: StaticString, allowed: (UInt8) -> Bool = { $0 != 0 }
        ) throws(WebServiceError) {
            guard let text, !text.utf8.allSatisfy(allowed) else { return }
            throw WebServiceError(.curl, "\(what) contains a control character; remove it")
        }
        try check(userAgent, "the user agent") { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        try check(acceptLanguage, "the value of acceptLanguage") { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        for tls in [tls, proxyTLS].compactMap(\.self) + hostTLS.values {
            try check(tls.trustedCertificatesFile, "the path of the trusted certificates")
            try check(tls.clientCertificate?.certificate.path, "the path of the client certificate")
            try check(tls.clientCertificate?.key?.path, "the path of the private key")
            try check(tls.clientCertificate?.password, "the password of the private key")
            for key in tls.pinnedPublicKeys { try check(key, "a pinned public key") }
        }
        try check(unixSocketPath, "the path of the Unix domain socket")
        if let unixSocketPath, !(1...Self.maximumSocketPath).contains(unixSocketPath.utf8.count) {
            throw WebServiceError(
                .curl,
                "the path of the Unix domain socket is empty or longer than \(Self.maximumSocketPath) bytes; "
                    + "use another path")
        }
        if let dnsURL {
            guard Origin(dnsURL)?.scheme == "https", dnsURL.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw WebServiceError(
                    .curl, "dnsURL must be an https URL without user information, such as https://host/dns-query")
            }
        }
        _ = try resolutions()
        _ = try DestinationRules(self)
        try proxy.check()
    }
}

extension CurlSession.Configuration {
    private static let maximumSocketPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Returns the entries of ``addresses`` in the syntax of libcurl, by host and port.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    func resolutions() throws(WebServiceError) -> [String: String] {
        var entries: [String: String] = [:]
        for (key, addresses) in addresses {
            guard let origin = Origin("https://" + key), case let name = "\(origin.host):\(origin.port)",
                name == key.asciiLowercased(), origin.host.first != "["
            else {
                throw WebServiceError(
                    .curl, "a key of 'addresses' is not a host name and a port; use the form 'api.example.com:443'")
            }
            entries[name] = try Self.resolution(of: name, addresses, "the value in 'addresses'")
        }
        return entries
    }

    /// Returns the addresses of a host and port in the syntax of libcurl.
    ///
    /// - Throws: `WebServiceError.Code.curl`.
    static func resolution(
        of name: String, _ addresses: [String], _ source: String
    ) throws(WebServiceError) -> String {
        guard !addresses.isEmpty, addresses.allSatisfy({ isAddress($0) }) else {
            throw WebServiceError(.curl, "\(source) for \(name) must be one or more IP addresses")
        }
        return name + ":" + addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ",")
    }

    static func isAddress(_ text: String) -> Bool {
        withUnsafeTemporaryAllocation(of: in6_addr.self, capacity: 1) { address in
            !text.utf8.contains(0)
                && (inet_pton(AF_INET, text, address.baseAddress) == 1
                    || inet_pton(AF_INET6, text, address.baseAddress) == 1)
        }
    }
}
