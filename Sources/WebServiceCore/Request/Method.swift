extension Request {
    /// The method of a request (RFC 9110, section 9): an open set with enum-like syntax.
    ///
    /// Methods are case-sensitive. The names of the standard methods are converted to upper case,
    /// as transports do; any other token is sent unchanged. Encoding a request whose method is not
    /// a token throws ``WebServiceError/Code/invalidMethod``.
    public struct Method: RawRepresentable, Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
        /// The method as it is sent.
        public let rawValue: String

        /// Creates a method with any name, which is validated when the request is encoded.
        public init(rawValue: String) {
            self.rawValue = Self.standard.first { $0.equalsIgnoringASCIICase(rawValue) } ?? rawValue
        }

        /// Creates a method from a literal such as `"PURGE"`.
        public init(stringLiteral value: String) {
            self.init(rawValue: value)
        }

        /// The method as it is sent.
        public var description: String { rawValue }

        private init(trusted: String) {
            rawValue = trusted
        }

        private static let standard = [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS", "TRACE", "CONNECT",
        ]

        /// Transfers a representation of the resource.
        public static let GET = Method(trusted: "GET")
        /// Transfers the header fields of the response to GET, without its body.
        public static let HEAD = Method(trusted: "HEAD")
        /// Submits the body to the resource for processing.
        public static let POST = Method(trusted: "POST")
        /// Replaces the resource with the body.
        public static let PUT = Method(trusted: "PUT")
        /// Modifies parts of the resource (RFC 5789).
        public static let PATCH = Method(trusted: "PATCH")
        /// Removes the resource.
        public static let DELETE = Method(trusted: "DELETE")
        /// Requests the result of the query in the body, without effects on the server (RFC 10008).
        public static let QUERY = Method(trusted: "QUERY")
        /// Requests the communication options of the resource.
        public static let OPTIONS = Method(trusted: "OPTIONS")

        /// Whether ``Request/parameters`` are encoded in the URL.
        ///
        /// Otherwise, ``Request/parameterEncoding`` determines their location.
        public var encodesParametersInURL: Bool {
            switch rawValue {
            case "GET", "HEAD", "DELETE": true
            default: false
            }
        }

        /// Whether a request with this method must not have a body.
        ///
        /// A body has no defined meaning for GET and HEAD, and is forbidden for TRACE (RFC 9110,
        /// sections 9.3.1, 9.3.2 and 9.3.8).
        package var forbidsBody: Bool {
            switch rawValue {
            case "GET", "HEAD", "TRACE": true
            default: false
            }
        }
    }
}

extension Request.Method {
    /// Whether repeating a request has the same effect as sending it once (RFC 9110, section
    /// 9.2.2).
    package var isIdempotent: Bool {
        switch rawValue {
        case "PUT", "DELETE": true
        default: isSafe
        }
    }

    /// Whether a request only reads (RFC 9110, section 9.2.1).
    package var isSafe: Bool {
        switch rawValue {
        case "GET", "HEAD", "QUERY", "OPTIONS", "TRACE": true
        default: false
        }
    }
}
