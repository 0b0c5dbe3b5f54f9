public import Foundation

extension ResponseBody {
    /// Returns the lines of the body as strings.
    ///
    /// Lines end with LF or CRLF; no other character ends a line. Empty lines and a last line
    /// without a line break are included. Invalid UTF-8 is replaced with U+FFFD, and a byte order
    /// mark at the start of the body is removed.
    ///
    /// - Parameter maximumLength: The maximum length of a line in bytes. For a longer line, the
    ///   sequence throws ``WebServiceError/Code/elementTooLarge``. Defaults to 1 MiB.
    public func lines(maximumLength: Int = 1 << 20) -> BodySequence<String> {
        BodySequence { ParsedBody { (self, LineParser(maximumLength: maximumLength)) } }
    }

    /// Returns the values of a body in the JSON Lines format: one JSON value per line.
    ///
    /// Lines that are empty or contain only whitespace are skipped, and the separators of JSON text
    /// sequences (RFC 7464) are accepted. For a line that cannot be decoded, the sequence throws
    /// ``WebServiceError/Code/decoding`` with the line number in its message.
    ///
    /// - Parameters:
    ///   - type: The type of a value.
    ///   - decoder: The decoder. Defaults to a new `JSONDecoder`.
    ///   - maximumLength: The maximum length of a line in bytes. For a longer line, the sequence
    ///     throws ``WebServiceError/Code/elementTooLarge``. Defaults to 16 MiB.
    public func jsonLines<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder(), maximumLength: Int = 16 << 20
    ) -> BodySequence<Value> {
        BodySequence {
            ParsedBody { (self, JSONLinesParser(type, decoder: decoder, maximumLength: maximumLength)) }
        }
    }

    /// Returns the parts of a multipart body (RFC 2046, section 5.1), such as `multipart/mixed` or
    /// `multipart/x-mixed-replace`.
    ///
    /// The sequence throws ``WebServiceError/Code/unexpectedContentType`` if the media type is not
    /// multipart or has no boundary of 1 to 70 bytes, ``WebServiceError/Code/decoding`` for a
    /// malformed or truncated body, and ``WebServiceError/Code/elementTooLarge`` if the header
    /// fields of a part exceed 16 KiB.
    ///
    /// - Parameter maximumSize: The maximum size of a part in bytes. For a larger part, the
    ///   sequence throws ``WebServiceError/Code/elementTooLarge``. Defaults to 64 MiB.
    public func parts(maximumSize: Int = 64 << 20) -> BodySequence<ResponseBody.Part> {
        BodySequence {
            ParsedBody { (self, try BodyPartParser(contentType: contentType, maximumPartSize: maximumSize)) }
        }
    }

    /// Returns the events of an event stream (WHATWG HTML, section 9.2).
    ///
    /// - Parameters:
    ///   - maximumSize: The maximum size of an event in bytes. For a larger event, the sequence
    ///     throws ``WebServiceError/Code/elementTooLarge``. Defaults to 16 MiB.
    public func events(maximumSize: Int = 16 << 20) -> BodySequence<ServerSentEvent> {
        BodySequence { ParsedBody { (self, ServerSentEventParser(maximumSize: maximumSize)) } }
    }
}

extension SessionTask {
    /// Returns the lines of the response body; see ``ResponseBody/lines(maximumLength:)``.
    ///
    /// Reading the first element sends the request.
    public func lines(maximumLength: Int = 1 << 20) -> BodySequence<String> {
        let body = streamedBody()
        return BodySequence { ParsedBody { (try await body(), LineParser(maximumLength: maximumLength)) } }
    }

    /// Returns the values of a response body in the JSON Lines format; see
    /// ``ResponseBody/jsonLines(_:decoder:maximumLength:)``.
    ///
    /// Reading the first element sends the request. The decoder defaults to the current
    /// ``WebService/decoder``.
    public func jsonLines<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: (any BodyDecoder)? = nil, maximumLength: Int = 16 << 20
    ) -> BodySequence<Value> {
        let decoder = decoder ?? service.decoder
        let body = streamedBody()
        return BodySequence {
            ParsedBody { (try await body(), JSONLinesParser(type, decoder: decoder, maximumLength: maximumLength)) }
        }
    }

    /// Returns the parts of a multipart response body; see ``ResponseBody/parts(maximumSize:)``.
    ///
    /// Reading the first element sends the request.
    public func parts(maximumSize: Int = 64 << 20) -> BodySequence<ResponseBody.Part> {
        let body = streamedBody()
        return BodySequence {
            ParsedBody {
                let body = try await body()
                return (body, try BodyPartParser(contentType: body.contentType, maximumPartSize: maximumSize))
            }
        }
    }

    /// Returns a closure that sends the request and returns the body as a stream.
    private func streamedBody() -> @Sendable () async throws -> ResponseBody {
        let task = stream()
        return { try await task.value.body }
    }
}

extension ResponseBody {
    /// A part of a multipart response body (RFC 2046, section 5.1).
    public struct Part: Sendable, Hashable {
        /// The header fields of the part, in order.
        public var headers: Headers

        /// The bytes of the part, as received: a `Content-Transfer-Encoding` is not decoded.
        public var data: Data

        /// Creates a part from its header fields and bytes.
        public init(headers: Headers, data: Data) {
            self.headers = headers
            self.data = data
        }
    }
}
