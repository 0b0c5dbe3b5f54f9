import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An easy handle of libcurl, reused for successive exchanges. Only the thread that has the
/// engine's turn uses it.
final class CurlHandle {
    /// The exchange executed by the handle.
    struct Exchange {
        let transfer: CurlTransfer
        let request: EncodedRequest
        let receiver: any BodyReceiver
        /// The queue of the host, where the exchange counts toward the connection limits; `nil` for
        /// a stream whose head has been received.
        var queue: Admission<CurlTransfer>.HostQueue?
        let route: CurlRoute
    }

    let easy: UnsafeMutableRawPointer
    unowned let engine: CurlEngine
    /// The index of the TLS rules that apply to all exchanges of the handle.
    let rulesIndex: Int
    /// The buffer in which libcurl stores the details of an error.
    let detail = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    /// Whether ``receiveBody(_:)`` also receives the header lines.
    ///
    /// The method then receives the lines before libcurl parses them.
    let receivesHeadAsBody = ccurl_joins_freed_headers() != 0
    /// Whether the handle must not be reused.
    var mustBeFreed = false

    var exchange: Exchange?
    /// The index of the handle in ``CurlEngine/busy``, while it executes an exchange.
    var place = 0
    /// The driver of the channel that uses the handle instead of an exchange.
    weak var driver: ChannelDriver?
    /// The progress of ``exchange``, replaced as a whole when the exchange ends.
    ///
    /// Exclusivity is not checked at run time, because only the thread that has the turn accesses
    /// this property, and no access calls code that accesses it again.
    @exclusivity(unchecked) var attempt = CurlAttempt()
    var head: IncomingHead

    // The data to which libcurl refers until the options are set again.

    /// The kind of request that the handle is configured for.
    var kind = Kind.get
    /// The header fields of the request; `nil` if they are ``CurlEngine/sessionFields``.
    var fields: UnsafeMutablePointer<curl_slist>?
    /// The configured addresses of the host.
    var resolution: UnsafeMutablePointer<curl_slist>?

    /// The size of libcurl's receive buffer, in bytes.
    private var bufferSize = 0

    enum Kind { case get, head, content }

    /// - Throws: `WebServiceError.Code.curl` if libcurl cannot allocate memory or does not support
    ///   the configuration.
    init(_ engine: CurlEngine, share: UnsafeMutableRawPointer, rules index: Int) throws {
        guard let easy = curl_easy_init() else {
            throw WebServiceError(.curl, "libcurl could not allocate memory for a handle")
        }
        self.easy = easy
        self.engine = engine
        rulesIndex = index
        head = IncomingHead(maximumBytes: engine.configuration.maximumHeaderBytes)
        detail[0] = 0
        do { try configure(engine.configuration, share) } catch {
            free()
            throw error
        }
    }

    /// Frees the handle and its memory. This method must be called last.
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

    /// Sets the size of the receive buffer. libcurl before 8.7 refuses a new size while the handle
    /// has a buffer. A handle keeps its buffer after an exchange that shared a connection.
    func setBufferSize(_ size: Int) {
        guard size != bufferSize, ccurl_set_long(easy, CURLOPT_BUFFERSIZE, size) == CURLE_OK else { return }
        bufferSize = size
    }

    /// Returns the handle that ``configure(_:_:)`` registered; `nil` if libcurl passes no pointer.
    static func from(_ context: UnsafeMutableRawPointer?) -> CurlHandle? {
        // The handle outlives the registration.
        context.map { Unmanaged<CurlHandle>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: One exchange

    /// Configures the handle for an exchange, but does not start the exchange yet.
    func begin(_ exchange: Exchange, connectTimeout: Duration, at now: UInt64) throws {
        let request = exchange.request
        self.exchange = exchange
        attempt = CurlAttempt(request, at: now)
        try checkDestination(of: request, exchange.route)
        let limit = request.source.options.connectTimeout ?? connectTimeout
        ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.milliseconds))
        try check(request.url.withCString { ccurl_set_string(easy, CURLOPT_URL, $0) }, "the URL")
        ccurl_set_long(easy, CURLOPT_STREAM_WEIGHT, request.source.options.priority.streamWeight)
        if let proxy = exchange.route.proxy { try setProxy(proxy) }
        let mayBeHTTP2 = setVersion(request, exchange.receiver)
        head.begin(for: request, exchange.receiver, mayBeHTTP2: mayBeHTTP2)
        try setAddresses(request, exchange.route)
        try setMethod(request)
        try setFields(request)
    }

    /// Prepares for another attempt after ``CurlAttempt/mustBeginAgain``.
    func beginAgain() {
        detail[0] = 0
        attempt.mustBeginAgain = false
        ccurl_set_long(easy, CURLOPT_FORBID_REUSE, attempt.isExclusive ? 1 : 0)
        guard attempt.isRefused, let request = exchange?.request else { return }
        attempt.startOver()
        ccurl_set_list(easy, CURLOPT_HTTPHEADER, engine.sessionFields.list)
        curl_slist_free_all(fields)
        fields = nil
        do { try setFields(request) } catch { attempt.failure = error }
    }

    /// Removes and returns the exchange. The handle is then ready for the next one.
    func takeExchange() -> Exchange? {
        leaveConnection()
        if let closing = attempt.closing { engine.tlsClosing.forget(closing) }
        attempt.upload?.cancel()
        if fields != nil {
            ccurl_set_list(easy, CURLOPT_HTTPHEADER, engine.sessionFields.list)
            curl_slist_free_all(fields)
            fields = nil
        }
        if kind == .content { ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, nil) }
        detail[0] = 0
        head.clear()
        attempt = CurlAttempt()
        return exchange.take()
    }

    /// The TLS rules that apply to all exchanges of the handle.
    var rules: TLSRules { engine.rules.all[rulesIndex] }

    /// Whether the request body is produced while it is sent.
    var isUploading: Bool { exchange?.request.stream != nil }

    /// Returns the trailer fields or the error of an exchange that libcurl has completed.
    func result(_ code: CURLcode) -> Result<Headers, any Error> {
        let outcome = outcome(code)
        guard case .failure(let error) = outcome else { return outcome }
        return .failure(markingUnsent(error))
    }

    /// Returns the error with `URLError.requestWasNotSent` if nothing of the request was sent.
    func markingUnsent(_ error: any Error) -> any Error {
        attempt.wasSent ? error : (error as? URLError)?.markingRequestNotSent() ?? error
    }

    private func outcome(_ code: CURLcode) -> Result<Headers, any Error> {
        if let failure = attempt.failure { return .failure(failure) }
        if attempt.unread?.isComplete == true { return .success(head.trailers) }
        guard code != CURLE_OK else {
            if let closing = attempt.closing, !engine.tlsClosing.isClosed(closing) {
                return .failure(TLSClosing.error)
            }
            guard head.isComplete else {
                return .failure(
                    CurlError.error(
                        .networkConnectionLost, "the connection was closed before the response head was complete"))
            }
            return .success(head.trailers)
        }
        if let refusal = attempt.destinationCheck.refusal { return .failure(refusal) }
        let detail = String(cString: detail)
        switch code {
        case CURLE_OPERATION_TIMEDOUT:
            return .failure(
                CurlError.error(
                    .cannotConnectToHost,
                    "the connection was not established within its connectTimeout; set a longer one if the server "
                        + "needs more time: \(detail)"))
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            // Before the tunnel is established, the key is that of the proxy, if the proxy has
            // pins.
            let proxyPins = tunnelStatus == 0 ? engine.configuration.proxyTLS?.pinnedPublicKeys ?? [] : []
            let pins = proxyPins.isEmpty ? rules.pins : proxyPins
            return .failure(
                CurlError.pinError(URLError.PinnedKeyMismatch(expected: pins, presented: presentedPin)))
        // libcurl 8.23 reports an unusable private key with a different code.
        case _
        where code == CURLE_SSL_CERTPROBLEM
            || attempt.sendCount == 0 && rules.identity != nil && CurlError.isOfPrivateKey(detail):
            return .failure(CurlError.identityError(rules.identity, detail))
        // libcurl rejects a response with too many codings, and decodes bodies if zlib is missing.
        case CURLE_BAD_CONTENT_ENCODING where !head.codings.isEmpty:
            return .failure(RejectingDecoder(names: head.codings).error)
        case _ where exceedsHeadLimit: return .failure(CurlError.headTooLarge)
        case _ where attempt.sendCount > 0: return .failure(CurlError.responseError(code, detail))
        case CURLE_PROXY where CurlError.isOfCredentials(socksError): return .failure(CurlError.socksError(socksError))
        case _ where tunnelStatus >= 300:
            return .failure(
                CurlError.tunnelError(tunnelStatus))
        // For a refused QUIC connection, libcurl reports the error of the datagram that was sent.
        case _ where CurlError.code(code) == .networkConnectionLost && !hasConnected:
            return .failure(CurlError.error(.cannotConnectToHost, detail))
        default: return .failure(CurlError.error(code, detail))
        }
    }
}

extension Duration {
    /// The duration in whole milliseconds, as used by libcurl, limited to 1,000,000 seconds.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(min(max(seconds, 0), 1_000_000) * 1000 + max(attoseconds, 0) / 1_000_000_000_000_000)
    }
}
