public import Foundation

extension Request {
    /// The body as bytes.
    ///
    /// The value is `nil` if there is no body, or if the body is a form, parts, a file, a stream or
    /// a provider. Bytes set here are sent as `application/octet-stream` unless a `Content-Type` is
    /// set or ``parameterEncoding`` is `json`.
    public var body: Data? {
        get {
            guard case .data(let data, _) = content.content else { return nil }
            return data
        }
        set { content = newValue.map { .data($0) } ?? .none }
    }

    /// The body as a form (WHATWG URL, section 5); `nil` if the body is not a form.
    public var formParameters: Parameters? {
        get {
            guard case .form(let parameters) = content.content else { return nil }
            return parameters
        }
        set { content = newValue.map(Body.form) ?? .none }
    }

    /// The body as named parts: text, bytes and files (RFC 7578); `nil` for any other body.
    ///
    /// A body without files is assembled in memory, once for each attempt. For a body with files,
    /// ``urlRequest()`` returns a `URLRequest` with an `httpBodyStream`. If a session of this
    /// library sends that `URLRequest`, or if the `URLRequest` is converted to a `Request`, the
    /// library recognizes the stream as this body.
    ///
    /// `CurlSession` reads the files while it sends them, in pieces of at most 64 KiB, on a thread
    /// shared with other exchanges. ``FoundationSession`` and `URLSession` would send a stream
    /// without its length. For these sessions, the body is therefore first written in pieces, in
    /// the background, to a file in the folder for temporary files. The file is accessible only to
    /// the user (0600), is unlinked immediately, and is mapped into memory; Foundation on Linux
    /// then copies all of it into memory. Foundation's task is created only after the body is
    /// written, so invalidating a `URLSession` before such a task is complete may terminate the
    /// process.
    public var multipart: MultipartFormData? {
        get {
            guard case .multipart(let form) = content.content else { return nil }
            return form
        }
        set { content = newValue.map(Body.multipart) ?? .none }
    }

    /// Sets the body to the JSON text (RFC 8259) of an object that `JSONSerialization` accepts.
    ///
    /// The object consists of arrays, dictionaries, strings, numbers, `Bool` and `NSNull`, or is a
    /// single one of these. Dictionary keys are sorted, so that the same object produces the same
    /// bytes.
    ///
    /// - Throws: ``WebServiceError/Code/encoding`` for anything that JSON cannot represent, such as
    ///   NaN or a `Date`, and for more than 512 levels. The body then remains unchanged.
    public mutating func serialize(json: Any) throws {
        content = .data(try Self.jsonData(json), contentType: ContentType.json)
    }

    /// Sets the body to an encoded value.
    ///
    /// - Parameters:
    ///   - value: The value to encode.
    ///   - encoder: The encoder. `JSONEncoder` and `PropertyListEncoder` conform to
    ///     ``BodyEncoder``.
    ///   - contentType: The media type that the encoder writes.
    /// - Throws: ``WebServiceError/Code/encoding`` with the encoder's error as
    ///   ``WebServiceError/underlying``. The body then remains unchanged.
    public mutating func serialize(
        _ value: some Encodable,
        encoder: any BodyEncoder = JSONEncoder(),
        contentType: String = ContentType.json
    ) throws {
        content = try Body(encoding: value, by: encoder, contentType: contentType)
    }

    /// Sets the body to the result of a closure.
    ///
    /// A ``SessionTask`` calls the closure once, in the background, at its first `resume()`. If the
    /// closure throws, nothing is sent and the error handlers receive the error. Cancelling the
    /// task cancels the closure's Swift task.
    ///
    /// - Parameters:
    ///   - contentType: The media type. Defaults to `application/json` if ``parameterEncoding`` is
    ///     `json`, otherwise to `application/octet-stream`.
    ///   - provider: The closure that returns the body.
    public mutating func setBodyProvider(
        contentType: String? = nil, _ provider: @escaping @Sendable () async throws -> Data
    ) {
        content = Body(.provider(contentType: contentType, provider))
    }

    /// Returns the request with the body of its provider, if it has one.
    func providingBody() async throws -> Request {
        guard case .provider(let contentType, let provider) = content.content, !parametersBelongInBody else {
            return self
        }
        var request = self
        request.content = .data(try await provider(), contentType: contentType)
        return request
    }

    /// Runs a closure that sets the body. An error of the closure is thrown when the request is
    /// encoded.
    mutating func keepingError(_ step: (inout Request) throws -> Void) {
        do {
            try step(&self)
        } catch {
            let error =
                error as? WebServiceError
                ?? WebServiceError(
                    .encoding, "the encoder of the body failed; see the underlying error", underlying: error)
            content = Body(.invalid(error))
        }
    }

    static func jsonData(_ json: Any) throws(WebServiceError) -> Data {
        guard !JSON.isTooDeep(json) else {
            throw WebServiceError(
                .encoding,
                "a value of type \(type(of: json)) is nested deeper than \(JSON.maximumDepth) levels; flatten it")
        }
        // On Apple platforms, an object that is not valid JSON raises an Objective-C exception
        // unless it is checked first.
        guard JSON.isValid(json) else {
            throw WebServiceError(
                .encoding,
                "a value of type \(type(of: json)) contains an element that JSON cannot represent; "
                    + "use strings, finite numbers, Booleans, NSNull, arrays and dictionaries with string keys")
        }
        do {
            return try JSONSerialization.data(withJSONObject: json, options: [.fragmentsAllowed, .sortedKeys])
        } catch {
            throw WebServiceError(
                .encoding, "a value of type \(type(of: json)) cannot be serialized as JSON; see the underlying error",
                underlying: error)
        }
    }
}

/// A type that encodes `Encodable` values as the bytes of a body.
public protocol BodyEncoder {
    /// Returns the bytes of the encoded value.
    ///
    /// - Throws: An error if the value cannot be encoded.
    func encode(_ value: some Encodable) throws -> Data
}

extension JSONEncoder: BodyEncoder {}
extension PropertyListEncoder: BodyEncoder {}
