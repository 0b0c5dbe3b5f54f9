public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A response as a value: the answer of a ``MockSession`` or of a ``MockServer``.
///
/// ```swift
/// var response = MockResponse(statusCode: 200, json: ["brewers": [["name": "Long Trail Brewing Company"]]])
/// response.headers["Cache-Control"] = "no-store"
/// ```
public struct MockResponse: Sendable {
    /// The status code. A ``MockServer`` sends 100 to 999 and answers 500 instead of any other.
    public var statusCode: Int

    /// The header fields; none is added by a ``MockSession``, and those that frame the message by a ``MockServer`` (see ``Wire``).
    public var headers = Headers()

    /// The body. Left out, as in a real exchange, for HEAD requests and for the statuses 1xx, 204, 205 and 304.
    public var data: Data {
        didSet { failure = nil }
    }

    /// The URL of the response; `nil` means that of the request. It is never on the wire.
    public var url: URL?

    /// The HTTP version.
    public var version = "HTTP/1.1"

    /// How a ``MockServer`` puts the response on the wire; a ``MockSession`` has no wire and heeds
    /// only ``Wire/noAnswer``: the request ends with `URLError.timedOut` when its timeout is over,
    /// unless it is cancelled before.
    public var wire = Wire.fixedLength

    /// What a ``MockServer`` does with the connection after the message, before it reads the next request; a ``Wire/raw(_:)`` message keeps its connection then.
    var surplus: (@Sendable (Socket) -> Void)?

    /// Why there is no body: the answer of a ``MockSession``, and the text of a 500 from a ``MockServer``.
    private(set) var failure: (any Error)?

    /// Makes a response without header fields and body.
    public init(statusCode: Int) {
        self.init(statusCode: statusCode, data: Data())
    }

    /// Makes a response with a body and without header fields.
    public init(statusCode: Int, data: Data) {
        self.statusCode = statusCode
        self.data = data
    }

    /// Makes a response with a JSON text as its body and `Content-Type: application/json`.
    ///
    /// - Parameters:
    ///   - statusCode: The status.
    ///   - json: What `JSONSerialization` takes, also a single value. Keys are sorted. Where it cannot be written as JSON the
    ///     response stands for a `WebServiceError` with the code `encoding`: the request it answers fails with that error.
    public init(statusCode: Int, json: Any) {
        self.init(statusCode: statusCode)
        headers[.contentType] = ContentType.json
        do {
            var request = Request(.POST, url: "")  // never sent: it writes JSON by the same rules as a request
            try request.serialize(json: json)
            data = request.body ?? Data()
        } catch {
            failure = error
        }
    }

    /// Makes a plain-text response.
    init(statusCode: Int, text: String) {
        self.init(statusCode: statusCode, data: Data(text.utf8))
        headers[.contentType] = "text/plain; charset=utf-8"
    }
}

extension MockResponse: MockableDataTaskResult {
    /// The body (empty, not `nil`, where there is none) and an `HTTPURLResponse`, or the error of a request that has no URL or of JSON
    /// that could not be written, or for ``Wire/noAnswer`` one that a ``MockSession`` keeps to itself. Repeated header fields are joined with `", "`, as
    /// Foundation does.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        if let failure { return (nil, nil, failure) }
        if case .noAnswer = wire { return (nil, nil, NoAnswer()) }
        guard let url = url ?? request.sentURL else { return (nil, nil, URLError(.badURL)) }
        guard let response = HTTPURLResponse(url: url, statusCode: statusCode, httpVersion: version, headerFields: headers.combined()) else {
            return (nil, nil, URLError(.badServerResponse))
        }
        return (hasContent(for: request.sentMethod) ? data : Data(), response, nil)
    }

    /// Whether the response to a request with this method has a body at all (RFC 9110, sections 6.4.1 and 15.3.6).
    func hasContent(for method: String) -> Bool {
        switch statusCode {
        case 100..<200, 204, 205, 304: false
        default: method != "HEAD"
        }
    }
}

/// In place of an answer: there is none.
struct NoAnswer: Error {}
