public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The response to a request: its head, body and source.
///
/// Interceptors pass responses on, and typed tasks decode them.
///
/// The struct refers to one immutable object, so that copying it costs only a reference count.
public struct Response: Sendable {
    private struct Fields: Sendable {
        /// The body; `nil` if there is none, for example because a custom session completed without
        /// one.
        var body: Data?
        /// The head; `nil` if the session provided none.
        var head: ResponseHead?
        /// The source of a body that is still being received; `nil` unless the body is streamed.
        var stream: (any AnyObject & Sendable)?
        var source: Source
        var attempts = 1
        var redirects: [URL] = []
        var transport: TransportMetrics?
        var age: Duration?
        var bodyFailure: (any Error)?
    }

    private final class Storage: Sendable {
        let fields: Fields
        init(_ fields: Fields) { self.fields = fields }
    }

    private var storage: Storage
    private var fields: Fields {
        get { storage.fields }
        set { storage = Storage(newValue) }
    }

    /// The body; empty if there is none.
    public var data: Data {
        get { storage.fields.body ?? Data() }
        set { (fields.body, fields.bodyFailure) = (newValue, nil) }
    }

    /// The error that ended the body early, in which case ``data`` contains the bytes that were
    /// received before the error; `nil` if the body is complete. Only a response with a status
    /// other than 200 to 299 has such an error, usually only until the interceptors have returned
    /// it.
    package var bodyFailure: (any Error)? {
        get { storage.fields.bodyFailure }
        set { fields.bodyFailure = newValue }
    }

    /// The body; `nil` if a custom session completed without one.
    var dataIfDelivered: Data? { storage.fields.body }

    /// The response as a Foundation object; `nil` if the session provided none.
    ///
    /// If the head was received as bytes, as over `CurlSession`, the object is created on first
    /// access.
    public var urlResponse: URLResponse? {
        get { head?.urlResponse }
        set { fields.head = newValue.map(ResponseHead.init) }
    }

    /// The head as the session provided it; `nil` if the session provided none.
    public var head: ResponseHead? { storage.fields.head }

    /// Whether the body is streamed, in which case ``data`` is empty.
    public var isStreamed: Bool { stream != nil }

    /// Whether the response has a body or, if the body is streamed, may have one.
    var mayHaveBody: Bool {
        guard isStreamed else { return !data.isEmpty }
        return ![204, 205, 304].contains(status) && header(.contentLength) != "0"
    }

    var stream: (any AnyObject & Sendable)? {
        get { storage.fields.stream }
        set { fields.stream = newValue }
    }

    /// The response without the stream of its body. The stream ends when its last reference is
    /// released.
    var withoutStream: Response {
        guard isStreamed else { return self }
        var response = self
        response.stream = nil
        return response
    }

    /// The head of the response, with its source.
    package var withoutBody: Response { Response(body: nil, head: head, source: source) }

    /// The source of the response.
    public var source: Source {
        get { storage.fields.source }
        set { fields.source = newValue }
    }

    /// The number of requests sent for the response.
    ///
    /// The number includes retries, redirects, hedges and repetitions with a newer credential. It
    /// is 0 if an interceptor responded without sending a request.
    public var attempts: Int {
        get { storage.fields.attempts }
        set { if newValue != attempts { fields.attempts = newValue } }
    }

    /// The URLs that redirected to this response, in order; empty if there were none.
    public var redirects: [URL] {
        get { storage.fields.redirects }
        set { fields.redirects = newValue }
    }

    /// The metrics of the session; `nil` if the session does not measure any.
    public var transport: TransportMetrics? {
        get { storage.fields.transport }
        set { fields.transport = newValue }
    }

    /// The age of a stored response; `nil` for any other response.
    ///
    /// This is the duration since the response was created, last validated or stored, as reported
    /// by the `ResponseCache` or storage that returned it.
    public var age: Duration? {
        get { storage.fields.age }
        set { fields.age = newValue }
    }

    /// Creates a response from the result of a session.
    public init(
        data: Data, urlResponse: URLResponse?, source: Source = .network, attempts: Int = 1, redirects: [URL] = []
    ) {
        self.init(
            body: data, head: urlResponse.map(ResponseHead.init), source: source, attempts: attempts,
            redirects: redirects)
    }

    /// Creates a response from the head and body that a session received.
    public init(data: Data, head: ResponseHead, source: Source = .network, transport: TransportMetrics? = nil) {
        self.init(body: data, head: head, source: source, transport: transport)
    }

    package init(
        body: Data?, head: ResponseHead? = nil, source: Source, attempts: Int = 1, redirects: [URL] = [],
        transport: TransportMetrics? = nil, age: Duration? = nil
    ) {
        storage = Storage(
            Fields(
                body: body, head: head, source: source, attempts: attempts, redirects: redirects, transport: transport,
                age: age))
    }

    /// Creates a custom response, for example in an interceptor that sends no request.
    ///
    /// - Parameters:
    ///   - status: The status code, from 100 to 999.
    ///   - headers: The header fields. Fields with the same name are combined.
    ///   - data: The body.
    ///   - url: The URL of the response.
    ///   - source: The source of the response.
    /// - Returns: `nil` if the URL or the status is invalid.
    public init?(status: Int, headers: Headers = [:], data: Data = Data(), url: URL, source: Source) {
        guard (100...999).contains(status),
            let response = HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers.combined())
        else { return nil }
        self.init(data: data, urlResponse: response, source: source, attempts: 0)
    }

    /// The status code (RFC 9110, section 15); 0 if the response is not an HTTP response.
    public var status: Int { head?.status ?? 0 }

    /// Whether this is an HTTP response.
    package var isHTTP: Bool { head?.isHTTP ?? false }

    /// Whether the status is 200 to 299.
    public var isSuccess: Bool { (200...299).contains(status) }

    /// The URL of the response, after redirects.
    public var url: URL? { urlResponse?.url }

    /// Returns the value of a header field, with repeated fields joined by `", "`.
    public func header(_ name: Headers.Name) -> String? {
        Headers.joined(head?.values(for: name) ?? [])
    }

    /// All header fields, in the order received if the session preserves it, as `CurlSession` does.
    ///
    /// Foundation joins repeated fields and does not preserve their order, so its fields are sorted
    /// by name.
    public var headers: Headers { head?.headers ?? [:] }

    /// The source of a response. Sessions and interceptors can define additional sources.
    public struct Source: Sendable, Hashable, CustomStringConvertible {
        /// The name of the source.
        public let description: String

        /// Creates a custom source with a name.
        public init(_ name: String) {
            description = name
        }

        /// The session, which sent the request to a server.
        public static let network = Source("network")
        /// A `MockSession`.
        public static let mock = Source("mock")
        /// A storage of the service.
        public static let storage = Source("storage")
        /// An equal request that was already in flight (`DuplicateMode.join`, `.coalescing()`).
        public static let joined = Source("joined")
        /// An endpoint that sent no request, such as a `MockEndpoint`.
        public static let endpoint = Source("endpoint")
        /// A `ResponseCache` that sent no request for the response, or whose request failed.
        public static let cache = Source("cache")
        /// A `ResponseCache`, after the server confirmed that the stored response is still valid.
        public static let revalidated = Source("revalidated")
    }
}

extension Response: RedactedReflectable {
    /// A description that is safe to log: the status, size and source.
    public var description: String { "\(status), \(data.count) bytes, \(source)" }
}

extension Response {
    /// Returns the decoded body. For an optional type, an empty body is decoded as `nil`.
    ///
    /// - Throws: ``WebServiceError/Code/emptyResponse`` for an empty body, or
    ///   ``WebServiceError/Code/decoding`` with the decoder's error.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder())
        throws -> Value
    {
        try decoded(type, decoder)
    }

    /// Returns the body as JSON of any shape.
    ///
    /// - Throws: The errors of ``decode(_:decoder:)``.
    public func json() throws -> JSONValue {
        try decoded(JSONValue.self, JSONDecoder())
    }
}

extension Response {
    /// Returns the decoded body. An empty body decodes to `nil` for an optional type.
    package func decoded<Value: Decodable>(_ type: Value.Type, _ decoder: any BodyDecoder) throws -> Value {
        if data.isEmpty {
            if let optional = type as? any OptionalValue.Type, let nothing = optional.nilValue as? Value {
                return nothing
            }
            throw error(
                .emptyResponse,
                "the response with status \(status) has no body to decode \(type) from; decode \(type)? to accept an "
                    + "empty body")
        }
        do {
            return try JSON.decode(type, from: data, using: decoder)
        } catch {
            let isPage = MediaType.essence(header(.contentType) ?? "") == "text/html"
            let reason = isPage ? ": the body is an HTML page" : Self.place(of: error)
            throw self.error(.decoding, "\(type) cannot be decoded\(reason)", underlying: error)
        }
    }

    /// Returns the body as a string, decoded from the charset of `Content-Type`, or from UTF-8 if
    /// that field specifies none.
    ///
    /// - Throws: ``WebServiceError/Code/decoding`` if the charset is not supported or the bytes are
    ///   invalid in it.
    public func text() throws -> String {
        let charset = header(.contentType).flatMap { MediaType.parameter("charset", of: $0) }
        guard let encoding = Charset.encoding(named: charset ?? "utf-8") else {
            throw error(.decoding, "the charset of the response is not supported; read 'data' instead of text()")
        }
        guard let text = Charset.text(data, encoding) else {
            let name = charset == nil ? "UTF-8" : "the charset of its Content-Type"
            throw error(.decoding, "the response body is not text in \(name); read 'data' instead of text()")
        }
        return text
    }

    private func error(
        _ code: WebServiceError.Code, _ message: String, underlying: (any Error)? = nil
    ) -> WebServiceError {
        WebServiceError(code, message, response: self, underlying: underlying)
    }

    /// Returns the location of a decoding error within the value. Keys of a type are included; keys
    /// of a dictionary come from the server and are replaced by `*`.
    static func place(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            ": no value for '\(name(of: key))'\(path(context.codingPath))"
        case DecodingError.valueNotFound(let type, let context): ": no value of type \(type)\(path(context.codingPath))"
        case DecodingError.typeMismatch(let type, let context):
            ": the value is not of type \(type)\(path(context.codingPath))"
        case DecodingError.dataCorrupted(let context): ": the data is corrupted\(path(context.codingPath))"
        default: ""
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        guard !keys.isEmpty else { return " at the top level" }
        let text = keys.map { key in key.intValue.map { "[\($0)]" } ?? ".\(name(of: key))" }.joined()
        return " at \(text.prefix(200))".escapingControls
    }

    /// Returns the name of a key, or `*` if the key comes from the server. A key of a type is an
    /// enum case without a payload.
    private static func name(of key: any CodingKey) -> String {
        let mirror = Mirror(reflecting: key)
        return mirror.displayStyle == .enum && mirror.children.isEmpty ? String(key.stringValue.prefix(80)) : "*"
    }
}

/// An optional type, for checks at run time.
package protocol OptionalValue {
    static var nilValue: Any { get }
    var isNilValue: Bool { get }
}

extension Optional: OptionalValue {
    package static var nilValue: Any { Wrapped?(nilLiteral: ()) as Any }
    package var isNilValue: Bool { self == nil }
}

/// A type that decodes `Decodable` values from the bytes of a body.
///
/// For a `JSONDecoder`, the library first checks that the body is nested no deeper than 512 levels.
/// A custom decoder that calls a `JSONDecoder` must do the same on Linux, where that class traps on
/// some input that is nested deeper.
public protocol BodyDecoder: Sendable {
    /// Returns the value decoded from the bytes of a body.
    ///
    /// - Throws: An error if the value cannot be decoded.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: BodyDecoder {}
extension PropertyListDecoder: BodyDecoder {}
