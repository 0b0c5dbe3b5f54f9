import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An easy handle of libcurl and what it receives, used for one exchange after another. It stays on its loop's thread.
final class CurlHandle {
    /// What runs on the handle.
    struct Exchange {
        let submission: CurlLoop.Submission
        let line: Admission<CurlLoop.Submission>.Line
    }

    let easy: UnsafeMutableRawPointer
    /// Where the handle stands among those of its loop that are busy.
    var place = 0
    /// When a byte moved last, by the loop's clock.
    private(set) var lastActivity: UInt64 = 0
    private(set) var idleLimit: UInt64 = 0
    private(set) var exchange: Exchange?

    private unowned let engine: CurlEngine
    private let maximumHeaderBytes: Int
    private let detail = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var head: [UInt8] = []
    private var headBytes = 0
    private var answer: ResponseHead?
    private var framing = Framing()
    private var inflater: Inflater?
    private var body = BodyBuffer()
    private var maximum = Int.max
    /// The body that is read while it is sent.
    private var upload: BodyReader?
    private var sendings = 0
    private var mayBeSentTwice = true
    /// Why we ended the exchange ourselves.
    private var failure: (any Error)?
    /// The kind of message that the handle is set to.
    private var kind = Kind.get

    private enum Kind { case get, head, content }

    /// - Throws: `WebServiceError.Code.curl` where libcurl has no memory, or does not know what the configuration asks for.
    init(_ engine: CurlEngine, _ configuration: CurlSession.Configuration, share: UnsafeMutableRawPointer) throws {
        guard let easy = curl_easy_init() else { throw WebServiceError(.curl, "libcurl has no memory for a handle") }
        self.easy = easy
        self.engine = engine
        maximumHeaderBytes = configuration.maximumHeaderBytes
        detail[0] = 0
        do { try configure(configuration, share) } catch {
            free()
            throw error
        }
    }

    /// The handle and its memory; the last call.
    func free() {
        curl_easy_cleanup(easy)
        curl_slist_free_all(fields)
        fields = nil
        detail.deallocate()
    }

    // MARK: Setting up

    private func check(_ result: CURLcode, _ what: StaticString) throws {
        guard result == CURLE_OK else {
            throw WebServiceError(.curl, "libcurl cannot be told \(what): \(String(cString: curl_easy_strerror(result)))")
        }
    }

    /// What is the same for every exchange. Whatever libcurl would do by itself beyond moving bytes stays off.
    private func configure(_ configuration: CurlSession.Configuration, _ share: UnsafeMutableRawPointer) throws {
        let context = Unmanaged.passUnretained(self).toOpaque()
        let loop = Unmanaged.passUnretained(engine).toOpaque()
        try check(ccurl_restrict_protocols(easy), "to speak only http and https")
        ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        ccurl_set_pointer(easy, CURLOPT_PRIVATE, context)
        ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, detail)
        ccurl_set_pointer(easy, CURLOPT_SHARE, share)
        ccurl_set_bytes_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            CurlHandle.from(context).receiveHead(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }
        ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context)
        ccurl_set_bytes_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            CurlHandle.from(context).receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }
        ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context)
        ccurl_set_bytes_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
            CurlHandle.from(context).sendBody(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
        }
        ccurl_set_pointer(easy, CURLOPT_READDATA, context)
        ccurl_set_seek_callback(easy) { context, offset, origin in CurlHandle.from(context).seek(offset, origin) }
        ccurl_set_pointer(easy, CURLOPT_SEEKDATA, context)
        ccurl_set_prereq_callback(easy) { context, _, _, _, _ in
            CurlHandle.from(context).maySend() ? CInt(CURL_PREREQFUNC_OK) : CInt(CURL_PREREQFUNC_ABORT)
        }
        ccurl_set_pointer(easy, CURLOPT_PREREQDATA, context)
        ccurl_set_open_socket_callback(easy) { context, _, address in CurlEngine.from(context).openSocket(address) }
        ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, loop)
        ccurl_set_close_socket_callback(easy) { context, socket in CurlEngine.from(context).closeSocket(socket) }
        ccurl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, loop)
        ccurl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        ccurl_set_long(easy, CURLOPT_BUFFERSIZE, 64 << 10)
        ccurl_set_long(easy, CURLOPT_MAXAGE_CONN, max(1, configuration.idleConnectionLifetime.milliseconds / 1000))
        ccurl_set_string(easy, CURLOPT_ACCEPT_ENCODING, engine.zlib == nil ? "" : "gzip")
        ccurl_set_long(easy, CURLOPT_HTTP_CONTENT_DECODING, engine.zlib == nil ? 1 : 0)
        if let userAgent = configuration.userAgent { try check(ccurl_set_string(easy, CURLOPT_USERAGENT, userAgent), "the user agent") }
        if !configuration.allowsHTTP2 { ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)) }
        switch configuration.proxy {
        case .environment: break
        case .none: ccurl_set_string(easy, CURLOPT_PROXY, "")
        case .url(let url): try check(ccurl_set_string(easy, CURLOPT_PROXY, url), "the proxy")
        }
        try configure(configuration.tls)
    }

    private func configure(_ tls: CurlSession.TLS) throws {
        let oldest = tls.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        try check(ccurl_set_long(easy, CURLOPT_SSLVERSION, Int(oldest)), "the oldest version of TLS")
        if let file = tls.trustedCertificatesFile {
            try check(ccurl_set_string(easy, CURLOPT_CAINFO, file), "the file of trusted certificates")
            try check(ccurl_set_string(easy, CURLOPT_CAPATH, nil), "to trust nothing else")
        }
        if let certificate = tls.clientCertificate {
            try check(ccurl_set_string(easy, CURLOPT_SSLCERT, certificate.certificateFile), "the client certificate")
            try check(ccurl_set_string(easy, CURLOPT_SSLKEY, certificate.keyFile), "the client's key")
            if let password = certificate.keyPassword { try check(ccurl_set_string(easy, CURLOPT_KEYPASSWD, password), "the key's password") }
        }
        if !tls.pinnedPublicKeys.isEmpty {
            try check(ccurl_set_string(easy, CURLOPT_PINNEDPUBLICKEY, tls.pinnedPublicKeys.joined(separator: ";")), "the pinned keys")
        }
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> CurlHandle {
        // libcurl hands back what `configure` gave it; the handle outlives its registration.
        Unmanaged<CurlHandle>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    // MARK: One exchange

    /// Sets the handle up for an exchange. It is not sent yet.
    func begin(_ exchange: Exchange, connectTimeout: Duration, at now: UInt64) throws {
        let request = exchange.submission.request
        self.exchange = exchange
        lastActivity = now
        idleLimit = UInt64(min(max(request.timeout, 0.001), 1e9) * 1e9)
        maximum = request.maximumResponseBytes ?? .max
        mayBeSentTwice = request.method.isIdempotent
        let limit = request.source.connectTimeout.map { Duration.milliseconds(Int64(min(max($0, 0.001), 1e6) * 1000)) } ?? connectTimeout
        ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.milliseconds))
        try check(ccurl_set_string(easy, CURLOPT_URL, request.url), "the URL")
        // A TLS handshake says whether requests can share the connection, which is worth waiting for; without TLS only the first answer would say it.
        ccurl_set_long(easy, CURLOPT_PIPEWAIT, request.url.utf8.starts(with: "https:".utf8) ? 1 : 0)
        try setMethod(request)
        try setFields(request)
    }

    private func setMethod(_ request: EncodedRequest) throws {
        let method = request.method
        let defaultMethod: Request.Method
        if let source = request.bodySource {
            setUpload(source)
            (kind, defaultMethod) = (.content, .POST)
        } else if let body = request.body ?? (method == .POST || method == .PUT || method == .PATCH ? Data() : nil) {
            // A small body leaves in one piece with its head.
            if body.count <= 32 << 10, exchange?.submission.transfer.progress == nil {
                ccurl_set_long(easy, CURLOPT_POST, 1)
                ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
                try check(
                    body.withUnsafeBytes { ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress ?? UnsafeRawPointer(detail)) },
                    "the body")
            } else {
                setUpload(BodySource(body))
            }
            (kind, defaultMethod) = (.content, .POST)
        } else if method == .HEAD {
            ccurl_set_long(easy, CURLOPT_NOBODY, 1)
            (kind, defaultMethod) = (.head, .HEAD)
        } else {
            if kind != .get { ccurl_set_long(easy, CURLOPT_HTTPGET, 1) }
            (kind, defaultMethod) = (.get, .GET)
        }
        try check(ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, method == defaultMethod ? nil : method.rawValue), "the method")
    }

    private func setUpload(_ source: BodySource) {
        ccurl_set_long(easy, CURLOPT_POST, 1)
        ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(source.count))
        ccurl_set_pointer(easy, CURLOPT_POSTFIELDS, nil)
        upload = BodyReader(source)
    }

    private func setFields(_ request: EncodedRequest) throws {
        var cookies: String?
        var hasContentType = false
        for field in request.headers {
            if field.name.equalsIgnoringASCIICase("Cookie") {
                cookies = cookies.map { $0 + "; " + field.value } ?? field.value
                continue
            }
            if field.name.equalsIgnoringASCIICase("Content-Type") { hasContentType = true }
            try add(field.name, field.value)
        }
        if let cookies { try add("Cookie", cookies) }
        if let contentType = request.contentType, !hasContentType { try add("Content-Type", contentType) }
        if kind == .content {
            if !hasContentType, request.contentType == nil { try addLine("Content-Type:") }  // or libcurl calls it a form
            try addLine("Expect:")
        }
        ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
    }

    private func add(_ name: String, _ value: String) throws {
        try addLine(value.isEmpty ? name + ";" : name + ": " + value)  // a semicolon is how libcurl is told of an empty value
    }

    private func addLine(_ line: String) throws {
        guard let longer = curl_slist_append(fields, line) else { throw WebServiceError(.curl, "libcurl has no memory for the header fields") }
        fields = longer
    }

    /// Whether the message went out more than once. libcurl counts that over the life of a handle and gives up at the sixth time, so the handle is not used
    /// again.
    var wasSentAgain: Bool { sendings > 1 }

    /// Takes the exchange off the handle, which is ready for the next then.
    func end() -> Exchange? {
        defer {
            exchange = nil
            failure = nil
            answer = nil
            headBytes = 0
            head.removeAll(keepingCapacity: head.capacity <= 4 << 10)
            framing = Framing()
            inflater = nil
            body.clear()
            upload = nil
            sendings = 0
            detail[0] = 0
        }
        if fields != nil {
            ccurl_set_list(easy, CURLOPT_HTTPHEADER, nil)
            curl_slist_free_all(fields)
            fields = nil
        }
        if kind == .content { ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, nil) }
        return exchange
    }

    // MARK: What came of it

    /// The answer or the error, once libcurl is done.
    func result(_ code: CURLcode) -> Result<Response, any Error> {
        if let failure { return .failure(failure) }
        if code == CURLE_OK {
            guard let answer else { return .failure(CurlError.error(.badServerResponse, "there was no answer")) }
            if let inflater, inflater.hasBegun, !inflater.isComplete {
                return .failure(CurlError.error(.cannotDecodeContentData, "the body in gzip is cut short"))
            }
            return .success(Response(data: body.take(), head: answer))
        }
        let detail = String(cString: detail)
        switch code {
        case CURLE_OPERATION_TIMEDOUT: return .failure(CurlError.error(.cannotConnectToHost, "there was no connection in time: \(detail)"))
        // A connection was there, so it is not the request that libcurl does not support but the answer.
        case CURLE_UNSUPPORTED_PROTOCOL where sendings > 0: return .failure(CurlError.error(.badServerResponse, detail))
        default: return .failure(CurlError.error(code, detail))
        }
    }

    /// What libcurl measured.
    func metrics() -> TransportMetrics {
        let isReused = long(CURLINFO_NUM_CONNECTS) == 0
        let lookup = microseconds(CURLINFO_NAMELOOKUP_TIME_T)
        let connected = microseconds(CURLINFO_CONNECT_TIME_T)
        let secured = microseconds(CURLINFO_APPCONNECT_TIME_T)
        let first = microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        var metrics = TransportMetrics(
            firstByte: first > 0 ? first : nil, total: microseconds(CURLINFO_TOTAL_TIME_T),
            bytesSent: Int64(long(CURLINFO_REQUEST_SIZE)) + size(CURLINFO_SIZE_UPLOAD_T),
            bytesReceived: Int64(long(CURLINFO_HEADER_SIZE)) + size(CURLINFO_SIZE_DOWNLOAD_T), isConnectionReused: isReused && sendings > 0
        )
        if !isReused {
            metrics.nameLookup = lookup > 0 ? lookup : nil
            metrics.connect = connected > 0 ? max(0, connected - lookup) : nil
            metrics.secureConnect = secured > 0 ? max(0, secured - connected) : nil
        }
        if answer != nil { metrics.networkProtocol = Self.name(ofVersion: long(CURLINFO_HTTP_VERSION)) }
        return metrics
    }

    var isHTTP2: Bool { long(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0) }

    private static func name(ofVersion version: Int) -> String? {
        switch version {
        case Int(CURL_HTTP_VERSION_1_0): "HTTP/1.0"
        case Int(CURL_HTTP_VERSION_1_1): "HTTP/1.1"
        case Int(CURL_HTTP_VERSION_2_0): "HTTP/2"
        case Int(CURL_HTTP_VERSION_3): "HTTP/3"
        default: nil
        }
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        ccurl_get_long(easy, info, &value)
        return value
    }

    private func size(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        ccurl_get_size(easy, info, &value)
        return Int64(value)
    }

    private func microseconds(_ info: CURLINFO) -> Double { Double(size(info)) / 1e6 }

    // MARK: Called by libcurl

    /// A message is about to be sent: the first time, or again because a kept-alive connection was dead.
    private func maySend() -> Bool {
        sendings += 1
        if sendings == 1 || mayBeSentTwice { return true }
        failure = CurlError.error(.networkConnectionLost, "the connection was closed, and the request may have been received")
        return false
    }

    /// One line of a head, with the bytes that end it; or of the trailer behind a chunked body.
    private func receiveHead(_ line: UnsafeRawBufferPointer) -> Bool {
        lastActivity = engine.now
        headBytes += line.count
        guard headBytes <= maximumHeaderBytes else {
            return fail(WebServiceError(.responseTooLarge, "the header fields of the response are longer than \(maximumHeaderBytes) bytes"))
        }
        if answer != nil { return true }
        head.append(contentsOf: line)
        if line.first == 0x0D || line.first == 0x0A { return finishHead() }
        framing.observe(line)
        return true
    }

    private func finishHead() -> Bool {
        guard let request = exchange?.submission.request, let received = ResponseHead(bytes: head, url: request.url), received.status != 101 else {
            return fail(CurlError.error(.badServerResponse, "the answer's first line is not that of an HTTP response"))
        }
        framing.finish()
        if let violation = framing.violation { return fail(CurlError.error(.badServerResponse, "the answer cannot be believed: \(violation)")) }
        if received.status < 200 {
            head.removeAll(keepingCapacity: true)
            framing = Framing()
            return true
        }
        answer = received
        if framing.isGzip { inflater = engine.zlib.flatMap(Inflater.init) }
        if kind != .head, received.status != 304, let length = framing.contentLength, !framing.isEncoded {
            guard length <= maximum else { return fail(WebServiceError.tooLarge(maximum, request.source, nil)) }
            body.reserve(length)
        }
        return true
    }

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        lastActivity = engine.now
        guard let inflater else { return take(bytes) }
        switch inflater.inflate(bytes, take: take) {
        case .fine: return true
        case .refused: return false
        case .broken: return fail(CurlError.error(.cannotDecodeContentData, "the body is not the gzip that it claims to be"))
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= maximum - body.count else { return fail(WebServiceError.tooLarge(maximum, exchange?.submission.request.source, nil)) }
        guard body.append(bytes) else { return fail(CurlError.error(.dataLengthExceedsMaximum, "there is no memory for the body")) }
        report()
        return true
    }

    private func sendBody(_ room: UnsafeMutableRawBufferPointer) -> Int {
        lastActivity = engine.now
        do throws(WebServiceError) {
            let count = try upload?.read(into: room) ?? 0
            if count > 0 { report() }
            return count
        } catch {
            var error = error
            error.request = exchange?.submission.request.source
            failure = error
            return Int(CURL_READFUNC_ABORT)
        }
    }

    private func seek(_ offset: curl_off_t, _ origin: CInt) -> CInt {
        guard let upload, origin == SEEK_SET, offset >= 0, offset <= upload.source.count else { return CInt(CURL_SEEKFUNC_FAIL) }
        upload.seek(to: Int(offset))
        return CInt(CURL_SEEKFUNC_OK)
    }

    private func report() {
        guard let progress = exchange?.submission.transfer.progress else { return }
        progress(
            TransferProgress(
                bytesSent: Int64(upload?.offset ?? 0), bytesToSend: Int64(upload?.source.count ?? 0), bytesReceived: Int64(body.count),
                bytesToReceive: framing.isEncoded ? nil : framing.contentLength
            ))
    }

    /// Ends the exchange with an error of ours.
    private func fail(_ error: any Error) -> Bool {
        failure = error
        return false
    }
}

extension Duration {
    /// Whole milliseconds, as libcurl counts; what does not fit is moved to what does.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(min(max(seconds, 0), 1_000_000) * 1000 + max(attoseconds, 0) / 1_000_000_000_000_000)
    }
}
