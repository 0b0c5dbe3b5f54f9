public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension SessionTask {
    /// Returns a typed task that decodes the body.
    ///
    /// An empty body decodes to `nil` for an optional type and fails with
    /// ``WebServiceError/Code/emptyResponse`` for any other.
    ///
    /// If the body cannot be decoded, the task fails with ``WebServiceError/Code/decoding``. The
    /// message of the error contains the coding path, its underlying error is that of the decoder,
    /// and ``WebServiceError/body`` contains the body. For a type whose conformance to `Decodable`
    /// is isolated to the main actor, see ``decode(onMain:)``.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - decoder: The decoder. Defaults to `nil`: the current ``WebService/decoder``.
    public func decode<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: (any BodyDecoder)? = nil
    ) -> TypedTask<Value> {
        let decoder = decoder ?? service.decoder
        return typed { try $0.decoded(type, decoder) }
    }

    /// Returns a typed task that decodes the response with a closure on the main actor.
    ///
    /// Use this method for types that are isolated to the main actor. An error thrown by the
    /// closure becomes the error of the task.
    public func decode<Value: Sendable>(
        onMain decode: @escaping @MainActor @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, accepting: .success, mainStep: { input, step in Result { try decode(try step.accept(input)) } })
    }

    /// Returns a typed task that decodes the response with a closure in the background.
    ///
    /// An error thrown by the closure becomes the error of the task.
    public func decode<Value: Sendable>(
        with decode: @escaping @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, step: { input, step in Result { try decode(try step.accept(input)) } })
    }

    /// Returns a typed task with the bytes of the body, empty if there is none.
    public func data() -> TypedTask<Data> {
        typed { $0.data }
    }

    /// Returns a typed task with the body as a string.
    ///
    /// The charset is that of `Content-Type`, or UTF-8 if it names none. A byte order mark is
    /// removed. If the charset is unsupported or the bytes are invalid in it, the task fails with
    /// ``WebServiceError/Code/decoding``. The charsets of the Encoding Standard (WHATWG) are
    /// supported, except IBM866, macintosh, x-mac-cyrillic and x-user-defined.
    public func string() -> TypedTask<String> {
        typed { try $0.text() }
    }

    /// Returns a typed task with the body as JSON of any shape.
    ///
    /// The value for status 204 without content (RFC 9110, section 15.3.5) is an empty object. If
    /// members of an object have the same name, the first one counts, as in `decode`.
    public func json() -> TypedTask<JSONValue> {
        typed {
            $0.status == 204 && $0.data.isEmpty ? .object([:]) : try $0.json()
        }
    }

    /// Returns a typed task without a value. The body is ignored.
    public func empty() -> TypedTask<Void> {
        typed { _ in }
    }

    /// Returns a typed task with a step that runs no custom closure.
    ///
    /// - Parameter statuses: The statuses that do not count as errors. Defaults to those from 200
    ///   to 299.
    func typed<Value: Sendable>(
        accepting statuses: ResponseRules.Statuses = .success, _ make: @escaping @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, TypedResult(.response(make), accepting: statuses))
    }
}
