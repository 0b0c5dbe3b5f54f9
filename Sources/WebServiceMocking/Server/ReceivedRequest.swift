public import Foundation
public import WebServiceCore

/// A request received by a ``MockServer``.
public struct ReceivedRequest: Sendable, Hashable {
    let head: RequestHead

    /// The body without chunk framing; empty if the request has no body.
    public let body: Data

    /// All bytes of the request as received, from the request line to the end of the body.
    public let rawBytes: Data

    /// The number of the connection, counted from 1.
    ///
    /// Requests with equal numbers arrived on the same connection.
    public let connection: Int

    /// The method.
    ///
    /// A standard method in lower case is equal to the one in upper case; ``rawBytes`` contains the
    /// original bytes.
    public var method: Request.Method { head.method }

    /// The request target exactly as it appears in the request line.
    public var target: String { head.target }

    /// The HTTP version, such as `HTTP/1.1`.
    public var version: String { head.version }

    /// The header fields in the order of arrival, with their original names.
    ///
    /// Bytes that are not valid UTF-8 are replaced by U+FFFD.
    public var headers: Headers { head.headers }

    /// The path: the target up to the first `?`, without the origin, percent-encoded.
    public var path: String {
        let path = target.prefix { $0 != "?" }
        guard !path.hasPrefix("/"), let scheme = path.firstRange(of: "://") else { return String(path) }
        let rest = path[scheme.upperBound...].drop { $0 != "/" }
        return rest.isEmpty ? "/" : String(rest)
    }

    /// The query: the part of the target after the first `?`, percent-encoded; `nil` without a `?`.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The names and values of the query in order, decoded as a form; empty without a query.
    public var queryItems: [Item] {
        Item.decode((query ?? "").utf8)
    }

    /// The decoded names and values of an `application/x-www-form-urlencoded` body, in order.
    ///
    /// The `Content-Type` field is not checked.
    public var formItems: [Item] {
        Item.decode(body)
    }

    /// The body parsed as JSON; a top-level scalar is allowed.
    ///
    /// - Throws: The error of `JSONSerialization` for a body that is not JSON, or
    ///   `DecodingError.dataCorrupted` for one that is nested deeper than 512 levels.
    public var json: Any {
        get throws { try JSON.object(from: body) }
    }

    /// A name and a value of a query or a form.
    public struct Item: Sendable, Hashable {
        /// The decoded name.
        public let name: String
        /// The decoded value; empty without a `=`.
        public let value: String

        /// Creates an item, for comparisons.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Decodes a form (WHATWG URL, section 5.1). Invalid UTF-8 is replaced by U+FFFD.
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
