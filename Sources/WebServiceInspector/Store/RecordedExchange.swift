import Foundation
import WebServiceCore
import WebServiceDiagnostics

/// An exchange as the inspector retains it. Its bodies may be truncated.
struct RecordedExchange: Sendable {
    enum Phase: String, Sendable {
        case active
        /// The head was accepted, and the body is being received.
        case streaming
        case ended
    }

    /// The maximum number of attempts and of events to retain. The oldest ones are dropped.
    private static let maximumEntries = 100

    /// The maximum number of characters of an explanation.
    static let maximumExplanation = 20_000

    /// The number of the exchange in the order of arrival, starting at 1.
    let number: Int
    /// The number of the exchange on whose behalf this one is sent; `nil` if there is none.
    let parent: Int?
    /// The name of the service; `nil` if it has none.
    let service: String?
    /// The type of a typed request, or the method and the URL without its query.
    let name: String
    /// Whether the exchange consists of other exchanges, as a download does.
    let isComposite: Bool
    let start: Date
    /// The method and the URL of the task's request, or of the first request that is sent for a
    /// typed request; `nil` if that request has not been sent yet.
    var request: (method: String, url: String)?
    /// The numbers of the exchanges that events refer to, by identifier.
    var related: [UInt64: Int] = [:]

    /// The version of the store at the last change.
    var version = 0
    /// The version of the store at the last change of the details that its pages receive.
    var detailsVersion = 0
    /// The time of the last change of these details.
    private var detailsTime = Duration.zero
    var phase = Phase.active
    private(set) var attempts: [RecordedAttempt] = []
    private(set) var events: [Timeline.Event] = []
    private(set) var duration: Duration?
    /// The failure of the exchange, of its streamed body or of a handler.
    private(set) var failure: RecordedFailure?
    private(set) var source: Response.Source?
    /// Sentences that explain the timeline, one per line.
    private(set) var explanation = ""
    /// The timeline of a successful exchange. Events can be added to it after the end of the
    /// exchange. The timeline of a failed exchange is not retained, because it would retain the
    /// error with its body.
    private var timeline: Timeline?
    /// The number of bytes of a streamed body that were received, before decompression unless the
    /// session decompresses them.
    private(set) var streamedBytes: Int64?
    /// The final response if it was obtained without a request, for example from a cache.
    private(set) var response: RecordedResponse?
    /// The messages of a WebSocket; `nil` for any other exchange.
    private(set) var messages: RecordedMessages?
    /// The Close frame that the server of a WebSocket sent.
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

    /// Returns the event that led to an attempt, or `nil` for the first attempt.
    func cause(of attempt: RecordedAttempt) -> Timeline.Event? {
        guard let previous = attempts.last(where: { $0.number < attempt.number }) else { return nil }
        let between = events.filter { (previous.start...attempt.start).contains($0.start) }
        // A retry at another endpoint counts as a retry.
        let kinds = [.retry, .redirect, Timeline.Kind("endpoint")]
        return kinds.lazy.compactMap { kind in between.last { $0.kind == kind } }.first
    }

    /// Returns whether the pages receive the details after a change.
    ///
    /// After parts of a body or messages of a WebSocket, the details are delivered at most once per
    /// second, because they contain all of these parts or messages.
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
    /// - Parameter limit: The maximum number of bytes to retain of a body, and of all messages
    ///   together.
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
                // An error without a body does not replace the bytes that have been received.
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
            // A response from a cache may follow a failed attempt.
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
        // If the reader of a body fails, the body is cancelled after the failure.
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
    /// The Close frame of the server if the event is the end of a WebSocket.
    var closure: WebSocketClosure? { kind == .failure ? nil : error as? WebSocketClosure }
}

/// A change of an exchange. It is created from an event, outside the lock of the store.
enum RecordedChange: Sendable {
    case attempt(RecordedAttempt)
    case response(RecordedResponse)
    case body(RecordedBody)
    case message(RecordedMessages.Message)
    case attemptEnd(RecordedResponse?, RecordedFailure?, TransportMetrics?)
    case event(Timeline.Event, RecordedFailure?)
    case end(RecordedResponse?, RecordedFailure?, isStreamed: Bool, Timeline?, explanation: String)
}
