import CCurl
import WebServiceCore

/// A handle that opens the connection of a channel.
extension CurlHandle {
    /// Configures the handle for opening a connection, but does not open the connection yet.
    ///
    /// libcurl leaves the connection to the caller while the handle belongs to a multi handle.
    func begin(_ driver: ChannelDriver, _ route: CurlRoute, connectTimeout: Duration, at now: UInt64) throws {
        let request = driver.channel.request
        self.driver = driver
        attempt = CurlAttempt(request, at: now)
        try checkDestination(of: request, route)
        let limit = request.source.options.connectTimeout ?? connectTimeout
        ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, limit.milliseconds))
        try check(ccurl_set_string(easy, CURLOPT_URL, request.url), "the URL")
        try check(ccurl_set_long(easy, CURLOPT_CONNECT_ONLY, 1), "a connection without a request")
        ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        if let proxy = route.proxy { try setProxy(proxy) }
        // Without a tunnel, the connection for an http URL would end at the proxy.
        ccurl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
        try setAddresses(request, route)
    }

    /// Returns the metrics of a channel's connection after its first use.
    func openingMetrics(for request: EncodedRequest) -> TransportMetrics {
        attempt.sendCount = 1
        attempt.security = security(request)
        var metrics = metrics()
        (metrics.bytesSent, metrics.bytesReceived) = (0, 0)
        return metrics
    }

    /// The event that TLS waits for after libcurl could not receive or send; `nil` if the TLS
    /// library does not report it.
    var awaitedEvent: Poller.Events? {
        switch ccurl_tls_awaits(easy, engine.tls) {
        case CInt(CURL_POLL_IN): .readable
        case CInt(CURL_POLL_OUT): .writable
        default: nil
        }
    }
}
