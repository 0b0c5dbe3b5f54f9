import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An easy handle of libcurl, used for one exchange after another. It stays on its loop's thread.
final class CurlHandle {
    /// What runs on the handle.
    struct Exchange {
        let submission: CurlLoop.Submission
        let line: Admission<CurlTransfer>.Line
    }

    let easy: UnsafeMutableRawPointer
    /// Where the handle stands among those of its loop that are busy.
    var place = 0
    /// When a byte moved last, by the loop's clock.
    var lastActivity: UInt64 = 0
    private(set) var idleLimit: UInt64 = 0
    private(set) var exchange: Exchange?

    unowned let engine: CurlEngine
    /// What libcurl has to say about an error.
    let detail = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var fields: UnsafeMutablePointer<curl_slist>?
    private(set) var answer: IncomingAnswer
    /// The body that is read while it is sent.
    private var upload: BodyReader?
    /// How often a message went out.
    private(set) var sendings = 0
    private var mayBeSentTwice = true
    /// The TLS connection whose end is the end of the body.
    private var closing: TLSClosing.Connection?
    /// Why we ended the exchange ourselves.
    private var failure: (any Error)?
    /// The connection of the exchange; `nil` before there is one.
    private(set) var connection: Connections.Connection?
    /// Whether the connection that libcurl chose must not be used, so that the exchange begins again.
    private(set) var mustBeginAgain = false
    /// Whether the handle is not used again.
    private(set) var isWorn = false
    /// How many lines of a head there are so far.
    private var headLines = 0
    /// Whether a piece of a line has come, and not the whole of it.
    private var isWithinLine = false
    /// The kind of message that the handle is set to.
    private var kind = Kind.get

    private enum Kind { case get, head, content }

    /// - Throws: `WebServiceError.Code.curl` where libcurl has no memory, or does not know what the configuration asks for.
    init(_ engine: CurlEngine, _ configuration: CurlSession.Configuration, share: UnsafeMutableRawPointer) throws {
        guard let easy = curl_easy_init() else { throw WebServiceError(.curl, "libcurl has no memory for a handle") }
        self.easy = easy
        self.engine = engine
        answer = IncomingAnswer(maximumHeaderBytes: configuration.maximumHeaderBytes, zlib: engine.zlib)
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

    func check(_ result: CURLcode, _ what: StaticString) throws {
        guard result == CURLE_OK else {
            throw WebServiceError(.curl, "libcurl cannot be told \(what): \(String(cString: curl_easy_strerror(result)))")
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
        answer.begin(for: request)
        mayBeSentTwice = request.method.isIdempotent
        let limit = request.source.connectTimeout.flatMap(Duration.init(connectTimeout:)) ?? connectTimeout
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

    /// Gives the connection up: libcurl closes it with the end of the exchange, unless other exchanges use it.
    func forbidReuse() {
        ccurl_set_long(easy, CURLOPT_FORBID_REUSE, 1)
        isWorn = true
    }

    /// Makes ready for another try after ``mustBeginAgain``.
    func beginAgain() {
        mustBeginAgain = false
        detail[0] = 0
    }

    /// Takes the exchange off the handle, which is ready for the next then.
    func end() -> Exchange? {
        defer {
            exchange = nil
            failure = nil
            answer.clear()
            if let closing { engine.closing.forget(closing) }
            closing = nil
            upload = nil
            sendings = 0
            mustBeginAgain = false
            headLines = 0
            isWithinLine = false
            detail[0] = 0
        }
        leaveConnection()
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
        if let closing, !engine.closing.isClosed(closing), code == CURLE_OK { return .failure(TLSClosing.error) }
        if code == CURLE_OK { return Result { try answer.response() } }
        let detail = String(cString: detail)
        switch code {
        case CURLE_OPERATION_TIMEDOUT: return .failure(CurlError.error(.cannotConnectToHost, "there was no connection in time: \(detail)"))
        case _ where sendings > 0: return .failure(CurlError.responseError(code, detail))
        case _ where tunnelStatus >= 300: return .failure(CurlError.tunnelError(tunnelStatus))
        default: return .failure(CurlError.error(code, detail))
        }
    }

    // MARK: Called by libcurl

    /// A message is about to be sent: the first time, or again because a kept-alive connection was dead.
    func maySend(_ ends: Connections.Ends) -> Bool {
        leaveConnection()
        if let connection = engine.connection(ends) {
            if connection.isResting, connection.hasStrayBytes || engine.hasDecryptedBytes(self) {
                connection.giveUp()
                mustBeginAgain = true
                return false
            }
            connection.enter(self)
            self.connection = connection
        }
        sendings += 1
        if sendings == 1 { return true }
        // libcurl counts that over the life of a handle and gives up at the sixth time.
        isWorn = true
        if mayBeSentTwice { return true }
        failure = CurlError.error(.networkConnectionLost, "the connection was closed, and the request may have been received")
        return false
    }

    private func leaveConnection() {
        guard let connection else { return }
        if isHTTP2 { connection.isMultiplexed = true }
        connection.leave()
        self.connection = nil
    }

    /// Whether the lines of a head come to ``receiveBody(_:)`` first, before libcurl looks at them.
    let receivesHeadTwice = ccurl_joins_freed_headers() != 0

    func receiveHead(_ line: UnsafeRawBufferPointer) -> Bool {
        succeeds {
            if !answer.hasHead {
                try check(pieceOfHead: line)
                isWithinLine = false
                headLines = line.first == 0x0D || line.first == 0x0A ? 0 : headLines + 1
            }
            try answer.receive(line: line)
            if closing == nil, answer.endsWithConnection { closing = engine.closing.watch(easy) }
        }
    }

    /// A recipient may reject a response with white space between the status line and the first field (RFC 9112, section 2.2), which nothing can be joined to.
    /// libcurl before 8.1 joins it to a field that was freed.
    private func check(pieceOfHead piece: UnsafeRawBufferPointer) throws {
        defer { isWithinLine = true }
        if headLines == 1, !isWithinLine, piece.first == 0x20 || piece.first == 0x09 {
            throw CurlError.error(.badServerResponse, "the response has white space before its first header field")
        }
    }

    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if receivesHeadTwice, !answer.hasHead {
            guard headLines == 1 else { return true }
            return succeeds { try check(pieceOfHead: bytes) }
        }
        return succeeds {
            try answer.receive(bytes)
            report()
        }
    }

    /// - Returns: Whether the exchange goes on.
    private func succeeds(_ receive: () throws -> Void) -> Bool {
        lastActivity = engine.now
        do {
            try receive()
            return true
        } catch {
            failure = error
            return false
        }
    }

    func sendBody(_ room: UnsafeMutableRawBufferPointer) -> Int {
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

    func seek(_ offset: curl_off_t, _ origin: CInt) -> CInt {
        guard let upload, origin == SEEK_SET, offset >= 0, offset <= upload.source.count else { return CInt(CURL_SEEKFUNC_FAIL) }
        upload.seek(to: Int(offset))
        return CInt(CURL_SEEKFUNC_OK)
    }

    private func report() {
        guard let progress = exchange?.submission.transfer.progress else { return }
        progress(
            TransferProgress(
                bytesSent: Int64(upload?.offset ?? 0), bytesToSend: Int64(upload?.source.count ?? 0), bytesReceived: Int64(answer.bodyCount),
                bytesToReceive: answer.bodyLength
            ))
    }
}

extension Duration {
    /// The nearest possible duration of connecting; `nil` for what is not a number.
    init?(connectTimeout seconds: Double) {
        guard !seconds.isNaN else { return nil }
        self = .milliseconds(Int64(min(max(seconds, 0.001), 1e6) * 1000))
    }

    /// Whole milliseconds, as libcurl counts; what does not fit is moved to what does.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(min(max(seconds, 0), 1_000_000) * 1000 + max(attoseconds, 0) / 1_000_000_000_000_000)
    }
}
