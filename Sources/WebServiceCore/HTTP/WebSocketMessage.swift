public import Foundation

/// A message of a WebSocket connection (RFC 6455, section 5.6).
public enum WebSocketMessage: Sendable, Hashable {
    /// Text.
    case text(String)
    /// Binary data.
    case data(Data)

    /// The bytes of the message; those of text are its UTF-8.
    public var bytes: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .data(let data): data
        }
    }

    /// The number of bytes.
    public var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let data): data.count
        }
    }
}

extension WebSocketMessage {
    /// Returns the message decoded as JSON, or by another decoder.
    ///
    /// - Throws: ``WebServiceError/Code/decoding`` with the bytes of the message as
    ///   ``WebServiceError/body`` and the decoder's error as ``WebServiceError/underlying``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: any BodyDecoder = JSONDecoder()
    ) throws -> Value {
        try JSON.decode(type, from: bytes, of: "a message", using: decoder)
    }
}
