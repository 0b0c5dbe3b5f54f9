import CCurl
import Foundation
import WebServiceCore

/// The options for the request of one exchange.
extension CurlHandle {
    /// Selects the HTTP version, and determines whether the request uses a separate connection or
    /// waits for one that it can share.
    ///
    /// - Returns: Whether the response may be an HTTP/2 or HTTP/3 response.
    func setVersion(_ request: EncodedRequest, _ receiver: any BodyReceiver) -> Bool {
        let canPause = engine.configuration.multiplexesStreams && ccurl_pauses_http2() != 0
        let needsHTTP1 =
            receiver.mayPause && !canPause || request.stream != nil || attempt.expectation != nil
        let isSecure = request.url.utf8.starts(with: "https:".utf8)
        let isHTTP2Known = engine.configuration.httpVersion == .priorKnowledge && !needsHTTP1
        if isHTTP2Known {
            let version = isSecure ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
            ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(version))
        } else if needsHTTP1 {
            ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        }
        if needsHTTP1 || receiver.mayPause { mustBeFreed = true }  // libcurl resets neither the version nor a pause
        // A reused connection to a Unix domain socket could not be identified.
        let isReusable = isSecure || !isHTTP2Known || ccurl_reuses_known_http2() != 0
        // Unsolicited bytes that the TLS library has already decrypted would be interpreted as the
        // response.
        let isUnchecked = isSecure && !engine.canDetectDecryptedBytes
        attempt.isExclusive =
            engine.configuration.unixSocketPath != nil || !isReusable || isUnchecked
            || !engine.sharesConnections(of: exchange?.route.proxy)
        let mayUseHTTP2 = needsHTTP1 && isSecure && ccurl_ignores_required_http1() != 0
        ccurl_set_long(easy, CURLOPT_FRESH_CONNECT, attempt.isExclusive || mayUseHTTP2 ? 1 : 0)
        ccurl_set_long(easy, CURLOPT_FORBID_REUSE, attempt.isExclusive ? 1 : 0)
        // With TLS, the handshake determines whether requests can share the connection, so it is
        // worthwhile to wait for the handshake. Without TLS, only the first response determines
        // this.
        ccurl_set_long(easy, CURLOPT_PIPEWAIT, (isSecure || isHTTP2Known) && !attempt.isExclusive ? 1 : 0)
        let mayBeHTTP2 = isSecure && engine.configuration.httpVersion != .http1 || isHTTP2Known
        let needsWholeHead = ccurl_has_first_http2_filter() != 0 && mayBeHTTP2 && !needsHTTP1
        let isLarge = receiver.mayPause || exchange?.queue?.expectsLargeBody == true
        setBufferSize(
            needsWholeHead
                ? CurlSession.Configuration.wholeHeadBufferSize
                : engine.configuration.receiveBufferSize(isLarge: isLarge))
        return mayBeHTTP2
    }

    /// Passes the configured addresses of the host to libcurl. libcurl stores them only while its
    /// multi handle exists.
    func setAddresses(_ request: EncodedRequest, _ route: CurlRoute?) throws {
        let hasResolver = engine.configuration.resolver != nil
        guard !engine.resolutions.isEmpty || hasResolver else { return }
        let name = Origin(request.url).map { "\($0.host):\($0.port)" }
        // If there are no addresses, this entry removes those of an earlier request.
        let entry =
            name.flatMap { engine.resolutions[$0] } ?? route?.resolution
            ?? (hasResolver ? name.map { "-" + $0 } : nil)
        ccurl_set_list(easy, CURLOPT_RESOLVE, nil)
        curl_slist_free_all(resolution)
        resolution = entry.flatMap { curl_slist_append(nil, $0) }
        guard entry == nil || resolution != nil else {
            throw WebServiceError(.curl, "libcurl could not allocate memory for the host's addresses")
        }
        ccurl_set_list(easy, CURLOPT_RESOLVE, resolution)
    }

    func setMethod(_ request: EncodedRequest) throws {
        let method = request.method
        let defaultMethod: Request.Method
        if let stream = request.stream {
            // Since libcurl 8.7, a body of known length cannot end before its last byte without an
            // error, which would replace the response. See `endBodies()`.
            setUpload(
                OutgoingBody(stream) { [weak transfer = exchange?.transfer] in
                    transfer?.sendMore()
                }, length: stream.length == 0 ? 0 : nil)
            (kind, defaultMethod) = (.content, .POST)
        } else if let source = request.bodySource {
            setUpload(OutgoingBody(source), length: Int64(source.count))
            (kind, defaultMethod) = (.content, .POST)
        } else if let body = request.body
            ?? (method == .POST || method == .PUT || method == .PATCH ? Data() : nil)
        {
            // A small body is sent together with the header.
            if body.count <= 32 << 10 {
                ccurl_set_long(easy, CURLOPT_POST, 1)
                ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
                try check(
                    body.withUnsafeBytes {
                        ccurl_set_pointer(
                            easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress ?? UnsafeRawPointer(detail))
                    },
                    "the body")
            } else {
                setUpload(OutgoingBody(BodySource(body)), length: Int64(body.count))
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
            ccurl_set_string(
                easy, CURLOPT_CUSTOMREQUEST, method == defaultMethod ? nil : method.rawValue),
            "the method")
    }

    /// Sets a body that libcurl reads in pieces.
    ///
    /// - Parameter length: The number of bytes that libcurl requests; `nil` to read until the body
    ///   ends.
    private func setUpload(_ body: OutgoingBody, length: Int64?) {
        ccurl_set_long(easy, CURLOPT_POST, 1)
        ccurl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(length ?? -1))
        ccurl_set_pointer(easy, CURLOPT_POSTFIELDS, nil)
        attempt.upload = body
    }

    /// Sets the header fields of a request that has fields in addition to those of the session.
    func setFields(_ request: EncodedRequest) throws {
        if request.headers.isEmpty, kind != .content { return }
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
        for (name, value) in engine.sessionFields.values where request.headers[name] == nil {
            try add(name.rawValue, value)
        }
        if let cookies { try add("Cookie", cookies) }
        if let contentType = request.contentType, !hasContentType {
            try add("Content-Type", contentType)
        }
        if kind == .content {
            // Without this line, libcurl adds the content type of a form.
            if !hasContentType, request.contentType == nil { try addLine("Content-Type:") }
            if let stream = request.stream, stream.length != 0 {
                // libcurl does not receive the length, so it would send chunks if this field were
                // not removed.
                try addLine(stream.length == nil ? "Transfer-Encoding: chunked" : "Transfer-Encoding:")
                if let length = stream.length { try addLine("Content-Length: \(length)") }
            }
            try addLine(attempt.expectation == nil ? "Expect:" : "Expect: 100-continue")
            if let expectation = attempt.expectation {
                ccurl_set_long(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, max(1, expectation.milliseconds))
            }
        }
        ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
    }

    private func add(_ name: String, _ value: String) throws {
        try SessionFields.add(name, value, to: &fields)
    }

    private func addLine(_ line: String) throws {
        try SessionFields.add(line: line, to: &fields)
    }
}
