public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The response of a ``MockSession`` or a `MockServer`.
///
/// ```swift
/// var response = MockResponse(statusCode: 200, json: ["brewers": [["name": "Long Trail"]]])
/// response.headers["Cache-Control"] = "no-store"
/// ```
public struct MockResponse: Sendable {
    /// The status code. A `MockServer` replaces values other than 100 to 999 with 500.
    public var statusCode: Int

    /// The header fields of the response, which are delivered in this order.
    ///
    /// A ``MockSession`` adds no fields; a `MockServer` adds those that frame the response (see
    /// ``Wire``).
    public var headers = Headers()

    /// The body of the response.
    ///
    /// As in a real exchange, the body is omitted for HEAD requests and the statuses 1xx, 204, 205
    /// and 304. The body is never encoded. If ``headers`` contain `Content-Encoding`, a
    /// `MockServer` sends these bytes, and a ``MockSession`` delivers them as the decoded body.
    public var data: Data {
        didSet { failure = nil }
    }

    /// The URL of the response. Defaults to `nil`: the URL of the request.
    ///
    /// A `MockServer` ignores this property.
    public var url: URL?

    /// The HTTP version. Defaults to `HTTP/1.1`.
    public var version = "HTTP/1.1"

    /// The delay before the response. Defaults to zero; see ``after(_:)``.
    public var delay = Duration.zero

    /// The way in which a `MockServer` sends the response.
    ///
    /// A ``MockSession`` delivers the body as a whole, and fails like a real session. With
    /// ``Wire/disconnect``, and with ``Wire/cut(after:)`` and ``Wire/reset(after:)`` before the end
    /// of the response, the error is `URLError.networkConnectionLost`; a stream receives the bytes
    /// before the fault. With ``Wire/noResponse``, and with ``Wire/stall(after:)`` before the end
    /// of the response, the error is `URLError.timedOut`, after the timeout. With ``Wire/endless``,
    /// the error is `WebServiceError.Code.responseTooLarge` if the request has a limit, and
    /// otherwise `URLError.timedOut`. With ``Wire/invalidChunk``, the error is
    /// `URLError.badServerResponse`. The bytes of ``Wire/raw(_:)`` are not parsed.
    public var wire = Wire.fixedLength

    /// The interim responses that a `MockServer` sends before this response (RFC 9110, section
    /// 15.2).
    ///
    /// Interim responses have status codes from 100 to 199 and no body. A ``MockSession`` ignores
    /// them.
    public var interim: [MockResponse] = []

    /// The trailer fields after the body (RFC 9110, section 6.5).
    ///
    /// A `MockServer` sends them after a chunked body, and a ``MockSession`` delivers them to
    /// streams.
    public var trailers = Headers()

    /// The closure that writes the body; `nil` if ``data`` or a sequence is the body.
    ///
    /// A `MockServer` calls the closure on the thread of the connection, after it has sent the
    /// head, unless ``wire`` ends the response before the body. In HTTP/1.1, the body is chunked
    /// unless ``headers`` contain `Content-Length`. If the closure throws an error, the connection
    /// is closed, so that the client detects an incomplete response. A ``MockSession`` calls the
    /// closure on a background thread. If the closure throws an error, the request fails with that
    /// error.
    public var writer: (@Sendable (_ body: BodyWriter) throws -> Void)?

    /// The acceptance of a WebSocket handshake; `nil` for other responses.
    package var upgrade: (any ConnectionUpgrade)?

    /// The sequence of the body; `nil` for other bodies.
    package var chunks: MockChunks?

    /// A closure that is called with the connection after the response is sent and before the next
    /// request is read.
    ///
    /// With ``Wire/raw(_:)``, the connection then stays open.
    package var surplus: (@Sendable (_ connection: any BodyOutput) -> Void)?

    /// The error of a body that could not be encoded, or of ``error(_:)``.
    ///
    /// A `MockServer` responds with status 500 and the error, or closes the connection for
    /// ``Wire/disconnect``.
    package var failure: (any Error)?

    /// Creates a response without header fields or a body.
    public init(statusCode: Int) {
        self.init(statusCode: statusCode, data: Data())
    }

    /// Creates a response with header fields from a dictionary, sorted by name.
    public init(statusCode: Int, headers: [String: String], data: Data = Data()) {
        self.init(statusCode: statusCode, data: data)
        self.headers = Headers(headers)
    }

    /// Creates a response with a body and without header fields.
    public init(statusCode: Int, data: Data) {
        self.statusCode = statusCode
        self.data = data
    }

    /// Creates a response whose body a closure writes; see ``writer``.
    public init(statusCode: Int, writer: @escaping @Sendable (_ body: BodyWriter) throws -> Void) {
        self.init(statusCode: statusCode)
        self.writer = writer
    }

    /// Creates a response whose body is an asynchronous sequence.
    ///
    /// ```swift
    /// session.addStub(MockResponse(statusCode: 200, chunks: tokens()))
    /// ```
    /// A ``MockSession`` delivers each element when the sequence produces it, and waits while the
    /// reader of a stream is paused. If the sequence throws an error, the request fails with that
    /// error. The timeout of the request applies until the iteration starts. A `MockServer` sends
    /// each element as a chunk, and closes the connection if the sequence throws an error. The
    /// sequence is cancelled when the task is cancelled or the client closes the connection.
    ///
    /// - Parameters:
    ///   - statusCode: The status code.
    ///   - chunks: The sequence, evaluated once for each request.
    public init<Chunks: AsyncSequence & Sendable>(
        statusCode: Int, chunks: @autoclosure @escaping @Sendable () -> Chunks
    ) where Chunks.Element == Data {
        self.init(statusCode: statusCode)
        self.chunks = MockChunks(produce: { take, _ in
            for try await chunk in chunks() { try await take(chunk) }
        })
    }

    /// Creates a response with a JSON body and `Content-Type: application/json`.
    ///
    /// - Parameters:
    ///   - statusCode: The status code.
    ///   - json: An object that `JSONSerialization` accepts, or a single value. Keys are sorted. If
    ///     the encoding fails, requests over a ``MockSession`` fail with
    ///     `WebServiceError.Code.encoding`, and a `MockServer` responds with status 500.
    public init(statusCode: Int, json: Any) {
        self.init(statusCode: statusCode)
        headers[.contentType] = ContentType.json
        do {
            var request = Request(.POST, url: "")  // never sent: it encodes JSON by the rules of requests
            try request.serialize(json: json)
            data = request.body ?? Data()
        } catch {
            failure = error
        }
    }

    /// Creates a plain-text response.
    package init(statusCode: Int, text: String) {
        self.init(statusCode: statusCode, data: Data(text.utf8))
        headers[.contentType] = "text/plain; charset=utf-8"
    }
}

extension MockResponse: ExpressibleByIntegerLiteral {
    /// Creates a response with a status code and without header fields or a body.
    public init(integerLiteral statusCode: Int) {
        self.init(statusCode: statusCode)
    }
}

extension MockResponse: MockableDataTaskResult {
    /// Returns the body and an `HTTPURLResponse`, or an error.
    ///
    /// For a response without a body, the data is empty and not `nil`. Repeated header fields are
    /// joined with `", "`, as in Foundation. The error is that of ``error(_:)`` or of a body that
    /// could not be encoded, `URLError.badURL` for a request without a URL, or usually
    /// `URLError.networkConnectionLost`, together with the received bytes, for an incomplete
    /// response (``wire``). For a response that does not arrive or end, or whose body is produced
    /// in parts, the error is an internal one, which ``MockSession`` does not report.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        let (data, head, error) = result(for: request)
        guard let head else { return (data, nil, error) }
        guard let response = head.urlResponse else { return (nil, nil, URLError(.badServerResponse)) }
        return (data, response, error)
    }

    /// Returns the body and the head, in which repeated header fields are preserved, or an error.
    func result(for request: any URLRequestEncodable) -> MockDataTask.Result {
        if let failure { return (nil, nil, failure) }
        guard let url = url?.absoluteString ?? request.sentURL else { return (nil, nil, URLError(.badURL)) }
        guard let response = head(url) else { return (nil, nil, URLError(.badServerResponse)) }
        let hasContent = hasContent(for: request.sentMethod)
        let produced = hasContent ? chunks ?? writer.map(MockChunks.init) : nil
        let body = hasContent && produced == nil ? data : Data()
        let complete: MockDataTask.Result = if let produced { (nil, response, produced) } else { (body, response, nil) }
        switch wire {
        case .fixedLength, .chunked, .untilClose, .drip, .throttle, .surplus, .halfClose, .raw: return complete
        case .noResponse, .endless: return (nil, nil, NoResponse())
        case .disconnect: return (nil, nil, URLError(.networkConnectionLost))
        case .invalidChunk: return (body, response, hasContent ? URLError(.badServerResponse) : nil)
        case .cut(let count), .reset(let count), .stall(let count):
            guard let message = completeMessage(for: request.sentMethod) else { return complete }
            let isStall = if case .stall = wire { true } else { false }
            let rest = max(count, 0) - message.bytes.count
            guard rest < 0 else {
                guard let produced else { return complete }
                let timeout = (try? SentRequest(request))?.timeout ?? .seconds(60)
                return (nil, response, produced.cut(after: rest, of: message, timeout: isStall ? timeout : nil))
            }
            let error: any Error = isStall ? NoResponse() : URLError(.networkConnectionLost)
            return -rest <= body.count ? (body.dropLast(-rest), response, error) : (nil, nil, error)
        }
    }

    /// Returns the head as received bytes, or as a Foundation object if a field would change in a
    /// message.
    private func head(_ url: String) -> ResponseHead? {
        let fields = headers.map { ($0.name.utf8, $0.value.utf8) }
        let isMessage = fields.allSatisfy { name, value in
            !name.isEmpty && !name.contains { $0 <= 0x20 || $0 == UInt8(ascii: ":") } && !value.contains { $0 < 0x20 }
                && value.first != 0x20 && value.last != 0x20
        }
        if isMessage, version.utf8.allSatisfy({ $0 > 0x20 }) {
            var bytes = Array("\(version) \(statusCode)\r\n".utf8)
            for (name, value) in fields {
                bytes += name
                bytes += ": ".utf8
                bytes += value
                bytes += "\r\n".utf8
            }
            if let head = ResponseHead(bytes: bytes, url: url) { return head }
        }
        return URL(string: url)
            .flatMap {
                HTTPURLResponse(url: $0, statusCode: statusCode, httpVersion: version, headerFields: headers.combined())
            }
            .map(ResponseHead.init)
    }

    /// Returns the message that a server would send without a fault; `nil` for a complete response
    /// with status 500.
    private func completeMessage(for method: String) -> ResponseMessage? {
        var whole = self
        whole.wire = .fixedLength
        let head = RequestHead(method: Request.Method(rawValue: method), target: "/")
        return try? whole.message(to: head)  // see above
    }

    /// Returns whether the response to a method has a body (RFC 9110, sections 6.4.1 and 15.3.6).
    func hasContent(for method: String) -> Bool {
        switch statusCode {
        case 100..<200, 204, 205, 304: false
        default: method != "HEAD"
        }
    }
}

/// The result of a stub that does not respond.
struct NoResponse: Error {}

extension [MockResponse] {
    /// Returns the response to a call, counted from 1; the last one is repeated.
    package func response(ofCall call: Int) -> MockResponse {
        indices.contains(call - 1) ? self[call - 1] : last ?? MockResponse(statusCode: 500)
    }
}
