public import Foundation

extension Response {
    /// Decodes the body. An optional type decodes an empty body as `nil`.
    ///
    /// - Throws: ``WebServiceError/Code/emptyResponse`` for an empty body, or ``WebServiceError/Code/decoding`` with the decoder's error.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self, decoder: some BodyDecoder = JSONDecoder()) throws -> Value {
        try decoded(type, decoder)
    }

    /// Returns the body as JSON of any shape.
    ///
    /// - Throws: The errors of ``decode(_:decoder:)``.
    public func json() throws -> JSONValue {
        try decoded(JSONValue.self, JSONValue.Parser())
    }
}
