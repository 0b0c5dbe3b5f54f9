import WebServiceCore
import WebServiceDiagnostics

/// The details of an exchange, without secrets.
struct ShownExchange: Encodable {
    let summary: ListedExchange
    let attempts: [ShownAttempt]
    let events: [ShownEvent]
    /// The final response if it was obtained without a request, for example from a cache.
    let response: ShownResponse?
    /// The messages of a WebSocket; `nil` for any other exchange.
    let messages: ShownMessages?
    /// Sentences that explain the timeline.
    let explanation: [String]
    /// The descriptions of the errors that caused the failure, with the direct cause first.
    let causes: [String]
    /// The placeholder for secrets, which the page highlights.
    let placeholder: String

    /// - Parameter showsBinary: Whether bodies that cannot be redacted are shown.
    init(_ exchange: RecordedExchange, _ redaction: Redaction, showsBinary: Bool = false) {
        summary = ListedExchange(exchange, redaction)
        attempts = exchange.attempts.map { ShownAttempt($0, redaction, showsBinary: showsBinary) }
        events = exchange.events.map { ShownEvent($0, of: exchange, redaction) }
        response = exchange.response.map { ShownResponse($0, redaction, showsBinary: showsBinary) }
        messages = exchange.messages.map { ShownMessages($0, of: exchange, redaction, showsBinary: showsBinary) }
        // The paths of URLs may contain parameters with secrets.
        explanation = exchange.explanation.split(separator: "\n").map { redaction.text(String($0)) }
        causes = exchange.failure?.causes.map(redaction.text) ?? []
        placeholder = redaction.placeholder
    }
}

/// An event of the timeline.
struct ShownEvent: Encodable {
    let kind: String
    let start: Double
    let duration: Double?
    let detail: String
    /// The number of the exchange that the event refers to, such as one whose response is shared.
    let related: Int?

    init(_ event: Timeline.Event, of exchange: RecordedExchange, _ redaction: Redaction) {
        related = event.related.flatMap { exchange.related[$0] }
        kind = event.kind.description
        start = event.start.milliseconds
        duration = event.duration?.milliseconds
        detail = redaction.text(event.detail)
    }
}

/// A response without secrets.
struct ShownResponse: Encodable {
    let status: Int
    let headers: [[String]]
    let body: ShownBody

    /// - Parameter failed: Whether the body may be incomplete.
    init(_ response: RecordedResponse, failed: Bool = false, _ redaction: Redaction, showsBinary: Bool) {
        status = response.head.status
        headers = redaction.pairs(of: response.head.headers)
        body = ShownBody(response, failed: failed, redaction, showsBinary: showsBinary)
    }
}

/// A request and its response, without secrets.
struct ShownAttempt: Encodable {
    let number: Int
    let start: Double
    let duration: Double?
    let method: String
    let url: String
    let response: ShownResponse?
    let error: String?
    /// The descriptions of the errors that caused the error, with the direct cause first.
    let causes: [String]
    /// The number of bytes that the transport received, including the head.
    let received: Int64?
    let cancelled: Bool?
    let `protocol`: String?
    /// The IP address of the server, or of the proxy.
    let address: String?
    let isReused: Bool?
    let requestHeaders: [[String]]
    /// The header fields that were actually sent; `nil` if the session does not report them.
    let sentHeaders: [[String]]?
    let requestBody: ShownBody
    let phases: [Phase]
    let curl: String

    /// A phase of the transport, with its name, and its start and duration in milliseconds.
    struct Phase: Encodable {
        let name: String
        let start: Double
        let duration: Double

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(name)
            try container.encode(start)
            try container.encode(duration)
        }
    }

    init(_ attempt: RecordedAttempt, _ redaction: Redaction, showsBinary: Bool = false) {
        number = attempt.number
        start = attempt.start.milliseconds
        duration = attempt.end.map { ($0 - attempt.start).milliseconds }
        method = attempt.method.rawValue
        url = redaction.url(attempt.url)
        response = attempt.response.map {
            ShownResponse($0, failed: attempt.failure != nil, redaction, showsBinary: showsBinary)
        }
        error = attempt.failure?.text.map(redaction.text)
        causes = attempt.failure?.causes.map(redaction.text) ?? []
        received = attempt.metrics?.bytesReceived
        cancelled = attempt.failure?.isCancellation == true ? true : nil
        `protocol` = attempt.metrics?.networkProtocol
        address = attempt.metrics?.remoteAddress
        isReused = attempt.metrics?.isConnectionReused
        requestHeaders = redaction.pairs(of: attempt.requestHeaders)
        let sent = attempt.metrics?.requestHeaders ?? [:]
        sentHeaders = sent.isEmpty ? nil : redaction.pairs(of: sent)
        requestBody = ShownBody(requestOf: attempt, redaction, showsBinary: showsBinary)
        phases = attempt.metrics.map { Self.phases($0, of: attempt) } ?? []
        curl = attempt.request.curlDescription(redaction: redaction)
    }

    /// Returns the phases that took place, in order.
    ///
    /// Before the first phase, the session had not begun the request, for example because it limits
    /// the number of its connections.
    private static func phases(_ metrics: TransportMetrics, of attempt: RecordedAttempt) -> [Phase] {
        var start = Duration.zero
        var phases: [Phase] = []
        func add(_ name: String, _ duration: Duration?) {
            guard let duration, duration > .zero else { return }
            phases.append(Phase(name: name, start: start.milliseconds, duration: duration.milliseconds))
            start += duration
        }
        let rest = attempt.end.map { $0 - attempt.start - metrics.total } ?? .zero
        // A shorter rest is the time that the calls between the exchange and the session take.
        let queue = metrics.total > .zero && rest > .milliseconds(2) ? rest : .zero
        add("queue", queue)
        add("name lookup", metrics.nameLookup)
        add("connect", metrics.connect)
        add("TLS", metrics.secureConnect)
        if let firstByte = metrics.firstByte {
            add("waiting", queue + firstByte - start)
            add("receiving", queue + metrics.total - start)
        }
        return phases
    }
}

extension Redaction {
    /// Returns the names and values of header fields without secrets.
    func pairs(of headers: Headers) -> [[String]] {
        headers.map { [$0.name, value(ofHeader: $0.name, $0.value)] }
    }
}
