public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The response to a request: its head, its body and where it came from. Interceptors pass it on, and typed tasks decode it.
///
/// A struct over one immutable object, so that passing it on costs a reference count.
public struct Response: Sendable {
    private struct Fields: Sendable {
        /// `nil` only where a session of the user completed without a body.
        var body: Data?
        var head: Head
        var source: Source
        var attempts = 1
        var redirects: [URL] = []
        var transport: TransportMetrics?
        var age: TimeInterval?
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

    /// The body; empty when there is none.
    public var data: Data {
        get { storage.fields.body ?? Data() }
        set { fields.body = newValue }
    }

    /// The body; `nil` where a session of the user completed without one.
    var body: Data? { storage.fields.body }

    /// The response as Foundation defines it; `nil` when the session gave none. Created at the first access, where the session received bytes.
    public var urlResponse: URLResponse? {
        get { head.urlResponse }
        set { fields.head = Head(newValue) }
    }

    var head: Head { storage.fields.head }

    /// What the response came from.
    public var source: Source {
        get { storage.fields.source }
        set { fields.source = newValue }
    }

    /// The number of requests that were sent for it: 1 without retries and redirects, 0 when an interceptor responded without sending any.
    public var attempts: Int {
        get { storage.fields.attempts }
        set { if newValue != attempts { fields.attempts = newValue } }
    }

    /// The URLs that redirected here, in order; empty without redirects.
    public var redirects: [URL] {
        get { storage.fields.redirects }
        set { fields.redirects = newValue }
    }

    /// The metrics of the session; `nil` where it measures nothing.
    public var transport: TransportMetrics? {
        get { storage.fields.transport }
        set { fields.transport = newValue }
    }

    /// How long ago the response was created, last validated or stored, in seconds, as the ``ResponseCache`` or storage that it came from reports it; `nil`
    /// for all others.
    public var age: TimeInterval? {
        get { storage.fields.age }
        set { fields.age = newValue }
    }

    /// Creates a response from the result of a session.
    public init(data: Data, urlResponse: URLResponse?, source: Source = .network, attempts: Int = 1, redirects: [URL] = []) {
        self.init(data: data, head: Head(urlResponse), source: source, attempts: attempts, redirects: redirects)
    }

    /// Creates a response from what a ``ResponseSession`` received.
    public init(data: Data, head: ResponseHead, source: Source = .network, transport: TransportMetrics? = nil) {
        self.init(data: data, head: .bytes(head), source: source, transport: transport)
    }

    init(
        data: Data?, head: Head = .none, source: Source, attempts: Int = 1, redirects: [URL] = [], transport: TransportMetrics? = nil,
        age: TimeInterval? = nil
    ) {
        storage = Storage(
            Fields(body: data, head: head, source: source, attempts: attempts, redirects: redirects, transport: transport, age: age))
    }

    /// Makes a response of one's own, such as an interceptor that answers by itself.
    ///
    /// - Parameters:
    ///   - status: From 100 to 999.
    ///   - headers: Fields of the same name are combined.
    ///   - data: The body.
    ///   - url: The URL that answers.
    ///   - source: Where the answer comes from.
    /// - Returns: `nil` when the URL or the status is not possible.
    public init?(status: Int, headers: Headers = [:], data: Data = Data(), url: URL, source: Source) {
        guard (100...999).contains(status),
            let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: headers.combined())
        else { return nil }
        self.init(data: data, urlResponse: response, source: source, attempts: 0)
    }

    /// The status code (RFC 9110, section 15); 0 when the answer is not HTTP's.
    public var status: Int { head.status }

    /// A Boolean value that indicates whether it is the response of an HTTP server.
    var isHTTP: Bool { head.isHTTP }

    /// Whether the status is one of the two hundreds.
    public var isSuccess: Bool { (200...299).contains(status) }

    /// The URL that answered, after redirects.
    public var url: URL? { urlResponse?.url }

    /// The value of a header field, repeated ones joined with `", "`.
    public func header(_ name: Headers.Name) -> String? {
        let values = head.values(for: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// All header fields: in the order in which they came where the session keeps it, as `CurlSession` does. Foundation joins repeated ones and forgets
    /// their order; then they are sorted by name.
    public var headers: Headers { head.headers }

    /// Who gave an answer: an open set.
    public struct Source: Sendable, Hashable, CustomStringConvertible {
        /// The name of the source.
        public let description: String

        /// Makes a source of one's own.
        public init(_ name: String) {
            description = name
        }

        /// The session.
        public static let network = Source("network")
        /// A `MockSession`.
        public static let mock = Source("mock")
        /// A storage of the service.
        public static let storage = Source("storage")
        /// An equal request that was under way already (``DuplicateMode/join``).
        public static let joined = Source("joined")
        /// An endpoint that sent nothing, such as a `MockEndpoint`.
        public static let endpoint = Source("endpoint")
        /// A ``ResponseCache``, which sent nothing for it, or got an error.
        public static let cache = Source("cache")
        /// A ``ResponseCache``, after the server said that what is stored is still right.
        public static let revalidated = Source("revalidated")
    }
}

extension Response: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Status, size and source: safe to log.
    public var description: String { "\(status), \(data.count) bytes, \(source)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the same as ``description``, because header fields and body may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: ["response": description], displayStyle: .struct) }
}
