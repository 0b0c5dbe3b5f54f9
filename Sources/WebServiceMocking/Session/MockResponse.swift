public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The response of a ``MockSession`` or a ``MockServer``.
///
/// ```swift
/// var response = MockResponse(statusCode: 200, json: ["brewers": [["name": "Long Trail"]]])
/// response.headers["Cache-Control"] = "no-store"
/// ```
public struct MockResponse: Sendable {
    /// The status code. A ``MockServer`` sends 100 to 999, and 500 instead of any other value.
    public var statusCode: Int

    /// The header fields.
    ///
    /// A ``MockSession`` adds none; a ``MockServer`` adds those that frame the response (see
    /// ``Wire``).
    public var headers = Headers()

    /// The body.
    ///
    /// As in a real exchange, it is omitted for HEAD requests and the statuses 1xx, 204, 205 and
    /// 304.
    public var data: Data {
        didSet { failure = nil }
    }

    /// The URL of the response. Defaults to `nil`, the URL of the request.
    ///
    /// A ``MockServer`` ignores it.
    public var url: URL?

    /// The HTTP version. Defaults to `HTTP/1.1`.
    public var version = "HTTP/1.1"

    /// How a ``MockServer`` sends the response.
    ///
    /// A ``MockSession`` evaluates only ``Wire/noAnswer``: the request fails with
    /// `URLError.timedOut` after its timeout, unless it is cancelled first.
    public var wire = Wire.fixedLength

    /// The interim responses that a ``MockServer`` sends before this one (RFC 9110, section 15.2).
    ///
    /// Their status codes are 100 to 199, and they have no body. A ``MockSession`` ignores them.
    public var interim: [MockResponse] = []

    /// The trailer fields that a ``MockServer`` sends after a chunked body (RFC 9112, section
    /// 7.1.2).
    ///
    /// A ``MockSession`` ignores them.
    public var trailers = Headers()

    /// The closure that writes the body; `nil` if ``data`` is the body.
    ///
    /// A ``MockServer`` calls it on the thread of the connection, after the head. The body is
    /// chunked unless ``headers`` contain `Content-Length`. If the closure throws, the connection
    /// is closed, so that the client detects an incomplete response. A ``MockSession`` ignores it.
    public var writer: (@Sendable (_ body: MockBodyWriter) throws -> Void)?

    /// Called with the connection after the response is sent and before the next request is read.
    ///
    /// With ``Wire/raw(_:)`` the connection then stays open.
    var surplus: (@Sendable (Socket) -> Void)?

    /// The error of a body that could not be encoded; a ``MockServer`` sends it with the status
    /// 500.
    private(set) var failure: (any Error)?

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

    /// Creates a response whose body is written by a closure; see ``writer``.
    public init(statusCode: Int, writer: @escaping @Sendable (_ body: MockBodyWriter) throws -> Void) {
        self.init(statusCode: statusCode)
        self.writer = writer
    }

    /// Creates a response with a JSON body and `Content-Type: application/json`.
    ///
    /// - Parameters:
    ///   - statusCode: The status code.
    ///   - json: An object that `JSONSerialization` accepts, or a single value. Keys are sorted. If
    ///     it cannot be encoded, a ``MockSession`` fails the request with a `WebServiceError` with
    ///     the code `encoding`, and a ``MockServer`` responds with the status 500.
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
    init(statusCode: Int, text: String) {
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
    /// The body is empty, not `nil`, for a response without one. Repeated header fields are joined
    /// with `", "`, as in Foundation. The error is that of JSON that could not be encoded, or
    /// `URLError.badURL` for a request without a URL. For ``Wire/noAnswer`` it is an internal error
    /// that ``MockSession`` does not report.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        if let failure { return (nil, nil, failure) }
        if case .noAnswer = wire { return (nil, nil, NoAnswer()) }
        guard let url = url ?? request.sentURL else { return (nil, nil, URLError(.badURL)) }
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: statusCode, httpVersion: version, headerFields: headers.combined())
        else {
            return (nil, nil, URLError(.badServerResponse))
        }
        return (hasContent(for: request.sentMethod) ? data : Data(), response, nil)
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
struct NoAnswer: Error {}
