import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// The last messages of a WebSocket, and the end of the connection, without secrets.
struct ShownMessages: Encodable {
    /// A message, as a row of the page.
    struct Row: Encodable {
        let isReceived: Bool
        let isText: Bool
        /// The time in milliseconds since the start of the exchange.
        let time: Double
        let body: ShownBody
    }

    /// The Close frame of the server.
    struct Closure: Encodable {
        let code: UInt16
        let reason: String
    }

    /// The number of older messages that were dropped.
    let dropped: Int
    let rows: [Row]
    let closure: Closure?

    /// - Parameter showsBinary: Whether data that cannot be redacted is shown.
    init(
        _ messages: RecordedMessages, of exchange: RecordedExchange, _ redaction: Redaction, showsBinary: Bool
    ) {
        dropped = messages.dropped
        rows = messages.messages.map { message in
            Row(
                isReceived: message.isReceived, isText: message.isText,
                time: message.date.timeIntervalSince(exchange.start) * 1000,
                body: ShownBody(RecordedBody(message), message.headers, redaction, showsBinary: showsBinary))
        }
        closure = exchange.closure.map { Closure(code: $0.code.rawValue, reason: redaction.text($0.reason)) }
    }
}

extension RecordedMessages.Message {
    /// The header fields that a body with this content would have.
    var headers: Headers { contentType.map { ["Content-Type": $0] } ?? [:] }
}
