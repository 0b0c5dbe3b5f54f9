public import Foundation

/// An event of an event stream (WHATWG HTML, section 9.2, "Server-sent events").
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event. Defaults to `message`.
    public var type: String

    /// The data of the event. Several `data` fields are joined with line feeds.
    public var data: String

    /// The last event ID of the stream when the event was dispatched; empty if there is none.
    ///
    /// An event without an `id` field has the ID of the event before it.
    public var id: String

    /// The reconnection time that the event sets; `nil` if it has no valid `retry` field.
    ///
    /// The time is at most one hour.
    public var retry: Duration?

    /// Creates an event.
    public init(type: String = "message", data: String, id: String = "", retry: Duration? = nil) {
        self.type = type
        self.data = data
        self.id = id
        self.retry = retry
    }

    /// Returns the data decoded as JSON, or by another decoder.
    ///
    /// - Throws: ``WebServiceError/Code/decoding`` with the data as ``WebServiceError/body`` and
    ///   the decoder's error as ``WebServiceError/underlying``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: any BodyDecoder = JSONDecoder()
    ) throws -> Value {
        try JSON.decode(type, from: Data(data.utf8), of: "the data of an event", using: decoder)
    }
}
