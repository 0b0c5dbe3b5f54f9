public import Foundation
public import WebServiceCore

/// A request as it arrived at a ``MockServer``.
public struct ReceivedRequest: Sendable, Hashable {
    let head: RequestHead

    /// The body without what frames its chunks; empty when there is none.
    public let body: Data

    /// All bytes of the request exactly as they arrived, from the request line to the end of the body.
    public let rawBytes: Data

    /// The number of the connection on which it arrived, counted from 1. Requests with equal numbers shared a connection.
    public let connection: Int

    /// The method. A standard method in lower case reads as one in upper case; ``rawBytes`` tell what was sent.
    public var method: Request.Method { head.method }

    /// The request target exactly as it stands in the request line.
    public var target: String { head.target }

    /// The version, such as `HTTP/1.1`.
    public var version: String { head.version }

    /// The header fields in the order in which they arrived, names as they were sent. Bytes that are not UTF-8 read as U+FFFD.
    public var headers: Headers { head.headers }

    /// The path: the target up to the first `?`, not decoded; without the origin where the target has one.
    public var path: String {
        let path = target.prefix { $0 != "?" }
        guard !path.hasPrefix("/"), let scheme = path.firstRange(of: "://") else { return String(path) }
        let rest = path[scheme.upperBound...].drop { $0 != "/" }
        return rest.isEmpty ? "/" : String(rest)
    }

    /// The query: what follows the first `?` of the target, not decoded; `nil` when there is no `?`.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The names and values of the query, decoded as a form, in order. Empty when there is no query.
    public var queryItems: [Item] {
        Item.decode((query ?? "").utf8)
    }

    /// The names and values of a body of the type `application/x-www-form-urlencoded`, decoded, in order. The type is not checked.
    public var formItems: [Item] {
        Item.decode(body)
    }

    /// The body read as JSON, also a single value.
    ///
    /// - Throws: The error of `JSONSerialization` for a body that is no JSON, `DecodingError.dataCorrupted` for one that is nested deeper
    ///   than 512 levels.
    public var json: Any {
        get throws { try JSON.object(from: body) }
    }

    /// A name and a value of a query or a form.
    public struct Item: Sendable, Hashable {
        /// The name, decoded.
        public let name: String
        /// The value, decoded; empty when there is no `=`.
        public let value: String

        /// Makes an item, to compare with.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Reads a form (WHATWG URL, section 5.1). Bytes that are not UTF-8 read as U+FFFD.
        static func decode(_ form: some Collection<UInt8>) -> [Item] {
            form.split(separator: UInt8(ascii: "&")).map { pair in
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                return Item(name: text(name), value: text(pair.dropFirst(name.count + 1)))
            }
        }

        private static func text(_ encoded: some Collection<UInt8>) -> String {
            let encoded = Array(encoded)
            var bytes: [UInt8] = []
            var index = 0
            while index < encoded.count {
                let byte = encoded[index]
                index += 1
                if byte == UInt8(ascii: "%"), index + 1 < encoded.count,
                    let high = HTTPBytes.hexValue(encoded[index]), let low = HTTPBytes.hexValue(encoded[index + 1])
                {
                    bytes.append(UInt8(high << 4 | low))
                    index += 2
                } else {
                    bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
