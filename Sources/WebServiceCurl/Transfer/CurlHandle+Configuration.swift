import CCurl
import Foundation
import WebServiceCore

extension CurlHandle {
    /// Sets the options common to all exchanges.
    ///
    /// All features of libcurl beyond the transfer of bytes stay disabled.
    func configure(_ configuration: CurlSession.Configuration, _ share: UnsafeMutableRawPointer) throws {
        let context = Unmanaged.passUnretained(self).toOpaque()
        let loop = Unmanaged.passUnretained(engine).toOpaque()
        try check(ccurl_restrict_protocols(easy), "the restriction to http and https")
        ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        _ = ccurl_set_quick_exit(easy)
        if receivesHeadAsBody { ccurl_set_long(easy, CURLOPT_HEADER, 1) }
        ccurl_set_pointer(easy, CURLOPT_PRIVATE, context)
        ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, detail)
        ccurl_set_pointer(easy, CURLOPT_SHARE, share)
        ccurl_set_bytes_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return CurlHandle.from(context)?.receiveHead(line) == true ? size * count : 0
        }
        ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context)
        ccurl_set_bytes_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            CurlHandle.from(context)?.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context)
        ccurl_set_bytes_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
            CurlHandle.from(context)?.sendBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
                ?? Int(CURL_READFUNC_ABORT)
        }
        ccurl_set_pointer(easy, CURLOPT_READDATA, context)
        ccurl_set_seek_callback(easy) { context, offset, origin in
            CurlHandle.from(context)?.seek(offset, origin) ?? CInt(CURL_SEEKFUNC_FAIL)
        }
        ccurl_set_pointer(easy, CURLOPT_SEEKDATA, context)
        ccurl_set_prereq_callback(easy) { context, remote, _, remotePort, localPort in
            let ends = Connections.Ends(
                localPort: localPort, remotePort: remotePort, remote: remote.map { String(cString: $0) } ?? "")
            return CurlHandle.from(context)?.maySend(ends) == true
                ? CInt(CURL_PREREQFUNC_OK) : CInt(CURL_PREREQFUNC_ABORT)
        }
        ccurl_set_pointer(easy, CURLOPT_PREREQDATA, context)
        ccurl_set_open_socket_callback(easy) { context, _, address in
            CurlHandle.from(context)?.openSocket(address) ?? CURL_SOCKET_BAD
        }
        ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context)
        ccurl_set_close_socket_callback(easy) { context, socket in
            CurlEngine.from(context)?.closeSocket(socket) ?? close(socket)
        }
        ccurl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, loop)
        ccurl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        ccurl_set_long(easy, CURLOPT_BUFFERSIZE, 64 << 10)
        ccurl_set_long(easy, CURLOPT_MAXAGE_CONN, max(1, configuration.idleConnectionLifetime.milliseconds / 1000))
        ccurl_set_string(easy, CURLOPT_ACCEPT_ENCODING, ContentCodings.system.acceptedNames)
        ccurl_set_long(easy, CURLOPT_HTTP_CONTENT_DECODING, ContentCodings.system.areLeftToLibrary ? 1 : 0)
        if let userAgent = configuration.userAgent {
            try check(ccurl_set_string(easy, CURLOPT_USERAGENT, userAgent), "the user agent")
        }
        switch configuration.httpVersion {
        case .http1: ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .negotiated: break
        case .priorKnowledge:
            try check(
                ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)),
                "HTTP/2 without TLS")
        }
        try limitRates(configuration)
        switch configuration.proxy {
        case .environment: break
        case .none: ccurl_set_string(easy, CURLOPT_PROXY, "")
        case .url(let url):
            try check(ccurl_set_string(easy, CURLOPT_PROXY, url), "the proxy")
            // Otherwise, libcurl reads `no_proxy` of the environment.
            try check(ccurl_set_string(easy, CURLOPT_NOPROXY, ""), "the proxy for all hosts")
        }
        if let path = configuration.unixSocketPath {
            try check(ccurl_set_string(easy, CURLOPT_UNIX_SOCKET_PATH, path), "the Unix domain socket")
            ccurl_set_string(easy, CURLOPT_PROXY, "")
        }
        try configure(configuration.tls, .server)
        try configureProxy(configuration)
    }

    /// The lowest rate, so that no byte is delayed by more than about seven seconds.
    private static let minimumRate = 16 << 10

    private func limitRates(_ configuration: CurlSession.Configuration) throws {
        // libcurl counts the bytes of a handle's exchanges together. It waits after each buffer
        // when it sends, and after up to a hundred buffers when it receives.
        mustBeFreed =
            configuration.maximumBytesPerSecondReceived != nil || configuration.maximumBytesPerSecondSent != nil
        if let rate = configuration.maximumBytesPerSecondReceived.map({ max($0, Self.minimumRate) }) {
            try check(ccurl_set_size(easy, CURLOPT_MAX_RECV_SPEED_LARGE, curl_off_t(rate)), "the rate of reception")
            ccurl_set_long(easy, CURLOPT_BUFFERSIZE, max(1 << 10, min(rate / 100, 64 << 10)))
        }
        if let rate = configuration.maximumBytesPerSecondSent.map({ max($0, Self.minimumRate) }) {
            try check(ccurl_set_size(easy, CURLOPT_MAX_SEND_SPEED_LARGE, curl_off_t(rate)), "the rate of sending")
            ccurl_set_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, max(16 << 10, min(rate / 4, 64 << 10)))
        }
    }

    /// The options of libcurl for the TLS connection to servers or to a proxy.
    private struct TLSOptions {
        let version, authorities, folder, certificate, key, password, pins: CURLoption

        static let server = TLSOptions(
            version: CURLOPT_SSLVERSION, authorities: CURLOPT_CAINFO, folder: CURLOPT_CAPATH,
            certificate: CURLOPT_SSLCERT, key: CURLOPT_SSLKEY, password: CURLOPT_KEYPASSWD,
            pins: CURLOPT_PINNEDPUBLICKEY)
        static let proxy = TLSOptions(
            version: CURLOPT_PROXY_SSLVERSION, authorities: CURLOPT_PROXY_CAINFO, folder: CURLOPT_PROXY_CAPATH,
            certificate: CURLOPT_PROXY_SSLCERT, key: CURLOPT_PROXY_SSLKEY, password: CURLOPT_PROXY_KEYPASSWD,
            pins: CURLOPT_PROXY_PINNEDPUBLICKEY)
    }

    /// Configures the TLS connection to a proxy, unless there is none or libcurl has no such
    /// connections.
    private func configureProxy(_ configuration: CurlSession.Configuration) throws {
        switch configuration.proxy {
        case .none: return
        case .url where configuration.proxy.scheme != "https": return
        case .url where ccurl_supports_https_proxies() == 0:
            throw WebServiceError(.curl, "this build of libcurl does not support https proxies")
        case .environment where ccurl_supports_https_proxies() == 0: return
        case .environment, .url: break
        }
        var tls = configuration.proxyTLS ?? configuration.tls
        if configuration.proxyTLS == nil { (tls.pinnedPublicKeys, tls.clientCertificate) = ([], nil) }
        try configure(tls, .proxy)
    }

    private func configure(_ tls: CurlSession.TLS, _ options: TLSOptions) throws {
        let oldest = tls.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        try check(ccurl_set_long(easy, options.version, Int(oldest)), "the minimum TLS version")
        if let file = tls.trustedCertificatesFile {
            try check(ccurl_set_string(easy, options.authorities, file), "the file of trusted certificates")
            try check(ccurl_set_string(easy, options.folder, nil), "an empty certificate directory")
        } else if !TrustStore.system.needsDirectory {
            ccurl_set_string(easy, options.folder, nil)
        }
        ccurl_set_certificate_lifetime(easy, 300)
        if let certificate = tls.clientCertificate {
            try check(
                ccurl_set_string(easy, options.certificate, certificate.certificateFile), "the client certificate")
            try check(ccurl_set_string(easy, options.key, certificate.keyFile), "the private key")
            if let password = certificate.keyPassword {
                try check(ccurl_set_string(easy, options.password, password), "the password of the private key")
            }
        }
        if !tls.pinnedPublicKeys.isEmpty {
            ccurl_set_long(easy, CURLOPT_CERTINFO, 1)  // for the error; some TLS libraries do not support it
            try check(
                ccurl_set_string(easy, options.pins, tls.pinnedPublicKeys.joined(separator: ";")),
                "the pinned public keys")
        }
    }
}
