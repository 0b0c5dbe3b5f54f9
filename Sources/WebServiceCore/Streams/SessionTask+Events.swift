import Foundation

extension SessionTask {
    /// Returns the events of an event stream (WHATWG HTML, section 9.2, "Server-sent events").
    ///
    /// ```swift
    /// for try await event in service.GET("/news").events(.reconnecting()) { print(event.data) }
    /// ```
    /// Reading the first element sends the request. Its `Accept` field is set to
    /// `text/event-stream` unless the field already contains this media type, and
    /// `Cache-Control: no-store` is added unless the request has a `Cache-Control` field. For a
    /// media type other than `text/event-stream`, the sequence throws
    /// ``WebServiceError/Code/unexpectedContentType``. Status 204 ends the sequence.
    ///
    /// - Parameters:
    ///   - reconnection: The policy for reconnecting. Defaults to
    ///     ``ServerSentEvent/Reconnection/never``.
    ///   - lastEventID: The last event ID of an earlier event stream that this stream continues.
    ///     The ID is sent as `Last-Event-ID` if a header field can contain it. Defaults to an empty
    ///     string, which means that there is none.
    ///   - maximumSize: The maximum size of an event in bytes. For a larger event, the sequence
    ///     throws ``WebServiceError/Code/elementTooLarge``. Defaults to 16 MiB.
    ///   - terminator: A closure that returns whether an event is the last one. The sequence ends
    ///     after that event, and the connection is closed. If the connection is closed or lost
    ///     before that event and the sequence does not reconnect, or if a new connection receives
    ///     status 204, the sequence throws ``WebServiceError/Code/streamEndedEarly``, so that a
    ///     truncated response is not mistaken for a complete one. Other errors, and the error of a
    ///     connection if no stream was opened, are thrown unchanged. Defaults to `nil`: the end of
    ///     the connection ends the sequence.
    public func events(
        _ reconnection: ServerSentEvent.Reconnection = .never, lastEventID: String = "", maximumSize: Int = 16 << 20,
        until terminator: (@Sendable (ServerSentEvent) -> Bool)? = nil
    ) -> ServerSentEvent.Stream<ServerSentEvent> {
        let status = EventStreamStatus(lastEventID: lastEventID)
        return ServerSentEvent.Stream(
            status,
            BodySequence {
                EventConnection(self, reconnection, status, maximumSize: maximumSize, until: terminator)
            })
    }

    /// Returns the events of an event stream whose last event has the given data, such as
    /// `"[DONE]"`; see ``events(_:lastEventID:maximumSize:until:)-2jzad``.
    public func events(
        _ reconnection: ServerSentEvent.Reconnection = .never, lastEventID: String = "", maximumSize: Int = 16 << 20,
        until lastData: String
    ) -> ServerSentEvent.Stream<ServerSentEvent> {
        events(reconnection, lastEventID: lastEventID, maximumSize: maximumSize) { $0.data == lastData }
    }

    /// Returns the decoded data of an event stream's events.
    ///
    /// The elements correspond to those of ``events(_:lastEventID:maximumSize:until:)-2jzad``
    /// without the terminating event, whose data need not be valid. For data that cannot be
    /// decoded, the sequence throws ``WebServiceError/Code/decoding``. The decoder defaults to the
    /// current ``WebService/decoder``.
    public func events<Value: Decodable & Sendable>(
        _ type: Value.Type, _ reconnection: ServerSentEvent.Reconnection = .never, lastEventID: String = "",
        decoder: (any BodyDecoder)? = nil, maximumSize: Int = 16 << 20,
        until terminator: (@Sendable (ServerSentEvent) -> Bool)? = nil
    ) -> ServerSentEvent.Stream<Value> {
        let decoder = decoder ?? service.decoder
        let status = EventStreamStatus(lastEventID: lastEventID)
        return ServerSentEvent.Stream(
            status,
            BodySequence {
                EventValues(
                    events: EventConnection(self, reconnection, status, maximumSize: maximumSize, until: terminator),
                    terminator: terminator, decoder: decoder)
            })
    }

    /// Returns the decoded data of the events in an event stream, up to an event with the given
    /// data, such as `"[DONE]"`, which is not decoded.
    public func events<Value: Decodable & Sendable>(
        _ type: Value.Type, _ reconnection: ServerSentEvent.Reconnection = .never, lastEventID: String = "",
        decoder: (any BodyDecoder)? = nil, maximumSize: Int = 16 << 20, until lastData: String
    ) -> ServerSentEvent.Stream<Value> {
        events(type, reconnection, lastEventID: lastEventID, decoder: decoder, maximumSize: maximumSize) {
            $0.data == lastData
        }
    }
}

/// The decoded data of the events of a stream, up to the terminating event.
struct EventValues<Value: Decodable & Sendable>: ElementReader {
    var events: EventConnection
    let terminator: (@Sendable (ServerSentEvent) -> Bool)?
    let decoder: any BodyDecoder

    mutating func next() async throws -> Value? {
        guard let event = try await events.next(), terminator?(event) != true else { return nil }
        return try event.decode(Value.self, decoder: decoder)
    }
}
