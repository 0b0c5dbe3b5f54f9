public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// An error of this framework's own: what went wrong, and everything known about the exchange at that moment.
///
/// Failures of the transport (no connection, time-out, cancelled …) are not of this type: they are `URLError`, whichever
/// ``Session`` is plugged in. Match on ``code``; new codes may be added without notice, so a `switch` over them needs a `default`.
public struct WebServiceError: Error, Sendable {
    /// What went wrong.
    public var code: Code

    /// One sentence that names what is wrong. It holds names of fields, never their values.
    public var message: String

    /// The request, as it was when the error arose. `nil` when the error arose outside a request.
    public var request: Request?

    /// The response. `nil` when none had arrived.
    public var response: URLResponse?

    /// The bytes of the response's body. `nil` when none had arrived.
    public var body: Data?

    /// The error that caused this one. `nil` when this is the first cause.
    public var underlying: (any Error)?

    /// Makes an error; everything but the code and the message may be left out.
    public init(
        _ code: Code,
        _ message: String,
        request: Request? = nil,
        response: URLResponse? = nil,
        body: Data? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.request = request
        self.response = response
        self.body = body
        self.underlying = underlying
    }

    /// The kind of a ``WebServiceError``: an open set, so that adding a kind breaks nobody.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The name of the code, such as `invalidURL`.
        public let description: String

        /// Makes a code of your own; two codes are equal when their names are.
        public init(_ name: String) {
            description = name
        }

        /// A base URL, a path or a placeholder from which no http or https URL can be formed.
        public static let invalidURL = Code("invalidURL")
        /// A method that is not a token (RFC 9110, section 9.1).
        public static let invalidMethod = Code("invalidMethod")
        /// A header field with an illegal name or value, or one that only the transport may set.
        public static let invalidHeader = Code("invalidHeader")
        /// Parameters or a body that cannot be encoded.
        public static let encoding = Code("encoding")
        /// A response body that is not what the handler needs, such as malformed JSON.
        public static let decoding = Code("decoding")
        /// No response body where the handler needs one.
        public static let emptyResponse = Code("emptyResponse")
        /// A status that a typed task does not accept; the body is at hand.
        public static let unacceptableStatus = Code("unacceptableStatus")
        /// A media type that a typed task does not accept; the body is at hand.
        public static let unexpectedContentType = Code("unexpectedContentType")
        /// A body longer than ``Request/maximumResponseBytes``; nothing of it is kept.
        public static let responseTooLarge = Code("responseTooLarge")
        /// The whole exchange took longer than ``Request/deadline``.
        public static let deadline = Code("deadline")
        /// More messages than ``SessionTask/maximumMessages`` for one exchange.
        public static let tooManyMessages = Code("tooManyMessages")
        /// A mock session has no stub for the request.
        public static let noStub = Code("noStub")
        /// No endpoint of the service supports the typed request.
        public static let noEndpoint = Code("noEndpoint")
        /// No storage of the service keeps answers to the typed request.
        public static let noStorage = Code("noStorage")
        /// Nothing is stored for the typed request, or nothing that is young enough or can be read any more.
        public static let noStoredData = Code("noStoredData")
        /// The same request, or one with the same key, is under way already.
        public static let duplicateRequest = Code("duplicateRequest")
        /// An endpoint made a value that is not of the request's output type.
        public static let unexpectedOutput = Code("unexpectedOutput")
        /// A request that a restricted provider does not let through.
        public static let requestNotAllowed = Code("requestNotAllowed")
        /// A storage failed; the error of the system or of the database is the underlying one.
        public static let storage = Code("storage")
        /// An entry that is larger than a storage can take.
        public static let entryTooLarge = Code("entryTooLarge")
    }
}

extension WebServiceError: CustomStringConvertible, CustomDebugStringConvertible, LocalizedError {
    /// The code and the message; no URL, header value or body, so it is safe to log. At most 1,000 bytes; what is longer is cut off.
    public var description: String {
        "\(code): \(message)".cut(to: Self.maximumLength)
    }

    /// The same as ``description``.
    public var debugDescription: String {
        description
    }

    /// The same as ``description``.
    public var errorDescription: String? {
        description
    }
}

extension WebServiceError: CustomReflectable {
    /// What `dump` shows: the code and the message only, because the other fields may hold secrets.
    public var customMirror: Mirror {
        let length = Self.maximumLength
        return Mirror(self, children: ["code": code.description.cut(to: length), "message": message.cut(to: length)], displayStyle: .struct)
    }

    /// The most bytes of everything that is printed.
    private static let maximumLength = 1_000
}

extension String {
    /// The text with at most so many bytes; what is longer ends with `…` in place of what is cut off.
    func cut(to length: Int) -> String {
        guard utf8.count > length else { return self }
        var end = utf8.index(startIndex, offsetBy: length - 3)
        while end.samePosition(in: unicodeScalars) == nil { utf8.formIndex(before: &end) }
        return self[..<end] + "…"
    }
}
