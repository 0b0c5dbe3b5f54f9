import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// The changes to the list since an earlier version.
struct ExchangeChanges: Encodable {
    let oldest: Int
    let exchanges: [ListedExchange]

    init(_ changes: ExchangeStore.Changes, _ redaction: Redaction) {
        oldest = changes.oldest
        exchanges = changes.exchanges.map { ListedExchange($0, redaction) }
    }
}

/// A row of the list, without secrets.
struct ListedExchange: Encodable {
    let number: Int
    let parent: Int?
    let service: String?
    let name: String
    let method: String?
    let url: String?
    let state: String
    let status: Int?
    let error: String?
    /// `true` if the exchange was cancelled; otherwise `nil`.
    let cancelled: Bool?
    let source: String?
    /// `true` if the exchange consists of other exchanges; otherwise `nil`.
    let composite: Bool?
    /// The places of the secrets that were sent: the names of header fields, `URL`, and `NAME in
    /// the body`; `nil` if there are none.
    let secrets: [String]?
    let attempts: Int
    /// The content type of the last response; `websocket` for a WebSocket.
    let type: String?
    let size: Int64?
    /// The start in milliseconds since January 1, 1970, 00:00 UTC.
    let start: Double
    /// The duration in milliseconds; `nil` while the exchange is in progress.
    let duration: Double?
    let spans: [Span]
    /// The requests of an exchange that has sent more than one, for example because of redirects;
    /// otherwise `nil`.
    let tries: [Try]?

    /// A request of an exchange.
    struct Try: Encodable {
        let method: String
        let url: String
        let status: Int?
        let error: String?
        let cancelled: Bool?
        let start: Double
        /// The duration in milliseconds; `nil` while the request is in progress.
        let duration: Double?
        let size: Int?
        let type: String?
        /// The kind of the event that led to the request, such as `retry` or `redirect`; `nil` for
        /// the first request.
        let kind: String?
        let reason: String?

        /// - Parameter cause: The event that led to the request.
        init(_ attempt: RecordedAttempt, after cause: Timeline.Event?, _ redaction: Redaction) {
            kind = cause?.kind.description
            reason = cause.map { redaction.text($0.detail) }
            method = attempt.method.rawValue
            url = redaction.url(attempt.url)
            status = attempt.response?.head.status
            error = attempt.failure?.text.map(redaction.text)
            cancelled = attempt.failure?.isCancellation == true ? true : nil
            start = attempt.start.milliseconds
            duration = attempt.end.map { ($0 - attempt.start).milliseconds }
            size = attempt.response?.body.size
            type = attempt.response?.head.headers[.contentType].map {
                redaction.value(ofHeader: "Content-Type", $0)
            }
        }
    }

    /// An interval in the waterfall.
    struct Span: Encodable {
        let kind: String
        let start: Double
        /// The duration in milliseconds; `nil` while the interval has not ended.
        let duration: Double?

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(kind)
            try container.encode(start)
            if let duration { try container.encode(duration) } else { try container.encodeNil() }
        }
    }

    init(_ exchange: RecordedExchange, _ redaction: Redaction) {
        number = exchange.number
        parent = exchange.parent
        service = exchange.service
        name = redaction.url(exchange.name)
        let first = exchange.attempts.first
        method = first?.method.rawValue ?? exchange.request?.method
        url = (first?.url ?? exchange.request?.url).map(redaction.url)
        state = exchange.phase.rawValue
        status = exchange.status.flatMap { $0 > 0 ? $0 : nil }
        error = exchange.failure?.text.map(redaction.text)
        cancelled = exchange.failure?.isCancellation == true ? true : nil
        source = exchange.source?.description
        composite = exchange.isComposite ? true : nil
        let sent = exchange.attempts.flatMap { $0.secrets(redaction) }
        secrets = sent.isEmpty ? nil : Set(sent).sorted()
        attempts = exchange.attempts.last?.number ?? 0
        let response = exchange.lastResponse
        let mediaType = response?.head.headers[.contentType].map { redaction.value(ofHeader: "Content-Type", $0) }
        let bodySize = response.flatMap { response in
            response.isStreamed ? exchange.streamedBytes : Int64(response.body.size)
        }
        type = exchange.messages == nil ? mediaType : "websocket"
        size = exchange.messages?.bytesReceived ?? bodySize
        tries =
            exchange.attempts.count > 1
            ? exchange.attempts.map { Try($0, after: exchange.cause(of: $0), redaction) } : nil
        start = exchange.start.timeIntervalSince1970 * 1000
        duration = exchange.duration?.milliseconds
        spans =
            exchange.attempts.map { attempt in
                let end = attempt.response?.isStreamed == true ? exchange.duration : attempt.end
                return Span(
                    kind: "attempt", start: attempt.start.milliseconds,
                    duration: end.map { ($0 - attempt.start).milliseconds })
            }
            + exchange.events.compactMap { event in
                guard event.kind == .wait, let duration = event.duration else { return nil }
                return Span(kind: "pause", start: event.start.milliseconds, duration: duration.milliseconds)
            }
    }
}

extension Duration {
    var milliseconds: Double { inSeconds * 1000 }
}
