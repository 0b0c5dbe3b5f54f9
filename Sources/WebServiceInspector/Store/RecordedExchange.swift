import Foundation
import WebServiceCore

/// An exchange as the inspector retains it, with truncated bodies.
struct RecordedExchange: Sendable {
    enum Phase: String, Sendable {
        case active
        /// The head was accepted, and the body is being received.
        case streaming
        case ended
    }

    /// The maximum number of attempts and of events to retain: the last ones.
    private static let maximumEntries = 100

    /// The number in the order of arrival, counted from 1.
    let number: Int
    /// The number of the exchange on whose behalf this one is sent; `nil` for none.
    let parent: Int?
    /// The type of a typed request, or the method and the URL without its query.
    let name: String
    let start: Date
    /// The method and the URL of the request of the task; `nil` for a typed request.
    let request: (method: String, url: String)?

    /// The version of the store at the last change.
    var version = 0
    var phase = Phase.active
    private(set) var attempts: [RecordedAttempt] = []
    private(set) var events: [Timeline.Event] = []
    private(set) var duration: Duration?
    private(set) var error: String?
    private(set) var source: Response.Source?
    /// The sentences that explain the timeline, one per line. The timeline itself would retain the
    /// error with its body.
    private(set) var explanation = ""
    /// The final response if no request was sent for it, for example that of a cache.
    private(set) var response: RecordedResponse?

    init(_ exchange: ObservedExchange, number: Int, parent: Int?) {
        self.number = number
        self.parent = parent
        name = exchange.name
        start = exchange.date
        request = exchange.request.map { ($0.method.rawValue, $0.url?.absoluteString ?? "") }
    }

    /// The number of bytes that bodies, header fields and URLs occupy, approximately.
    var size: Int {
        let own = 512 + explanation.utf8.count + events.count * 128
        return attempts.reduce(own + (response?.size ?? 0)) { $0 + $1.size }
    }

    /// The status of the last response.
    var status: Int? { attempts.last.map { $0.response?.head.status } ?? response?.head.status }

    /// The last response.
    var lastResponse: RecordedResponse? { attempts.isEmpty ? response : attempts.last?.response }

    mutating func apply(_ change: RecordedChange, at time: Duration) {
        switch change {
        case .attempt(let attempt):
            attempts = attempts.suffix(Self.maximumEntries - 1) + [attempt]
        case .response(let response):
            changeLastAttempt { $0.response = $0.response ?? response }
        case .attemptEnd(let response, let error, let metrics):
            changeLastAttempt { attempt in
                attempt.end = time
                attempt.response = response ?? attempt.response
                attempt.error = error
                attempt.metrics = metrics
            }
        case .event(let event):
            events = events.suffix(Self.maximumEntries - 1) + [event]
            if event.kind == .body, phase == .streaming { (phase, duration) = (.ended, time) }
        case .end(let response, let error, let isStreamed, let explanation):
            phase = isStreamed ? .streaming : .ended
            duration = isStreamed ? nil : time
            self.error = error
            source = response?.source
            self.explanation = explanation
            if attempts.isEmpty { self.response = response }
            if isStreamed { changeLastAttempt { $0.response?.isStreamed = true } }
        }
    }

    private mutating func changeLastAttempt(_ change: (inout RecordedAttempt) -> Void) {
        guard let last = attempts.indices.last else { return }
        change(&attempts[last])
    }
}

/// A change of an exchange, created from an event outside the lock of the store.
enum RecordedChange: Sendable {
    case attempt(RecordedAttempt)
    case response(RecordedResponse)
    case attemptEnd(RecordedResponse?, error: String?, TransportMetrics?)
    case event(Timeline.Event)
    case end(RecordedResponse?, error: String?, isStreamed: Bool, explanation: String)
}
