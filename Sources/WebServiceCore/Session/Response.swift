public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The answer to a request: what interceptors pass on and what typed tasks decode.
public struct Response: Sendable {
    /// The body; empty when there is none.
    public var data: Data

    /// The response as Foundation knows it; `nil` only when a session answered without one. Built when it is read, where the session handed over bytes.
    public var urlResponse: URLResponse? {
        get { head.urlResponse }
        set { head = Head(newValue) }
    }

    var head: Head

    /// Who gave the answer.
    public var source: Source

    /// How many messages were sent for it: 1 without retries and redirects, 0 when an interceptor answered by itself.
    public var attempts: Int

    /// The URLs that redirected here, in order; empty without redirects.
    public var redirects: [URL]

    /// What the session measured; `nil` where it measures nothing.
    public var transport: TransportMetrics?

    /// How long ago the answer was made, last validated, or stored, in seconds, as the ``ResponseCache`` or storage knows it that it came from; `nil` for
    /// all others.
    public var age: TimeInterval?

    /// Makes a response out of what a session gave.
    public init(data: Data, urlResponse: URLResponse?, source: Source = .network, attempts: Int = 1, redirects: [URL] = []) {
        self.init(data: data, head: Head(urlResponse), source: source, attempts: attempts, redirects: redirects, transport: nil)
    }

    /// Makes a response out of what a ``ResponseSession`` received.
    public init(data: Data, head: ResponseHead, source: Source = .network, transport: TransportMetrics? = nil) {
        self.init(data: data, head: .bytes(head), source: source, attempts: 1, redirects: [], transport: transport)
    }

    init(data: Data, head: Head, source: Source, attempts: Int, redirects: [URL], transport: TransportMetrics?) {
        self.data = data
        self.head = head
        self.source = source
        self.attempts = attempts
        self.redirects = redirects
        self.transport = transport
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
