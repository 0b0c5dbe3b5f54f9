public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A type that decodes `Decodable` values from the bytes of a body.
///
/// For a `JSONDecoder` the framework first checks that the body is nested no deeper than 512
/// levels. A custom decoder that calls a `JSONDecoder` has to do the same on Linux, where that
/// class traps on some deeper input.
public protocol BodyDecoder: Sendable {
    /// Returns the decoded value.
    ///
    /// - Throws: The reason for the failure.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: BodyDecoder {}
extension PropertyListDecoder: BodyDecoder {}

extension SessionTask {
    /// Decodes the body.
    ///
    /// An empty body decodes to `nil` for an optional type and fails with
    /// ``WebServiceError/Code/emptyResponse`` for any other.
    ///
    /// A body that cannot be decoded fails with ``WebServiceError/Code/decoding``. Its message
    /// contains the coding path, its underlying error is that of the decoder, and the body is
    /// available (``WebServiceError/bodySnippet``). For a type whose conformance to `Decodable` is
    /// isolated to the main actor, see ``decode(onMain:)``.
    public func decode<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()
    ) -> TypedTask<Value> {
        typed { try $0.decoded(type, decoder) }
    }

    /// Decodes the response with a closure on the main actor, for types isolated to it.
    ///
    /// An error thrown by the closure becomes the error of the task.
    public func decode<Value: Sendable>(
        onMain decode: @escaping @MainActor @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        let rules = ResponseRules()
        return TypedTask(self, rules, mainStep: { input in Result { try decode(try rules.accept(input)) } })
    }

    /// Decodes the response with a closure in the background.
    ///
    /// An error thrown by the closure becomes the error of the task.
    public func decode<Value: Sendable>(
        with decode: @escaping @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        let rules = ResponseRules()
        return TypedTask(self, rules, step: { input in Result { try decode(try rules.accept(input)) } })
    }

    /// Returns a typed task with the bytes of the body, empty if there is none.
    public func data() -> TypedTask<Data> {
        typed { $0.data }
    }

    /// Returns a typed task with the body as a string.
    ///
    /// The charset is that of `Content-Type`, or UTF-8 if it names none. An unsupported charset and
    /// bytes that are invalid in it fail with ``WebServiceError/Code/decoding``.
    public func string() -> TypedTask<String> {
        typed { try $0.text() }
    }

    /// Returns a typed task with the body as JSON of any shape.
    ///
    /// A response without content (204, RFC 9110, section 15.3.5) is an empty object.
    public func json() -> TypedTask<JSONValue> {
        typed {
            $0.status == 204 && $0.data.isEmpty ? .object([:]) : try $0.decoded(JSONValue.self, JSONValue.Parser())
        }
    }

    /// Returns a typed task without a value. The body is ignored.
    public func empty() -> TypedTask<Void> {
        typed { _ in }
    }

    /// Returns a typed task with the response, with any status.
    func answer() -> TypedTask<Response> {
        typed(ResponseRules(.any)) { $0 }
    }

    private func typed<Value: Sendable>(
        _ rules: ResponseRules = ResponseRules(), _ make: @escaping @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, rules, isOwn: true) { input in
            Result {
                do {
                    return try make(try rules.accept(input))
                } catch var error as WebServiceError where error.request == nil {
                    error.request = input.request
                    throw error
                }
            }
        }
    }
}

extension Response {
    /// Returns the decoded body. An empty body decodes to `nil` for an optional type.
    func decoded<Value: Decodable>(_ type: Value.Type, _ decoder: any BodyDecoder) throws -> Value {
        if data.isEmpty {
            if let optional = type as? any OptionalValue.Type, let nothing = optional.none as? Value { return nothing }
            throw error(.emptyResponse, "the response with status \(status) has no body to decode \(type) from")
        }
        do {
            return try JSON.decode(type, from: data, using: decoder)
        } catch {
            throw self.error(.decoding, "\(type) cannot be decoded\(Self.place(of: error))", underlying: error)
        }
    }

    /// Returns the body as a string in the charset of `Content-Type`, or in UTF-8 if it names none.
    public func text() throws -> String {
        let charset = header(.contentType).flatMap { MediaType.parameter("charset", of: $0) }
        guard let encoding = Charset.encoding(named: charset ?? "utf-8") else {
            throw error(.decoding, "the charset of the response is not supported")
        }
        guard let text = String(data: data, encoding: encoding) else {
            throw error(.decoding, "the response body is not valid in the charset of its Content-Type")
        }
        return text
    }

    private func error(
        _ code: WebServiceError.Code, _ message: String, underlying: (any Error)? = nil
    ) -> WebServiceError {
        WebServiceError(code, message, response: urlResponse, body: data, underlying: underlying)
    }

    /// Returns the location of a decoding error within the value. Keys of a type are included; keys
    /// of a dictionary come from the server and are replaced by `*`.
    private static func place(of error: any Error) -> String {
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

    /// A key of a type is an enum case without a payload. Any other key comes from the server.
    private static func name(of key: any CodingKey) -> String {
        let mirror = Mirror(reflecting: key)
        return mirror.displayStyle == .enum && mirror.children.isEmpty ? String(key.stringValue.prefix(80)) : "*"
    }
}

/// Identifies optional types at run time.
private protocol OptionalValue {
    static var none: Any { get }
}

extension Optional: OptionalValue {
    fileprivate static var none: Any { Wrapped?(nilLiteral: ()) as Any }
}

/// The supported charsets of bodies.
enum Charset {
    static func encoding(named name: String) -> String.Encoding? {
        switch name.asciiLowercased() {
        case "utf-8", "utf8": .utf8
        case "us-ascii", "ascii": .ascii
        case "iso-8859-1", "latin1", "iso_8859-1": .isoLatin1
        case "iso-8859-2", "latin2": .isoLatin2
        case "windows-1250": .windowsCP1250
        case "windows-1251": .windowsCP1251
        case "windows-1252", "cp1252": .windowsCP1252
        case "utf-16": .utf16
        case "utf-16le": .utf16LittleEndian
        case "utf-16be": .utf16BigEndian
        case "utf-32": .utf32
        case "shift_jis", "sjis": .shiftJIS
        case "euc-jp": .japaneseEUC
        default: nil
        }
    }
}
