public import Foundation

/// An error of this library, with the state of the exchange when it occurred.
///
/// With every session of this library, transport failures such as a failed connection, a timeout or
/// a cancellation are `URLError` values instead. The ``code`` distinguishes errors. New codes may
/// be added without notice, so a `switch` over them needs a `default`.
public struct WebServiceError: Error, Sendable {
    /// The kind of the error.
    public var code: Code

    /// A sentence that names what is wrong and, unless that is obvious, what to do. It contains the
    /// names of fields, and no values that may be secret.
    public var message: String

    /// The request at the time of the error; `nil` if the error occurred outside a request.
    public var request: Request?

    /// The response, without a streamed body; `nil` if none was received.
    public var response: Response?

    /// The bytes that cannot be used; `nil` if none were received.
    ///
    /// These bytes are the body of ``response``, or an element of a streamed body, such as a line.
    public var body: Data? { element ?? response.flatMap { $0.data.isEmpty ? nil : $0.data } }

    /// The element of a streamed body; `nil` for a whole body.
    private let element: Data?

    /// The error that caused this one; `nil` if this is the first cause.
    public var underlying: (any Error)?

    /// The duration until the next trial of the circuit breaker that refused the request; `nil` if
    /// there is none.
    package var trialDelay: Duration?

    /// Creates an error. All arguments but the code and the message default to `nil`.
    ///
    /// If `body` is `nil`, ``body`` is that of the response.
    public init(
        _ code: Code,
        _ message: String,
        request: Request? = nil,
        response: Response? = nil,
        body: Data? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.request = request
        self.response = response?.withoutStream
        element = body
        self.underlying = underlying
    }

    /// The kind of a ``WebServiceError``.
    ///
    /// The set is open: a new code is not a breaking change.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The name of the code, such as `invalidURL`.
        public let description: String

        /// Creates a custom code. Codes with equal names are equal.
        public init(_ name: String) {
            description = name
        }

        /// A base URL, path or placeholder that does not form an http or https URL.
        public static let invalidURL = Code("invalidURL")
        /// A method that is not a token (RFC 9110, section 9.1).
        public static let invalidMethod = Code("invalidMethod")
        /// A header field with an invalid name or value, or one that only the transport may set;
        /// also an invalid ``Cookie``.
        public static let invalidHeader = Code("invalidHeader")
        /// Parameters, options, credentials or a body that cannot be encoded.
        public static let encoding = Code("encoding")
        /// A response body that the handler cannot use, such as malformed JSON.
        public static let decoding = Code("decoding")
        /// A response without a body, although a handler requires one.
        public static let emptyResponse = Code("emptyResponse")
        /// A status that a typed task does not accept, or a status other than 200 to 299 of a
        /// response whose body is incomplete. ``WebServiceError/body`` is the part that was
        /// received, and ``WebServiceError/underlying`` is the error that ended the body.
        public static let unacceptableStatus = Code("unacceptableStatus")
        /// A media type that a typed task or the reader of a stream does not accept.
        /// ``WebServiceError/body`` contains the received body, unless it is streamed.
        public static let unexpectedContentType = Code("unexpectedContentType")
        /// A response body larger than its limit, such as ``Request/Options/maximumResponseBytes``,
        /// or header fields that are too large.
        public static let responseTooLarge = Code("responseTooLarge")
        /// An element of a streamed response body, such as a line, or a WebSocket message that is
        /// larger than its limit.
        public static let elementTooLarge = Code("elementTooLarge")
        /// An exchange that exceeded its ``Request/Options/deadline`` or that of its scope.
        public static let deadline = Code("deadline")
        /// A task that was resumed after ``WebService/invalidate()`` or
        /// ``WebService/finish(within:)``, or after the account of its service has ended.
        public static let serviceInvalidated = Code("serviceInvalidated")
        /// A streamed body that is being read, or was read, by another iterator; also the messages
        /// of a WebSocket.
        public static let streamConsumed = Code("streamConsumed")
        /// An event stream that ended before its terminating event; see
        /// ``SessionTask/events(_:lastEventID:maximumSize:until:)-2jzad``.
        public static let streamEndedEarly = Code("streamEndedEarly")
        /// An exchange with more than ``SessionTask/maximumAttempts`` attempts.
        public static let tooManyAttempts = Code("tooManyAttempts")
        /// A request for which a mock session has no stub.
        public static let noStub = Code("noStub")
        /// A typed request that no endpoint of the service supports.
        public static let noEndpoint = Code("noEndpoint")
        /// A typed request whose responses no storage of the service stores.
        public static let noStorage = Code("noStorage")
        /// A typed request without a stored value that is recent enough and can be read.
        public static let noStoredData = Code("noStoredData")
        /// A request that is already in flight, or whose key is that of a request in flight.
        public static let duplicateRequest = Code("duplicateRequest")
        /// A value from an endpoint that is not of the request's output type.
        public static let unexpectedOutput = Code("unexpectedOutput")
        /// A request that a restricted provider does not allow.
        public static let requestNotAllowed = Code("requestNotAllowed")
        /// A failure of a storage or of another local file. ``WebServiceError/underlying`` is the
        /// system or database error, if there is one.
        public static let storage = Code("storage")
        /// A download that failed for a local reason, such as a full disk, or whose response is not
        /// the requested part of the file; or a body that ``ResponseBody/write(to:)`` cannot write.
        ///
        /// ``WebServiceError/underlying`` is the system error, if there is one. The bytes that a
        /// download has received are retained, and the next download to the same destination
        /// resumes after them.
        public static let download = Code("download")
        /// A download to a destination that another download is using, in this or another process;
        /// or the removal of a partial file that a download is using or has changed since it was
        /// listed.
        public static let downloadInProgress = Code("downloadInProgress")
        /// A downloaded file or part whose hash is not the expected one. The file or part has been
        /// removed.
        public static let digestMismatch = Code("digestMismatch")
        /// An entry that is too large for a storage.
        public static let entryTooLarge = Code("entryTooLarge")
    }
}

extension WebServiceError: RedactedReflectable, LocalizedError {
    /// The code, the message, and the method and URL of the request, truncated to 1,000 bytes.
    ///
    /// The description is safe to log: it contains no user information, query or body, and no
    /// header value that may be secret.
    public var description: String {
        let place = request.flatMap { $0.url == nil ? nil : " (\($0))" } ?? ""
        return "\(code): \(message)\(place)".cut(to: Self.maximumLength)
    }

    /// A sentence about what is wrong, for the users of the program, truncated to 1,000 bytes. It
    /// omits the code, the request and the advice for developers. It is also the
    /// `localizedDescription`.
    ///
    /// If the response contains a problem document (RFC 9457), its title and detail follow: `The
    /// server responded with 409 Conflict: Out of stock. Two kegs are left.` This text comes from
    /// the server, with control characters replaced by spaces, so log the ``description`` instead.
    public var errorDescription: String? {
        let end = message.range(of: "; ")?.lowerBound ?? message.endIndex
        let problem = problem
        let texts = [problem?.title, problem?.detail].compactMap { $0?.printable }.filter { !$0.isEmpty }
        let cause = message[..<end] + (texts.isEmpty ? "" : ": " + texts.joined(separator: ". "))
        // Any other first word may be a name, such as libcurl, and is not capitalized.
        let isCapitalized = ["the", "a", "an", "another", "other"].contains(cause.prefix { $0 != " " })
        let sentence = isCapitalized ? cause.prefix(1).uppercased() + cause.dropFirst() : cause
        return (sentence + (sentence.last?.isPunctuation == true ? "" : ".")).cut(to: Self.maximumLength)
    }

    /// The maximum size of a description, in bytes.
    private static let maximumLength = 1_000
}

extension String {
    /// The string without surrounding white space and without a final period, in which control
    /// characters and line breaks are replaced by spaces.
    fileprivate var printable: String {
        let scalars = unicodeScalars.prefix(1_000).map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: " " as Unicode.Scalar
            default: scalar
            }
        }
        let text = String(String.UnicodeScalarView(scalars)).trimmingCharacters(in: .whitespaces)
        return text.hasSuffix(".") ? String(text.dropLast()) : text
    }

    /// Returns the string truncated to the given number of bytes.
    ///
    /// A truncated string ends with `…`, which counts toward that number.
    func cut(to length: Int) -> String {
        guard utf8.count > length else { return self }
        var end = utf8.index(startIndex, offsetBy: length - 3)
        while end.samePosition(in: unicodeScalars) == nil { utf8.formIndex(before: &end) }
        return self[..<end] + "…"
    }
}

extension WebServiceError.Code {
    /// The codes of requests that interceptors of `WebServiceResilience` do not send, because the
    /// server fails or is overloaded.
    package static let refusals = Set(
        ["circuitOpen", "concurrencyLimitExceeded", "rateLimitExceeded"].map(WebServiceError.Code.init))
}

extension WebServiceError {
    /// The response whose body is incomplete (``Exchange/response(to:)``); `nil` for any
    /// other error.
    package var incompleteResponse: Response? { code == .unacceptableStatus && underlying != nil ? response : nil }

    /// Returns the error for a body that is longer than a limit in bytes.
    package static func tooLarge(
        _ maximum: Int, _ request: Request? = nil, _ response: Response? = nil,
        increasing limit: String = "maximumResponseBytes"
    ) -> WebServiceError {
        WebServiceError(
            .responseTooLarge,
            "the response body is longer than \(maximum) bytes; increase \(limit) or read a stream",
            request: request,
            response: response?.withoutBody)
    }
}

extension WebServiceError {
    /// The status code of the response; `nil` if there is no response.
    public var status: Int? { response.flatMap { $0.isHTTP ? $0.status : nil } }

    /// Returns the body decoded as a custom type, such as a server's description of its errors.
    ///
    /// - Throws: The error of the decoder, or ``Code/emptyResponse`` if there is no body.
    public func decodeBody<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()
    ) throws -> Value {
        guard let body, !body.isEmpty else {
            throw WebServiceError(
                .emptyResponse, "the error has no body to decode \(type) from; check 'body' first", request: request,
                response: response)
        }
        return try JSON.decode(type, from: body, using: decoder)
    }

    /// The problem that the server describes in an `application/problem+json` body (RFC 9457).
    ///
    /// The value is `nil` for any other body.
    public var problem: ProblemDetails? {
        let type = response?.header(.contentType) ?? ""
        guard MediaType.essence(type) == "application/problem+json" else { return nil }
        let json = try? decodeBody(JSONValue.self)  // other bodies describe no problem
        guard case .object(let members)? = json else { return nil }
        return ProblemDetails(members)
    }
}

/// The details of a problem that a server reports (RFC 9457).
public struct ProblemDetails: Sendable, Hashable, Decodable {
    /// A URI that identifies the type of the problem. Defaults to `about:blank`.
    public let type: String
    /// A human-readable summary of the problem's type.
    public let title: String?
    /// The status code set by the origin server.
    public let status: Int?
    /// A human-readable explanation of this occurrence of the problem.
    public let detail: String?
    /// A URI that identifies this occurrence of the problem.
    public let instance: String?
    /// All other members of the problem document.
    public let extensions: [String: JSONValue]

    /// Creates problem details by decoding a problem document.
    ///
    /// Members of the wrong type are ignored, as the standard requires.
    public init(from decoder: any Decoder) throws {
        self.init(try [String: JSONValue](from: decoder))
    }

    fileprivate init(_ members: [String: JSONValue]) {
        var members = members
        type = members.removeValue(forKey: "type")?.string ?? "about:blank"
        title = members.removeValue(forKey: "title")?.string
        status = members.removeValue(forKey: "status")?.int
        detail = members.removeValue(forKey: "detail")?.string
        instance = members.removeValue(forKey: "instance")?.string
        extensions = members
    }
}

extension SystemFailure {
    /// Returns an error with this cause. Its underlying error is a `POSIXError`.
    package func error(_ code: WebServiceError.Code, _ complaint: String? = nil) -> WebServiceError {
        WebServiceError(
            code, complaint.map { "\($0): \(description)" } ?? description,
            underlying: POSIXError(POSIXErrorCode(rawValue: number) ?? .EIO))
    }
}

/// Returns the result of a system call; see ``system(_:_:)``.
///
/// - Throws: ``WebServiceError`` with the given code.
@discardableResult
package func system<Result: FixedWidthInteger>(
    _ name: String, orThrow code: WebServiceError.Code, _ call: () -> Result
) throws(WebServiceError) -> Result {
    do throws(SystemFailure) { return try system(name, call) } catch { throw error.error(code) }
}

extension WakeUp {
    /// - Throws: ``WebServiceError`` with the given code.
    package convenience init(orThrow code: WebServiceError.Code) throws(WebServiceError) {
        do throws(SystemFailure) { try self.init() } catch { throw error.error(code) }
    }
}

extension JoinableThread {
    /// Starts a thread; see ``init(_:)``.
    ///
    /// - Throws: ``WebServiceError`` with the given code.
    package init(
        orThrow code: WebServiceError.Code, stackSize: Int = 1 << 20, _ body: @escaping @Sendable () -> Void
    ) throws(WebServiceError) {
        do throws(SystemFailure) { try self.init(stackSize: stackSize, body) } catch { throw error.error(code) }
    }
}

/// The cause of the error of a request that was refused before it was sent.
///
/// If the refused request repeats an earlier one, the exchange usually ends with the result of the
/// earlier request.
package protocol Refusal: Error {}
