import Foundation
import Testing

@testable import WebServiceCore

/// An event stream and the events that it contains.
struct EventRow: Sendable, CustomTestStringConvertible {
    var name: String
    var body: Data
    var events: [ServerSentEvent]
    /// The last event ID at the end of the stream.
    var lastEventID: String
    /// The reconnection time at the end of the stream.
    var reconnectionTime: Duration?

    init(
        _ name: String, _ body: String, _ events: [ExpectedEvent], lastEventID: String = "",
        reconnectionTime: Duration? = nil
    ) {
        self.init(name, bytes: Array(body.utf8), events, lastEventID: lastEventID, reconnectionTime: reconnectionTime)
    }

    init(
        _ name: String, bytes: [UInt8], _ events: [ExpectedEvent], lastEventID: String = "",
        reconnectionTime: Duration? = nil
    ) {
        self.name = name
        body = Data(bytes)
        self.events = events.map(\.event)
        self.lastEventID = lastEventID
        self.reconnectionTime = reconnectionTime
    }

    var testDescription: String { name }
}

/// An expected event. A string literal is the data of an event of type message without an ID.
struct ExpectedEvent: ExpressibleByStringLiteral {
    var event: ServerSentEvent

    init(type: String = "message", data: String, id: String = "", retry: Duration? = nil) {
        event = ServerSentEvent(type: type, data: data, id: id, retry: retry)
    }

    init(stringLiteral value: String) {
        self.init(data: value)
    }
}
