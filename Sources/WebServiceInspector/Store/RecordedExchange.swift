import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// An exchange as the inspector retains it, with truncated bodies.
struct RecordedExchange: Sendable {
    enum Phase: String, Sendable {
        case active
        /// The head was accepted, and the body is being received.
        case streaming
        case ended
    }

    /// The maximum number of attempts, and of events, to retain. The oldest ones are dropped.
    private static let maximumEntries = 100

    /// The maximum number of characters of an explanation.
    static let maximumExplanation = 20_000

    /// The number in the order of arrival, counted from 1.
    let number: Int
    /// The number of the exchange on whose behalf this one is sent; `nil` for none.
    let parent: Int?
    /// The name of the service; `nil` for none.
    let service: String?
    /// The type of a typed request, or the method and the URL without its query.
    let name: String
    /// Whether the exchange consists of other exchanges, such as a download.
    let isComposite: Bool
    let start: Date
    /// The method and the URL of the request of the task; `nil` for a typed request.
    let request: (method: String, url: String)?

    /// The version of the store at the last change.
    var version = 0
    /// The version of the store at the last change of the details that its pages receive.
    var detailsVersion = 0
    /// The time of that change.
    private var detailsTime = Duration.zero
    var phase = Phase.active
    private(set) var attempts: [RecordedAttempt] = []
    private(set) var events: [Timeline.Event] = []
    private(set) var duration: Duration?
    /// The failure of the exchange, of its streamed body or of a handler.
    private(set) var failure: RecordedFailure?
    private(set) var source: Response.Source?
    /// The sentences that explain the timeline, one per line.
    private(set) var explanation = ""
    /// The timeline of a successful exchange, to which events can be added after the end. The
    /// timeline of a failed one is not retained, because it would retain the error with its body.
    private var timeline: Timeline?
    /// The number of bytes of a streamed body that were received, before decompression.
    private(set) var streamedBytes: Int64?
    /// The final response if no request was sent for it, such as one from a cache.
    private(set) var response: RecordedResponse?
    /// The messages of a WebSocket; `nil` for any other exchange.
    private(set) var messages: RecordedMessages?
    /// The Close frame of the server of a WebSocket.
    private(set) var closure: WebSocketClosure?

    init(_ exchange: ObservedExchange, number: Int, parent: Int?, service: String? = nil) {
        self.service = service
        self.number = number
        self.parent = parent
        name = exchange.name
        isComposite = exchange.isComposite
        start = exchange.date
        request = exchange.request.map { ($0.method.rawValue, $0.url?.absoluteString ?? "") }
    }

    /// The approximate number of bytes of all bodies, messages, header fields and URLs.
    var size: Int {
        let own = 512 + explanation.utf8.count + events.count * 128 + (messages?.size ?? 0)
        return attempts.reduce(own + (response?.size ?? 0)) { $0 + $1.size }
    }

    /// The status of the last response.
    var status: Int? { lastResponse?.head.status }

    /// The response of the last attempt, or the response from a cache.
    var lastResponse: RecordedResponse? { response ?? attempts.last?.response }

    /// Returns whether the pages receive the details after a change.
    ///
    /// The parts of a body and the messages of a WebSocket are delivered at most once per second,
    /// because the details contain all of them.
    mutating func changesDetails(_ change: RecordedChange?, at time: Duration) -> Bool {
        switch change {
        case .body, .message: guard time - detailsTime >= .seconds(1) else { return false }
        default: break
        }
        detailsTime = time
        return true
    }

    /// Applies a change within the limits.
    ///
    /// - Parameter limit: The maximum number of bytes of a body, and of all messages, to retain.
    mutating func apply(_ change: RecordedChange, at time: Duration, limit: Int) {
        switch change {
        case .attempt(let attempt):
            attempts = attempts.suffix(Self.maximumEntries - 1) + [attempt]
        case .response(let response):
            changeLastAttempt { $0.response = $0.response ?? response }
        case .body(let part):
            changeLastAttempt { $0.response?.add(part, at: time, limit: limit) }
        case .message(let message):
            messages?.add(message, limit: limit)
        case .attemptEnd(let response, let failure, let metrics):
            messages = response?.head.status == 101 ? RecordedMessages() : nil
            changeLastAttempt { attempt in
                attempt.end = time
                attempt.failure = failure
                attempt.metrics = metrics
                // An error without a body does not replace the bytes that were received.
                let keepsBody = failure != nil && (response?.body.size ?? 0) == 0 && attempt.response != nil
                if !keepsBody { attempt.response = response ?? attempt.response }
                attempt.response?.isStreamed = false
            }
        case .event(let event, let failure):
            closure = event.closure ?? closure
            var event = event
            if event.kind != .body { event.error = nil }  // may contain the body of the response
            events = events.suffix(Self.maximumEntries - 1) + [event]
            addToEnd(event, failure, at: time)
        case .end(let response, let failure, let isStreamed, let timeline, let explanation):
            phase = isStreamed ? .streaming : .ended
            duration = isStreamed ? nil : time
            self.failure = failure
            source = response?.source
            (self.timeline, self.explanation) = (timeline, explanation)
            // A response from a cache can follow a failed attempt.
            if attempts.isEmpty || failure == nil && attempts.last?.failure != nil { self.response = response }
            if isStreamed { changeLastAttempt { $0.response?.isStreamed = true } }
        }
    }

    /// Updates the result and the explanation with an event that follows the end of the exchange.
    private mutating func addToEnd(_ event: Timeline.Event, _ failure: RecordedFailure?, at time: Duration) {
        guard phase != .active else { return }
        if event.kind == .body, phase == .streaming {
            (phase, duration, streamedBytes) = (.ended, time, event.byteCount)
            changeLastAttempt { $0.failure = $0.failure ?? failure }
        }
        // The cancellation of a body whose reader has failed follows the failure.
        if self.failure == nil || self.failure?.isCancellation == true { self.failure = failure ?? self.failure }
        guard var timeline else { return }
        timeline.add(event)
        self.timeline = timeline
        explanation = String(timeline.explain().prefix(Self.maximumExplanation))
    }

    private mutating func changeLastAttempt(_ change: (inout RecordedAttempt) -> Void) {
        guard let last = attempts.indices.last else { return }
        change(&attempts[last])
    }
}

extension Timeline.Event {
    /// The Close frame of the server, for the end of a WebSocket.
    var closure: WebSocketClosure? { kind == .failure ? nil : error as? WebSocketClosure }
}

/// A change of an exchange, created from an event outside the lock of the store.
enum RecordedChange: Sendable {
    case attempt(RecordedAttempt)
    case response(RecordedResponse)
    case body(RecordedBody)
    case message(RecordedMessages.Message)
    case attemptEnd(RecordedResponse?, RecordedFailure?, TransportMetrics?)
    case event(Timeline.Event, RecordedFailure?)
    case end(RecordedResponse?, RecordedFailure?, isStreamed: Bool, Timeline?, explanation: String)
}
