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
        ccurl_set_resolver_callback(easy) { _, _, context in CurlHandle.from(context)?.mayConnect() == false ? 1 : 0 }
        ccurl_set_pointer(easy, CURLOPT_RESOLVER_START_DATA, context)
        ccurl_set_open_socket_callback(easy) { context, _, address in
            CurlHandle.from(context)?.openSocket(address) ?? CURL_SOCKET_BAD
        }
        ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context)
        ccurl_set_close_socket_callback(easy) { context, socket in
            CurlEngine.from(context)?.closeSocket(socket) ?? close(socket)
        }
        ccurl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, loop)
        ccurl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        if configuration.recordsRequestHeaders {
            ccurl_set_long(easy, CURLOPT_VERBOSE, 1)
            ccurl_set_debug_callback(easy) { _, type, bytes, count, context in
                guard type == CURLINFO_HEADER_OUT else { return 0 }
                CurlHandle.from(context)?.attempt.sentHead.add(UnsafeRawBufferPointer(start: bytes, count: count))
                return 0
            }
            ccurl_set_pointer(easy, CURLOPT_DEBUGDATA, context)
        }
        setBufferSize(configuration.receiveBufferSize(isLarge: false))
        ccurl_set_long(easy, CURLOPT_MAXAGE_CONN, max(1, configuration.idleConnectionLifetime.milliseconds / 1000))
        ccurl_set_list(easy, CURLOPT_HTTPHEADER, engine.sessionFields.list)
        // An empty string requests all codings that libcurl supports.
        if ContentCodings.system.areLeftToLibrary { ccurl_set_string(easy, CURLOPT_ACCEPT_ENCODING, "") }
        ccurl_set_long(easy, CURLOPT_HTTP_CONTENT_DECODING, ContentCodings.system.areLeftToLibrary ? 1 : 0)
        // libcurl does not send the fields above in the request for a tunnel (CONNECT).
        if engine.mayUseProxy, let userAgent = configuration.userAgent {
            try check(ccurl_set_string(easy, CURLOPT_USERAGENT, userAgent), "the user agent")
        }
        switch configuration.httpVersion {
        case .http1: ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .negotiated: break
        case .priorKnowledge:
            try check(
                ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)),
                "HTTP/2 without TLS")
        case .http3:
            guard configuration.unixSocketPath == nil else { break }
            try check(
                ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_3)),
                "HTTP/3; install a libcurl that supports it or set another httpVersion")
        }
        try limitRates(configuration)
        if let url = configuration.dnsURL {
            try check(ccurl_set_string(easy, CURLOPT_DOH_URL, url), "the option for dnsURL")
        }
        try setProxy(configuration.proxy)
        if let path = configuration.unixSocketPath {
            try check(ccurl_set_string(easy, CURLOPT_UNIX_SOCKET_PATH, path), "the Unix domain socket")
            ccurl_set_string(easy, CURLOPT_PROXY, "")
        }
        try configure(rules, .server)
        try configureProxy(configuration)
    }

    private func limitRates(_ configuration: CurlSession.Configuration) throws {
        // libcurl adds up the bytes of all exchanges of a handle, so the handle is not reused.
        // libcurl waits after each buffer when it sends, and after up to a hundred buffers when it
        // receives.
        mustBeFreed =
            configuration.maximumBytesPerSecondReceived != nil || configuration.maximumBytesPerSecondSent != nil
        if let rate = configuration.receiveRate {
            try check(
                ccurl_set_size(easy, CURLOPT_MAX_RECV_SPEED_LARGE, curl_off_t(rate)),
                "the option for maximumBytesPerSecondReceived")
        }
        if let rate = configuration.maximumBytesPerSecondSent.map({ max($0, CurlSession.Configuration.minimumRate) }) {
            try check(
                ccurl_set_size(easy, CURLOPT_MAX_SEND_SPEED_LARGE, curl_off_t(rate)),
                "the option for maximumBytesPerSecondSent")
            ccurl_set_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, max(16 << 10, min(rate / 4, 64 << 10)))
        }
    }
}

extension CurlSession.Configuration {
    /// The lowest rate, at which no byte is delayed by more than about seven seconds.
    fileprivate static let minimumRate = 16 << 10

    /// Returns the size of libcurl's receive buffer, in bytes.
    ///
    /// libcurl before 8.7 allocates the buffer for each exchange, so a large buffer is used only
    /// for large bodies. The large buffer is slightly smaller than 64 KiB, because glibc
    /// consolidates its free memory whenever a block of 64 KiB, including the block's header, is
    /// freed.
    func receiveBufferSize(isLarge: Bool) -> Int {
        max(1 << 10, min(receiveRate.map { $0 / 100 } ?? .max, isLarge ? (64 << 10) - 64 : Self.smallBufferSize))
    }

    /// The size in bytes of the receive buffer for small bodies. A longer body is considered large.
    static let smallBufferSize = 16 << 10

    fileprivate var receiveRate: Int? { maximumBytesPerSecondReceived.map { max($0, Self.minimumRate) } }

    /// The size of a buffer for the longest header that libcurl 7.88 to 8.0 stores over HTTP/2, and
    /// for all bytes that these versions receive together with the end of the header.
    ///
    /// These versions can deliver the rest of a longer header without the end of the response.
    static var wholeHeadBufferSize: Int { (128 + 32) << 10 }
}
