public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Anything that turns the bytes of a body into `Decodable` values.
///
/// For a `JSONDecoder` the framework first checks that the body is nested no deeper than 512 levels. A custom type that calls a
/// `JSONDecoder` itself has to do the same on Linux, where that class traps on some deeper texts.
public protocol BodyDecoder: Sendable {
    /// The value, or the reason why there is none.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: BodyDecoder {}
extension PropertyListDecoder: BodyDecoder {}

extension SessionTask {
    /// Decodes the body. An optional type takes an empty body as `nil`; any other fails with ``WebServiceError/Code/emptyResponse``.
    ///
    /// A value that cannot be decoded is ``WebServiceError/Code/decoding``, with the coding path in the message, the decoder's error as the underlying one
    /// and the body at hand (``WebServiceError/bodySnippet``). For a type whose conformance to `Decodable` belongs to the main actor see
    /// ``decode(onMain:)``.
    public func decode<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()
    ) -> TypedTask<Value> {
        typed { try $0.decoded(type, decoder) }
    }

    /// Makes a value of the answer on the main actor, for types that belong there; what the closure throws is the error.
    public func decode<Value: Sendable>(onMain decode: @escaping @MainActor @Sendable (Response) throws -> Value) -> TypedTask<Value> {
        let rules = ResponseRules()
        return TypedTask(self, rules, mainStep: { input in Result { try decode(try rules.accept(input)) } })
    }

    /// Makes a value of the answer in a way of your own, in the background; what the closure throws is the error.
    public func decode<Value: Sendable>(with decode: @escaping @Sendable (Response) throws -> Value) -> TypedTask<Value> {
        let rules = ResponseRules()
        return TypedTask(self, rules, step: { input in Result { try decode(try rules.accept(input)) } })
    }

    /// The body's bytes; empty when there is none.
    public func data() -> TypedTask<Data> {
        typed { $0.data }
    }

    /// The body as text in the charset that `Content-Type` names, UTF-8 without one. Bytes that are not of that charset, and charsets that are not
    /// known, fail with ``WebServiceError/Code/decoding``.
    public func string() -> TypedTask<String> {
        typed { try $0.text() }
    }

    /// The body as JSON of any shape; an answer that says that it has none (204, RFC 9110, section 15.3.5) is an empty object.
    public func json() -> TypedTask<JSONValue> {
        typed { $0.status == 204 && $0.data.isEmpty ? .object([:]) : try $0.decoded(JSONValue.self, JSONValue.Parser()) }
    }

    /// Nothing but success: a body, if there is one, is not looked at.
    public func empty() -> TypedTask<Void> {
        typed { _ in }
    }

    /// The answer, whatever its status.
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
    /// The body decoded; an optional type takes an empty one as `nil`.
    func decoded<Value: Decodable>(_ type: Value.Type, _ decoder: any BodyDecoder) throws -> Value {
        if data.isEmpty {
            if let optional = type as? any OptionalValue.Type, let nothing = optional.none as? Value { return nothing }
            throw error(.emptyResponse, "the response has no body to decode a \(type) from (status \(status))")
        }
        do {
            return try JSON.decode(type, from: data, using: decoder)
        } catch {
            throw self.error(.decoding, "a \(type) cannot be decoded\(Self.place(of: error))", underlying: error)
        }
    }

    /// The body as text in the charset that `Content-Type` names, UTF-8 without one.
    public func text() throws -> String {
        let charset = header(.contentType).flatMap { MediaType.parameter("charset", of: $0) }
        guard let encoding = Charset.encoding(named: charset ?? "utf-8") else {
            throw error(.decoding, "the charset of the response is not known")
        }
        guard let text = String(data: data, encoding: encoding) else {
            throw error(.decoding, "the response's body is not text of the charset it claims")
        }
        return text
    }

    private func error(_ code: WebServiceError.Code, _ message: String, underlying: (any Error)? = nil) -> WebServiceError {
        WebServiceError(code, message, response: urlResponse, body: data, underlying: underlying)
    }

    /// Where in the value a decoder stumbled. The keys of a type are named; those of a dictionary are the server's data and shown as `*`.
    private static func place(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context): ": no '\(name(of: key))'\(path(context.codingPath))"
        case DecodingError.valueNotFound(let type, let context): ": no \(type)\(path(context.codingPath))"
        case DecodingError.typeMismatch(let type, let context): ": no \(type)\(path(context.codingPath))"
        case DecodingError.dataCorrupted(let context): ": the data is corrupted\(path(context.codingPath))"
        default: ""
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        guard !keys.isEmpty else { return " at the top" }
        let text = keys.map { key in key.intValue.map { "[\($0)]" } ?? ".\(name(of: key))" }.joined()
        return " at \(text.prefix(200))".escapingControls
    }

    /// A key of a type is a case without a payload; every other one holds what came from the server.
    private static func name(of key: any CodingKey) -> String {
        let mirror = Mirror(reflecting: key)
        return mirror.displayStyle == .enum && mirror.children.isEmpty ? String(key.stringValue.prefix(80)) : "*"
    }
}

/// Tells optionals apart at run time.
private protocol OptionalValue {
    static var none: Any { get }
}

extension Optional: OptionalValue {
    fileprivate static var none: Any { Wrapped?(nilLiteral: ()) as Any }
}

/// The charsets that bodies are written in.
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
