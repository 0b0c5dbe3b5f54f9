extension Request {
    /// The method of a request (RFC 9110, section 9): an open set, written like an enum at the call site.
    ///
    /// Methods are case-sensitive. Only the standard ones are recognised in lower case and put in upper case, as
    /// the transports do; any other token is sent as it is. A method that is no token fails when the request is encoded,
    /// with ``WebServiceError/Code/invalidMethod``.
    public struct Method: RawRepresentable, Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
        /// The method as it is sent.
        public let rawValue: String

        /// Makes a method of any name; it is checked when the request is encoded.
        public init(rawValue: String) {
            self.rawValue = Self.standard.first { $0.equalsIgnoringASCIICase(rawValue) } ?? rawValue
        }

        /// Makes a method from a literal such as `"PURGE"`.
        public init(stringLiteral value: String) {
            self.init(rawValue: value)
        }

        /// The method as it is sent.
        public var description: String { rawValue }

        private init(trusted: String) {
            rawValue = trusted
        }

        private static let standard = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]

        /// Transfers a representation of the resource.
        public static let GET = Method(trusted: "GET")
        /// Like GET, without the body.
        public static let HEAD = Method(trusted: "HEAD")
        /// Asks the resource to process the body.
        public static let POST = Method(trusted: "POST")
        /// Replaces the resource with the body.
        public static let PUT = Method(trusted: "PUT")
        /// Changes parts of the resource (RFC 5789).
        public static let PATCH = Method(trusted: "PATCH")
        /// Removes the resource.
        public static let DELETE = Method(trusted: "DELETE")
        /// Asks what the resource can do.
        public static let OPTIONS = Method(trusted: "OPTIONS")

        /// Whether ``Request/parameters`` of a request with this method belong in its URL instead of its body.
        public var encodesParametersInURL: Bool {
            switch rawValue {
            case "GET", "HEAD", "DELETE": true
            default: false
            }
        }

        /// Whether the method takes no body at all here (RFC 9110, section 9.3.1: such a body has no meaning).
        var forbidsBody: Bool {
            switch rawValue {
            case "GET", "HEAD", "TRACE": true
            default: false
            }
        }
    }
}
