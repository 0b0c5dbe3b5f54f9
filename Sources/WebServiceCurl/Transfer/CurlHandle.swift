import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An easy handle of libcurl, reused for successive exchanges. Confined to the thread of its loop.
final class CurlHandle {
    /// The exchange executed by the handle.
    struct Exchange {
        let submission: CurlLoop.Submission
        /// The line in which the exchange counts toward the connection limits; `nil` for a stream
        /// whose head has been received.
        var line: Admission<CurlTransfer>.Line?

        var receiver: any BodyReceiver { submission.receiver }
    }

    let easy: UnsafeMutableRawPointer
    /// The index of the handle among the busy handles of its loop.
    var place = 0
    /// The instant at which a byte was last sent or received, according to the loop's clock.
    var lastActivity: UInt64 = 0
    private(set) var idleLimit: UInt64 = 0
    var exchange: Exchange?

    unowned let engine: CurlEngine
    /// The buffer in which libcurl stores the details of an error.
    let detail = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var fields: UnsafeMutablePointer<curl_slist>?
    /// The configured addresses of the host.
    private var resolution: UnsafeMutablePointer<curl_slist>?
    /// The connection to a Unix domain socket, used by this exchange alone. Its ends do not
    /// identify it.
    private var unixConnection: Connections.Connection?
    private(set) var head: IncomingHead
    /// A Boolean value that indicates whether the receiver has paused the exchange.
    private(set) var isPaused = false
    /// The request body that libcurl requests in pieces.
    private var upload: OutgoingBody?
    /// A Boolean value that indicates whether the exchange waits for bytes of the request body.
    private(set) var isAwaitingBody = false
    /// A Boolean value that indicates whether the request body ends before its last byte.
    private(set) var isBodyOver = false
    /// The number of missing bytes of the response; `nil` if it is unknown or the request body is
    /// not streamed.
    private var remaining: Int64?
    /// The wait for the server's permission to send the body; `nil` if it is not requested.
    private var expectation: Duration?
    /// The number of times the request was sent.
    private(set) var sendings = 0
    private var mayBeSentTwice = true
    /// The TLS connection whose end marks the end of the body.
    private var closing: TLSClosing.Connection?
    /// The error with which this handle aborted the exchange.
    private var failure: (any Error)?
    /// The connection of the exchange; `nil` before one is chosen.
    private(set) var connection: Connections.Connection?
    /// A Boolean value that indicates whether libcurl chose an unusable connection.
    ///
    /// The exchange then restarts on another connection.
    private(set) var mustBeginAgain = false
    /// A Boolean value that indicates whether the server rejected the field `Expect`.
    private var isRefused = false
    /// A Boolean value that indicates whether the handle must not be reused.
    private(set) var isWorn = false
    /// The number of header lines received so far.
    private var headLines = 0
    /// A Boolean value that indicates whether a line was received in part.
    private var isWithinLine = false
    /// The kind of request that the handle is configured for.
    private var kind = Kind.get

    private enum Kind { case get, head, content }

    /// - Throws: `WebServiceError.Code.curl` if libcurl has no memory or does not support the
    ///   configuration.
    init(_ engine: CurlEngine, _ configuration: CurlSession.Configuration, share: UnsafeMutableRawPointer) throws {
        guard let easy = curl_easy_init() else { throw WebServiceError(.curl, "libcurl could not allocate a handle") }
        self.easy = easy
        self.engine = engine
        head = IncomingHead(maximumBytes: configuration.maximumHeaderBytes)
        detail[0] = 0
        do { try configure(configuration, share) } catch {
            free()
            throw error
        }
    }

    /// Frees the handle and its memory. Must be the last call.
    func free() {
        curl_easy_cleanup(easy)
        curl_slist_free_all(fields)
        fields = nil
        curl_slist_free_all(resolution)
        resolution = nil
        detail.deallocate()
    }

    func check(_ result: CURLcode, _ what: StaticString) throws {
        guard result == CURLE_OK else {
            throw WebServiceError(
                .curl, "libcurl rejected \(what): \(String(cString: curl_easy_strerror(result)))")
        }
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> CurlHandle {
        // libcurl passes the pointer that `configure` registered; the handle outlives the
        // registration.
        Unmanaged<CurlHandle>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    }

    // MARK: One exchange

    /// Configures the handle for an exchange without starting it.
    func begin(_ exchange: Exchange, connectTimeout: Duration, at now: UInt64) throws {
        let request = exchange.submission.request
        self.exchange = exchange
        lastActivity = now
        idleLimit = UInt64(0).addingSaturated(max(request.timeout, .milliseconds(1)))
        mayBeSentTwice = request.method.isIdempotent
        let limit = request.source.options.connectTimeout ?? connectTimeout
        ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.milliseconds))
        try check(ccurl_set_string(easy, CURLOPT_URL, request.url), "the URL")
        expectation = request.source.options.expectsContinue
        let needsHTTP1 = exchange.receiver.mayPause || request.stream != nil || expectation != nil
        let isSecure = request.url.utf8.starts(with: "https:".utf8)
        let isHTTP2Known = engine.configuration.httpVersion == .priorKnowledge && !needsHTTP1
        head.begin(for: request, exchange.receiver, mayBeHTTP2: isSecure || isHTTP2Known)
        // With TLS, the handshake determines whether requests can share the connection, so waiting
        // for it is worthwhile. Without TLS, only the first response determines it.
        ccurl_set_long(easy, CURLOPT_PIPEWAIT, isSecure || isHTTP2Known ? 1 : 0)
        ccurl_set_long(easy, CURLOPT_STREAM_WEIGHT, request.source.options.priority.streamWeight)
        if isHTTP2Known {
            let version = isSecure ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
            ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(version))
        } else if needsHTTP1 {
            ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            isWorn = true  // its version and its pause are not reset
        }
        try setAddresses(request)
        try setMethod(request)
        try setFields(request)
    }

    /// Passes the configured addresses of the host to libcurl, which stores them only as long as
    /// its multi handle exists.
    private func setAddresses(_ request: EncodedRequest) throws {
        guard !engine.resolutions.isEmpty else { return }
        let entry = Origin(request.url).flatMap { engine.resolutions["\($0.host):\($0.port)"] }
        ccurl_set_list(easy, CURLOPT_RESOLVE, nil)
        curl_slist_free_all(resolution)
        resolution = entry.flatMap { curl_slist_append(nil, $0) }
        guard entry == nil || resolution != nil else {
            throw WebServiceError(.curl, "libcurl could not allocate the addresses of the host")
        }
        ccurl_set_list(easy, CURLOPT_RESOLVE, resolution)
    }

    private func setMethod(_ request: EncodedRequest) throws {
        let method = request.method
        let defaultMethod: Request.Method
        if let stream = request.stream {
            setUpload(OutgoingBody(stream) { [weak transfer = exchange?.submission.transfer] in transfer?.sendMore() })
            (kind, defaultMethod) = (.content, .POST)
        } else if let source = request.bodySource {
            setUpload(OutgoingBody(source))
            (kind, defaultMethod) = (.content, .POST)
        } else if let body = request.body ?? (method == .POST || method == .PUT || method == .PATCH ? Data() : nil) {
            // A small body is sent together with the header.
            if body.count <= 32 << 10 {
                ccurl_set_long(easy, CURLOPT_POST, 1)
                ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
                try check(
                    body.withUnsafeBytes {
                        ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress ?? UnsafeRawPointer(detail))
                    },
                    "the body")
            } else {
                setUpload(OutgoingBody(BodySource(body)))
            }
            (kind, defaultMethod) = (.content, .POST)
        } else if method == .HEAD {
            ccurl_set_long(easy, CURLOPT_NOBODY, 1)
            (kind, defaultMethod) = (.head, .HEAD)
        } else {
            if kind != .get { ccurl_set_long(easy, CURLOPT_HTTPGET, 1) }
            (kind, defaultMethod) = (.get, .GET)
        }
        try check(
            ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, method == defaultMethod ? nil : method.rawValue),
            "the method")
    }

    private func setUpload(_ body: OutgoingBody) {
        ccurl_set_long(easy, CURLOPT_POST, 1)
        ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count ?? -1))
        ccurl_set_pointer(easy, CURLOPT_POSTFIELDS, nil)
        upload = body
    }

    /// A Boolean value that indicates whether the request body is produced while it is sent.
    var isUploading: Bool { exchange?.submission.request.stream != nil }

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
            // Without this line, libcurl adds the content type of a form.
            if !hasContentType, request.contentType == nil { try addLine("Content-Type:") }
            if let upload, upload.count == nil { try addLine("Transfer-Encoding: chunked") }
            try addLine(expectation == nil ? "Expect:" : "Expect: 100-continue")
            if let expectation { ccurl_set_long(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, max(1, expectation.milliseconds)) }
        }
        ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
    }

    private func add(_ name: String, _ value: String) throws {
        // A semicolon denotes an empty value.
        try addLine(value.isEmpty ? name + ";" : name + ": " + value)
    }

    private func addLine(_ line: String) throws {
        guard let longer = curl_slist_append(fields, line) else {
            throw WebServiceError(.curl, "libcurl could not allocate the header fields")
        }
        fields = longer
    }

    /// Prevents the reuse of the connection.
    ///
    /// libcurl closes it at the end of the exchange, unless other exchanges use it.
    func forbidReuse() {
        ccurl_set_long(easy, CURLOPT_FORBID_REUSE, 1)
        isWorn = true
    }

    /// Prepares for another attempt after ``mustBeginAgain``.
    func beginAgain() {
        mustBeginAgain = false
        detail[0] = 0
        guard isRefused, let request = exchange?.submission.request else { return }
        isRefused = false
        failure = nil
        sendings = 0
        headLines = 0
        isWithinLine = false
        curl_slist_free_all(fields)
        fields = nil
        do { try setFields(request) } catch { failure = error }
    }

    /// Returns whether a status line rejects the field `Expect`, and the request can be sent
    /// without it.
    private func refusesExpectation(_ line: UnsafeRawBufferPointer) -> Bool {
        guard expectation != nil, line.dropFirst(8).starts(with: " 417".utf8), upload?.rewind() ?? true else {
            return false
        }
        expectation = nil
        (isRefused, mustBeginAgain) = (true, true)
        return true
    }

    /// Removes and returns the exchange. The handle is then ready for the next one.
    func end() -> Exchange? {
        defer {
            exchange = nil
            failure = nil
            head.clear()
            isPaused = false
            if let closing { engine.closing.forget(closing) }
            closing = nil
            upload?.cancel()
            upload = nil
            isAwaitingBody = false
            isBodyOver = false
            remaining = nil
            expectation = nil
            sendings = 0
            mustBeginAgain = false
            isRefused = false
            headLines = 0
            isWithinLine = false
            unixConnection = nil
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

    // MARK: Result

    /// Returns the trailer fields or the error of an exchange that libcurl has completed.
    func result(_ code: CURLcode) -> Result<Headers, any Error> {
        if let failure { return .failure(failure) }
        if let closing, !engine.closing.isClosed(closing), code == CURLE_OK { return .failure(TLSClosing.error) }
        if code == CURLE_OK { return .success(head.trailers) }
        let detail = String(cString: detail)
        switch code {
        case CURLE_OPERATION_TIMEDOUT:
            return .failure(
                CurlError.error(.cannotConnectToHost, "the connection was not established in time: \(detail)"))
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            let pins = engine.configuration.tls.pinnedPublicKeys
            return .failure(CurlError.pinError(PinnedKeyMismatch(expected: pins, presented: presentedPin)))
        case _ where sendings > 0: return .failure(CurlError.responseError(code, detail))
        case _ where tunnelStatus >= 300: return .failure(CurlError.tunnelError(tunnelStatus))
        default: return .failure(CurlError.error(code, detail))
        }
    }

    // MARK: Callbacks from libcurl

    /// Returns whether libcurl may send the request on the connection with these endpoints.
    ///
    /// Called again if libcurl resends the request because a reused connection was closed.
    func maySend(_ ends: Connections.Ends) -> Bool {
        leaveConnection()
        if let connection = unixConnection ?? engine.connection(ends) {
            if connection.isResting, connection.hasStrayBytes || engine.hasDecryptedBytes(self) {
                connection.giveUp()
                mustBeginAgain = true
                return false
            }
            connection.enter(self)
            self.connection = connection
        }
        sendings += 1
        isBodyOver = false
        if sendings == 1 { return true }
        // libcurl counts resends over the lifetime of a handle and fails at the sixth.
        isWorn = true
        if mayBeSentTwice { return true }
        failure = CurlError.error(
            .networkConnectionLost, "the connection was closed, and the server may have received the request")
        return false
    }

    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        let socket = engine.openSocket(address)
        if address?.pointee.family == AF_UNIX { unixConnection = engine.connection(socket) }
        return socket
    }

    private func leaveConnection() {
        guard let connection else { return }
        if isHTTP2 { connection.isMultiplexed = true }
        connection.leave()
        self.connection = nil
    }

    /// A Boolean value that indicates whether ``receiveBody(_:)`` also receives the header lines.
    ///
    /// It then receives them before libcurl parses them.
    let receivesHeadTwice = ccurl_joins_freed_headers() != 0

    func receiveHead(_ line: UnsafeRawBufferPointer) -> Bool {
        succeeds {
            guard !head.isComplete else { return try head.receive(line: line) }
            try check(pieceOfHead: line)
            isWithinLine = false
            headLines = line.first == 0x0D || line.first == 0x0A ? 0 : headLines + 1
            if headLines == 1 {
                if refusesExpectation(line) { throw URLError(.cancelled) }
                reportSmallBody()
            }
            try head.receive(line: line)
            guard head.isComplete else { return }
            // libcurl sends no further bytes of the body after such a response.
            if let status = head.status, status >= 300 { upload?.cancel() }
            remaining = isUploading ? head.bodyLength : nil
            endIfAnswered()
            if head.endsWithConnection { closing = engine.closing.watch(easy) }
            if exchange?.receiver.mayPause == true { engine.leaveLine(self) }
        }
    }

    /// Reports a body that libcurl sent together with the header.
    private func reportSmallBody() {
        guard upload == nil, let exchange, case let count = Int64(exchange.submission.request.bodyCount), count > 0
        else { return }
        exchange.receiver.didSend(count, of: count)
    }

    /// Rejects white space between the status line and the first field (RFC 9112, section 2.2).
    ///
    /// Such a line continues no field. libcurl before 8.1 joins it to a field that was freed.
    private func check(pieceOfHead piece: UnsafeRawBufferPointer) throws {
        defer { isWithinLine = true }
        if headLines == 1, !isWithinLine, piece.first == 0x20 || piece.first == 0x09 {
            throw CurlError.error(.badServerResponse, "the response has white space before its first header field")
        }
    }

    /// Passes bytes of the body to the receiver.
    ///
    /// - Returns: The number of bytes taken, or `CURL_WRITEFUNC_PAUSE` if the receiver pauses:
    ///   libcurl then stops reading from the socket until ``unpause()``.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        if receivesHeadTwice, !head.isComplete {
            guard headLines == 1 else { return bytes.count }
            return succeeds { try check(pieceOfHead: bytes) } ? bytes.count : 0
        }
        let isTaken = succeeds { isPaused = try exchange?.receiver.didReceive(bytes) == .pause }
        guard isTaken, !isPaused else { return isPaused ? Int(CURL_WRITEFUNC_PAUSE) : 0 }
        remaining? -= Int64(bytes.count)
        endIfAnswered()
        return bytes.count
    }

    /// Ends the exchange if the response is complete before a streamed request body. libcurl would
    /// continue to send it.
    private func endIfAnswered() {
        if remaining == 0, upload?.isComplete == false { engine.answered.append(self) }
    }

    /// Continues a paused exchange. libcurl calls ``receiveBody(_:)`` before this method returns.
    ///
    /// - Returns: The error that ends the exchange; `nil` if it continues.
    func unpause() -> (any Error)? {
        guard isPaused else { return nil }
        isPaused = false
        lastActivity = engine.now
        return proceed(isAwaitingBody ? CURLPAUSE_SEND : CURLPAUSE_CONT)
    }

    /// Continues an exchange that has waited for bytes of the request body.
    ///
    /// - Returns: The error that ends the exchange; `nil` if it continues.
    func sendMore() -> (any Error)? {
        guard isAwaitingBody else { return nil }
        isAwaitingBody = false
        lastActivity = engine.now
        return proceed(isPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    }

    /// Ends the request body before its last byte.
    ///
    /// - Returns: The error that ends the exchange; `nil` if it continues.
    func endBody() -> (any Error)? {
        isBodyOver = true
        isAwaitingBody = false
        forbidReuse()
        return proceed(CURLPAUSE_CONT)
    }

    /// - Parameter pauses: The directions that remain paused.
    private func proceed(_ pauses: CInt) -> (any Error)? {
        let code = curl_easy_pause(easy, pauses)
        return code == CURLE_OK ? failure : failure ?? CurlError.error(code, String(cString: detail))
    }

    /// - Returns: Whether the exchange continues.
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
        guard upload != nil, !isBodyOver else { return 0 }
        do {
            guard let count = try upload?.read(into: room) else {
                isAwaitingBody = true
                return Int(CURL_READFUNC_PAUSE)
            }
            if count > 0, let upload { exchange?.receiver.didSend(upload.offset, of: upload.count ?? 0) }
            return count
        } catch {
            failure = error
            if var error = error as? WebServiceError {
                error.request = exchange?.submission.request.source
                failure = error
            }
            return Int(CURL_READFUNC_ABORT)
        }
    }

    func seek(_ offset: curl_off_t, _ origin: CInt) -> CInt {
        guard upload != nil, origin == SEEK_SET, offset == 0 else { return CInt(CURL_SEEKFUNC_FAIL) }
        if upload?.rewind() == true { return CInt(CURL_SEEKFUNC_OK) }
        failure = exchange.map { WebServiceError.bodyNotReplayable($0.submission.request.source) }
        return CInt(CURL_SEEKFUNC_FAIL)
    }
}

extension Duration {
    /// The duration in whole milliseconds, as used by libcurl, limited to 1,000,000 seconds.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(min(max(seconds, 0), 1_000_000) * 1000 + max(attoseconds, 0) / 1_000_000_000_000_000)
    }
}
