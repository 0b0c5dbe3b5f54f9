public import Foundation
public import WebServiceCore

/// A request as a `MockServer` or a ``MockSession`` received it.
public struct ReceivedRequest: Sendable, Hashable {
    package let head: RequestHead

    /// The body without chunk framing; empty if the request has no body.
    public let body: Data

    /// All bytes of the request as received, from the request line to the end of the body.
    ///
    /// Empty for a request of a ``MockSession``.
    public let rawBytes: Data

    /// The number of the connection, counted from 1.
    ///
    /// Requests with equal numbers arrived on the same connection. The number is 0 for a request of
    /// a ``MockSession``.
    public let connection: Int

    /// The origin of a request of a ``MockSession``, such as `https://api.test`.
    package let origin: String?

    /// Whether the request of a `MockServer` arrived over TLS.
    package var isSecure = false

    /// The verified certificate of the client; `nil` if it has none.
    ///
    /// See `MockServer.init(clientCA:requiresClientCertificate:port:handler:)`.
    public package(set) var clientCertificate: ClientCertificate?

    /// A client certificate that a `MockServer` has verified.
    public struct ClientCertificate: Sendable, Hashable {
        /// The subject (RFC 4514), such as `CN=ann,O=Brewery`.
        public let subject: String
        /// The certificate in DER.
        public let der: Data

        package init(subject: String, der: Data) {
            self.subject = subject
            self.der = der
        }
    }

    /// The decoded values of the placeholders in the path of the stub that matched, by name; see
    /// ``RequestMatcher/path(_:)``.
    public internal(set) var pathParameters: [String: String] = [:]

    package init(head: RequestHead, body: Data, rawBytes: Data = Data(), connection: Int = 0, origin: String? = nil) {
        self.head = head
        self.body = body
        self.rawBytes = rawBytes
        self.connection = connection
        self.origin = origin
    }

    /// The request method.
    ///
    /// A standard method in lower case is equal to the same method in upper case. ``rawBytes``
    /// contains the original bytes.
    public var method: Request.Method { head.method }

    /// The request target exactly as it appears in the request line.
    ///
    /// In a ``MockSession``, it consists of the path and the query of the URL.
    public var target: String { head.target }

    /// The URL; `nil` if the target and the `Host` field do not form a valid one.
    public var url: URL? {
        guard target.hasPrefix("/") else { return URL(string: target) }
        return URL(string: (origin ?? "http\(isSecure ? "s" : "")://\(headers["Host"] ?? "")") + target)
    }

    /// The HTTP version, such as `HTTP/1.1`.
    public var version: String { head.version }

    /// The header fields in the order of arrival, with their original names.
    ///
    /// Bytes that are not valid UTF-8 are replaced with U+FFFD. A ``MockSession`` does not add the
    /// fields of a transport, such as `Host` and `Content-Length`.
    public var headers: Headers { head.headers }

    /// The path: the target up to the first `?`, without the origin, percent-encoded.
    public var path: String {
        let path = target[..<(target.utf8.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex)]
        guard path.utf8.first != UInt8(ascii: "/"), let scheme = path.firstRange(of: "://") else { return String(path) }
        let rest = path[scheme.upperBound...].drop { $0 != "/" }
        return rest.isEmpty ? "/" : String(rest)
    }

    /// The query: the part of the target after the first `?`, percent-encoded; `nil` if there is no
    /// `?`.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The names and values of the query in order, decoded as a form; empty if there is no query.
    public var queryItems: [Item] {
        Item.decode((query ?? "").utf8)
    }

    /// The decoded names and values of an `application/x-www-form-urlencoded` body, in order.
    ///
    /// The `Content-Type` field is not checked.
    public var formItems: [Item] {
        Item.decode(body)
    }

    /// Decodes the body as a value of a type.
    ///
    /// - Throws: The error of the decoder, or `DecodingError.dataCorrupted` for JSON with more than
    ///   512 levels.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()
    ) throws -> Value {
        try JSON.decode(type, from: body, using: decoder)
    }

    /// Returns the body as a JSON value of any structure.
    ///
    /// - Throws: The errors of ``decode(_:decoder:)``.
    public func json() throws -> JSONValue {
        try decode(JSONValue.self)
    }

    /// A name and a value of a query or a form.
    public struct Item: Sendable, Hashable {
        /// The decoded name.
        public let name: String
        /// The decoded value; empty if the item has no `=`.
        public let value: String

        /// Creates an item for comparisons.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Decodes a form (WHATWG URL, section 5.1). Invalid UTF-8 is replaced with U+FFFD.
        static func decode(_ form: some Collection<UInt8>) -> [Item] {
            form.split(separator: UInt8(ascii: "&")).map { pair in
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                return Item(name: text(name), value: text(pair.dropFirst(name.count + 1)))
            }
        }

        private static func text(_ encoded: some Collection<UInt8>) -> String {
            let plain = encoded.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
            return String(decoding: percentDecoded(plain), as: UTF8.self)
        }
    }
}
