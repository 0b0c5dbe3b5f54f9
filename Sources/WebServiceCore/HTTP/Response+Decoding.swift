public import Foundation

extension Response {
    /// Returns the decoded body. For an optional type, an empty body is decoded as `nil`.
    ///
    /// - Throws: ``WebServiceError/Code/emptyResponse`` for an empty body, or
    ///   ``WebServiceError/Code/decoding`` with the decoder's error.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder())
        throws -> Value
    {
        try decoded(type, decoder)
    }

    /// Returns the body as JSON of any shape.
    ///
    /// - Throws: The errors of ``decode(_:decoder:)``.
    public func json() throws -> JSONValue {
        try decoded(JSONValue.self, JSONDecoder())
    }
}

extension Response {
    /// Returns the decoded body. An empty body decodes to `nil` for an optional type.
    func decoded<Value: Decodable>(_ type: Value.Type, _ decoder: any BodyDecoder) throws -> Value {
        if data.isEmpty {
            if let optional = type as? any OptionalValue.Type, let nothing = optional.nilValue as? Value {
                return nothing
            }
            throw error(
                .emptyResponse,
                "the response with status \(status) has no body to decode \(type) from; decode \(type)? to accept an "
                    + "empty body")
        }
        do {
            return try JSON.decode(type, from: data, using: decoder)
        } catch {
            let isPage = MediaType.essence(header(.contentType) ?? "") == "text/html"
            let reason = isPage ? ": the body is an HTML page" : Self.place(of: error)
            throw self.error(.decoding, "\(type) cannot be decoded\(reason)", underlying: error)
        }
    }

    /// Returns the body as a string, decoded from the charset of `Content-Type`, or from UTF-8 if
    /// that field specifies none.
    public func text() throws -> String {
        let charset = header(.contentType).flatMap { MediaType.parameter("charset", of: $0) }
        guard let encoding = Charset.encoding(named: charset ?? "utf-8") else {
            throw error(.decoding, "the charset of the response is not supported; read 'data' instead of text()")
        }
        guard let text = Charset.text(data, encoding) else {
            let name = charset == nil ? "UTF-8" : "the charset of its Content-Type"
            throw error(.decoding, "the response body is not text in \(name); read 'data' instead of text()")
        }
        return text
    }

    private func error(
        _ code: WebServiceError.Code, _ message: String, underlying: (any Error)? = nil
    ) -> WebServiceError {
        WebServiceError(code, message, response: self, underlying: underlying)
    }

    /// Returns the location of a decoding error within the value. Keys of a type are included; keys
    /// of a dictionary come from the server and are replaced by `*`.
    static func place(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            ": no value for '\(name(of: key))'\(path(context.codingPath))"
        case DecodingError.valueNotFound(let type, let context): ": no value of type \(type)\(path(context.codingPath))"
        case DecodingError.typeMismatch(let type, let context):
            ": the value is not of type \(type)\(path(context.codingPath))"
        case DecodingError.dataCorrupted(let context): ": the data is corrupted\(path(context.codingPath))"
        default: ""
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        guard !keys.isEmpty else { return " at the top level" }
        let text = keys.map { key in key.intValue.map { "[\($0)]" } ?? ".\(name(of: key))" }.joined()
        return " at \(text.prefix(200))".escapingControls
    }

    /// Returns the name of a key, or `*` if the key comes from the server. A key of a type is an
    /// enum case without a payload.
    private static func name(of key: any CodingKey) -> String {
        let mirror = Mirror(reflecting: key)
        return mirror.displayStyle == .enum && mirror.children.isEmpty ? String(key.stringValue.prefix(80)) : "*"
    }
}

/// A type that is optional, for checks at run time.
protocol OptionalValue {
    static var nilValue: Any { get }
    var isNilValue: Bool { get }
}

extension Optional: OptionalValue {
    static var nilValue: Any { Wrapped?(nilLiteral: ()) as Any }
    var isNilValue: Bool { self == nil }
}
