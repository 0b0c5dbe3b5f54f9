public import Foundation

extension Request {
    /// The one body of a request.
    enum Content: Sendable {
        case none
        case data(Data, contentType: String?)
        case form(Parameters)
        case multipart(MultipartFormData)
        case provider(contentType: String?, @Sendable () async throws -> Data)
        indirect case invalid(WebServiceError)

        /// A media type that came with the body from outside.
        var givenContentType: String? {
            switch self {
            case .data(_, let contentType), .provider(let contentType, _): contentType == ContentType.json ? nil : contentType
            case .none, .form, .multipart, .invalid: nil
            }
        }

        var isNone: Bool {
            if case .none = self { true } else { false }
        }

        var contentType: String? {
            switch self {
            case .none, .invalid: nil
            case .data(_, let contentType): contentType ?? ContentType.octetStream
            case .form: ContentType.formEncoded
            case .multipart(let form): form.contentType
            case .provider(let contentType, _): contentType ?? ContentType.octetStream
            }
        }
    }

    /// The body as bytes. `nil` when there is none, or when it is a form, has parts or comes from a provider.
    ///
    /// Bytes set here are sent as `application/octet-stream` unless a `Content-Type` is set or
    /// ``parameterEncoding`` is `json`.
    public var body: Data? {
        get {
            guard case .data(let data, _) = content else { return nil }
            return data
        }
        set { content = newValue.map { .data($0, contentType: nil) } ?? .none }
    }

    /// The body as a form (WHATWG URL, section 5). `nil` when the body is not a form.
    public var formParameters: Parameters? {
        get {
            guard case .form(let parameters) = content else { return nil }
            return parameters
        }
        set { content = newValue.map(Content.form) ?? .none }
    }

    /// The body as parts with names: texts, bytes and files (RFC 7578). `nil` when the body is anything else.
    ///
    /// A body without files is put together in memory, once for each message. Of one with files, ``urlRequest()`` gives an `httpBodyStream`, which is
    /// taken for this same body again wherever that `URLRequest` is sent by a session of this framework or made into a `Request`.
    ///
    /// `CurlSession` reads the files while it sends, in pieces of 64 KiB at most, on a thread that it shares with other exchanges.
    /// ``FoundationSession`` and `URLSession` would send a stream without its length, so for them the body is written first, in the background and in
    /// pieces as well, to a file in the folder for temporary files, for the user alone (0600). It loses its name at once and is mapped into
    /// memory; Foundation on Linux then copies it into memory as a whole. Foundation's task is made only then: a `URLSession` that is invalidated before
    /// such a task is complete may end the process.
    public var multipart: MultipartFormData? {
        get {
            guard case .multipart(let form) = content else { return nil }
            return form
        }
        set { content = newValue.map(Content.multipart) ?? .none }
    }

    /// Sets the body to a JSON text (RFC 8259) of an object as `JSONSerialization` takes it: arrays, dictionaries, strings, numbers,
    /// `Bool`, `NSNull`, also a single one of these. Dictionary keys are sorted, so that the same object gives the same bytes.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` for anything JSON cannot say, such as NaN or a `Date`, and for more than 512 levels; the
    ///   body stays as it was.
    public mutating func serialize(json: Any) throws {
        content = .data(try Self.jsonData(json), contentType: ContentType.json)
    }

    /// Sets the body to an encoded value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - encoder: What encodes it; `JSONEncoder` and `PropertyListEncoder` conform to ``BodyEncoder``.
    ///   - contentType: The media type that the encoder writes.
    /// - Throws: ``WebServiceError/Code/encoding`` with the encoder's error as the underlying one; the body stays as it was.
    public mutating func serialize(
        _ value: some Encodable,
        encoder: some BodyEncoder = JSONEncoder(),
        contentType: String = ContentType.json
    ) throws {
        do {
            content = .data(try encoder.encode(value), contentType: contentType)
        } catch {
            throw WebServiceError(.encoding, "a value of the type \(type(of: value)) cannot be encoded", underlying: error)
        }
    }

    /// Sets the body to what a closure gives. A ``SessionTask`` calls it once, in the background, at its first `resume()`;
    /// when it throws, nothing is sent and the error handlers get the error. Cancelling the task cancels the closure's Swift task.
    ///
    /// - Parameters:
    ///   - contentType: The media type; `nil` means `application/octet-stream`, or
    ///     `application/json` where ``parameterEncoding`` is `json`.
    ///   - provider: Makes the body.
    public mutating func setBodyProvider(contentType: String? = nil, _ provider: @escaping @Sendable () async throws -> Data) {
        content = .provider(contentType: contentType, provider)
    }

    /// The request with its body made, where a provider makes it.
    func providingBody() async throws -> Request {
        guard case .provider(let contentType, let provider) = content, !parametersBelongInBody else { return self }
        var request = self
        request.content = .data(try await provider(), contentType: contentType)
        return request
    }

    /// Runs a step that makes a body; its error is kept and comes back when the request is encoded.
    mutating func keepingError(_ step: (inout Request) throws -> Void) {
        do {
            try step(&self)
        } catch {
            content = .invalid(error as? WebServiceError ?? WebServiceError(.encoding, "the body cannot be encoded", underlying: error))
        }
    }

    static func jsonData(_ json: Any) throws(WebServiceError) -> Data {
        guard !JSON.isTooDeep(json) else {
            throw WebServiceError(.encoding, "a value of the type \(type(of: json)) is nested deeper than \(JSON.maximumDepth) levels")
        }
        // A value that is no JSON raises an Objective-C exception on Apple platforms unless it is checked before.
        guard JSON.isValid(json) else {
            throw WebServiceError(.encoding, "a value of the type \(type(of: json)) holds something that JSON cannot say")
        }
        do {
            return try JSONSerialization.data(withJSONObject: json, options: [.fragmentsAllowed, .sortedKeys])
        } catch {
            throw WebServiceError(.encoding, "a value of the type \(type(of: json)) cannot be written as JSON", underlying: error)
        }
    }
}

/// Anything that turns `Encodable` values into the bytes of a body.
public protocol BodyEncoder {
    /// The encoded value, or the reason why there is none.
    func encode(_ value: some Encodable) throws -> Data
}

extension JSONEncoder: BodyEncoder {}
extension PropertyListEncoder: BodyEncoder {}
