import WebServiceCore
import WebServiceDiagnostics

/// The details of an exchange, without secrets.
struct ShownExchange: Encodable {
    let summary: ListedExchange
    let attempts: [ShownAttempt]
    let events: [ShownEvent]
    /// The final response if no request was sent for it, such as one from a cache.
    let response: ShownResponse?
    /// The messages of a WebSocket; `nil` for any other exchange.
    let messages: ShownMessages?
    /// The sentences that explain the timeline.
    let explanation: [String]
    /// The descriptions of the errors that caused the failure, the direct cause first.
    let causes: [String]
    /// The placeholder of secrets, which the page emphasizes.
    let placeholder: String

    /// - Parameter showsBinary: Whether bodies that cannot be redacted are shown.
    init(_ exchange: RecordedExchange, _ redaction: Redaction, showsBinary: Bool = false) {
        summary = ListedExchange(exchange, redaction)
        attempts = exchange.attempts.map { ShownAttempt($0, redaction, showsBinary: showsBinary) }
        events = exchange.events.map { ShownEvent($0, redaction) }
        response = exchange.response.map { ShownResponse($0, redaction, showsBinary: showsBinary) }
        messages = exchange.messages.map { ShownMessages($0, of: exchange, redaction, showsBinary: showsBinary) }
        // The paths of URLs can contain parameters.
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

    init(_ event: Timeline.Event, _ redaction: Redaction) {
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
    /// The descriptions of the errors that caused the error, the direct cause first.
    let causes: [String]
    /// The number of bytes that the transport received, including the head.
    let received: Int64?
    let cancelled: Bool?
    let `protocol`: String?
    /// The IP address of the server.
    let address: String?
    let isReused: Bool?
    let requestHeaders: [[String]]
    /// The header fields as they were sent; `nil` if the session does not report them.
    let sentHeaders: [[String]]?
    let requestBody: ShownBody
    let phases: [Phase]
    let curl: String

    /// A phase of the transport: its name, start and duration in milliseconds.
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
        phases = attempt.metrics.map(Self.phases) ?? []
        curl = attempt.request.curlDescription(redaction: redaction)
    }

    /// Returns the phases that took place, in order.
    private static func phases(_ metrics: TransportMetrics) -> [Phase] {
        var start = Duration.zero
        var phases: [Phase] = []
        func add(_ name: String, _ duration: Duration?) {
            guard let duration, duration > .zero else { return }
            phases.append(Phase(name: name, start: start.milliseconds, duration: duration.milliseconds))
            start += duration
        }
        add("name lookup", metrics.nameLookup)
        add("connect", metrics.connect)
        add("TLS", metrics.secureConnect)
        if let firstByte = metrics.firstByte {
            add("waiting", firstByte - start)
            add("receiving", metrics.total - start)
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
