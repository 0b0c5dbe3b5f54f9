public import Foundation

extension Request {
    /// The body of a request: bytes, a form, parts, a file or a stream.
    ///
    /// ```swift
    /// service.PUT("/videos/7").setBody(.file(url, contentType: "video/mp4"))
    /// service.POST("/log").setBody(.stream(length: nil, contentType: "text/plain") { lines() })
    /// ```
    /// A body is replayable if it can be sent again: in a retry, in a redirect that preserves it,
    /// or after a credential refresh. All bodies are replayable except
    /// ``stream(_:length:contentType:)`` and a ``MultipartFormData`` with such a part.
    public struct Body: Sendable {
        package enum Content: Sendable {
            case none
            case data(Data, contentType: String?)
            case form(Parameters)
            case multipart(MultipartFormData)
            case file(URL, contentType: String?)
            case stream(StreamedBody, contentType: String?)
            case provider(contentType: String?, @Sendable () async throws -> Data)
            indirect case invalid(WebServiceError)
        }

        package let content: Content

        init(_ content: Content) {
            self.content = content
        }

        /// The absence of a body.
        public static let none = Body(.none)

        /// Returns a body of bytes.
        ///
        /// - Parameters:
        ///   - data: The bytes.
        ///   - contentType: The media type. Defaults to `nil`: `application/json` if
        ///     ``Request/parameterEncoding`` is `json`, otherwise `application/octet-stream`.
        public static func data(_ data: Data, contentType: String? = nil) -> Body {
            Body(.data(data, contentType: contentType))
        }

        /// Returns a JSON body of a value, which is encoded immediately.
        ///
        /// If the value cannot be encoded, sending the request fails with
        /// ``WebServiceError/Code/encoding``.
        ///
        /// - Parameters:
        ///   - value: The value to encode.
        ///   - encoder: The encoder. Defaults to a `JSONEncoder`.
        public static func json(_ value: some Encodable, encoder: some BodyEncoder = JSONEncoder()) -> Body {
            do throws(WebServiceError) {
                return try Body(encoding: value, by: encoder, contentType: ContentType.json)
            } catch {
                return Body(.invalid(error))
            }
        }

        /// Returns a body of a form (WHATWG URL, section 5).
        public static func form(_ parameters: Parameters) -> Body {
            Body(.form(parameters))
        }

        /// Returns a body of named parts (RFC 7578); see ``Request/multipart``.
        public static func multipart(_ form: MultipartFormData) -> Body {
            Body(.multipart(form))
        }

        /// Returns a body with the content of a file.
        ///
        /// The file's status is read when the request is encoded. Its content is read while the
        /// request is sent, and again for each attempt. The request fails with
        /// ``WebServiceError/Code/encoding`` if the file cannot be read, is not a regular file, or
        /// changes before the last byte is read; the server then receives no complete request. See
        /// ``Request/multipart`` for the memory that each session uses.
        ///
        /// - Parameters:
        ///   - url: The URL of the file, with an absolute path.
        ///   - contentType: The media type. Defaults to `application/octet-stream`.
        public static func file(_ url: URL, contentType: String? = nil) -> Body {
            Body(.file(url, contentType: contentType))
        }

        /// Returns a body of a sequence that a closure creates for each attempt.
        ///
        /// `CurlSession` sends the bytes while the sequence produces them: at most 128 KiB and one
        /// element are buffered. The idle timeout does not run while the sequence is awaited. The
        /// sequence is stopped as soon as the response is complete or the connection ends. All
        /// other sessions send the request after the sequence has ended. Until then, a body of more
        /// than 1 MiB is stored in an unlinked temporary file.
        ///
        /// If the sequence throws an error, the request fails with that error. If the sequence
        /// produces more or fewer bytes than `length`, the request fails with
        /// ``WebServiceError/Code/encoding``. In both cases, the server receives no complete
        /// request.
        ///
        /// - Parameters:
        ///   - length: The number of bytes; `nil` if it is unknown. `CurlSession` then sends the
        ///     request chunked, which the server must support (RFC 9112, section 7.1). If the
        ///     length is 0, the closure is not called.
        ///   - contentType: The media type. Defaults to `application/octet-stream`.
        ///   - open: A closure that returns a new sequence of all bytes. It is called in the
        ///     background once for each attempt, in a Swift task that is cancelled with the
        ///     attempt.
        public static func stream<Chunks: AsyncSequence & Sendable>(
            length: Int64?, contentType: String? = nil, _ open: @escaping @Sendable () async throws -> Chunks
        ) -> Body where Chunks.Element == Data {
            Body(StreamedBody(length: length, isReplayable: true) { try await $0.take(open()) }, contentType)
        }

        /// Returns a body of a sequence that can be iterated over only once.
        ///
        /// The body is not replayable: a retry, a redirect or a credential refresh fails with
        /// ``WebServiceError/Code/bodyNotReplayable`` if the iteration has begun. See
        /// ``stream(length:contentType:_:)``.
        ///
        /// - Parameters:
        ///   - chunks: The bytes.
        ///   - length: The number of bytes; `nil` if it is unknown.
        ///   - contentType: The media type. Defaults to `application/octet-stream`.
        public static func stream<Chunks: AsyncSequence & Sendable>(
            _ chunks: Chunks, length: Int64? = nil, contentType: String? = nil
        ) -> Body where Chunks.Element == Data {
            Body(StreamedBody(length: length, isReplayable: false) { try await $0.take(chunks) }, contentType)
        }

        private init(_ stream: StreamedBody, _ contentType: String?) {
            guard let length = stream.length, length < 0 else {
                self.init(.stream(stream, contentType: contentType))
                return
            }
            let complaint = "the length of the body is negative; pass the number of bytes, or nil for an unknown length"
            self.init(.invalid(WebServiceError(.encoding, complaint)))
        }

        init(encoding value: some Encodable, by encoder: some BodyEncoder, contentType: String) throws(WebServiceError)
        {
            do {
                self.init(.data(try encoder.encode(value), contentType: contentType))
            } catch {
                throw WebServiceError(
                    .encoding, "the encoder rejected a value of type \(type(of: value)); see the underlying error",
                    underlying: error)
            }
        }

        /// Whether the body can be sent any number of times.
        public var isReplayable: Bool { streams.allSatisfy(\.isReplayable) }

        /// The sequences that produce the body or parts of it.
        var streams: [StreamedBody] {
            switch content {
            case .stream(let stream, _): [stream]
            case .multipart(let form): form.streams
            case .none, .data, .form, .file, .provider, .invalid: []
            }
        }

        /// The media type that the caller specified for the body, which must be validated.
        var givenContentType: String? {
            switch content {
            case .data(_, let contentType), .provider(let contentType, _), .file(_, let contentType),
                .stream(_, let contentType):
                contentType == ContentType.json ? nil : contentType
            case .none, .form, .multipart, .invalid: nil
            }
        }

        package var isNone: Bool {
            if case .none = content { true } else { false }
        }

        var contentType: String? {
            switch content {
            case .none, .invalid: nil
            case .form: ContentType.formEncoded
            case .multipart(let form): form.contentType
            case .data(_, let contentType), .provider(let contentType, _), .file(_, let contentType),
                .stream(_, let contentType):
                contentType ?? ContentType.octetStream
            }
        }
    }

    /// Whether the body can be sent now.
    ///
    /// The value is `false` for a sequence that can be iterated over only once if the iteration has
    /// begun. A retry policy reads this property before it waits, and an exchange reads it before
    /// it sends each request (`Exchange.swift`).
    package var canSendBody: Bool { content.streams.allSatisfy(\.canBeOpened) || parametersBelongInBody }
}

extension WebServiceError.Code {
    /// A request that must be sent again, but whose body can be read only once.
    ///
    /// ``WebServiceError/response`` or ``WebServiceError/underlying`` is usually the response or
    /// error that required the request to be sent again.
    public static let bodyNotReplayable = WebServiceError.Code("bodyNotReplayable")
}

extension WebServiceError {
    /// Returns the error for a request that cannot be sent again after a result.
    package static func bodyNotReplayable(_ request: Request, after result: Result<Response, any Error>? = nil) -> Self
    {
        var error = WebServiceError(
            .bodyNotReplayable,
            "the request has to be sent again, but its body can be read only once; "
                + "create the body with stream(length:) and a closure that returns a new sequence", request: request)
        switch result {
        case .success(let response)?: error.response = response.withoutStream
        case .failure(let cause)?: error.underlying = cause
        case nil: break
        }
        return error
    }
}
