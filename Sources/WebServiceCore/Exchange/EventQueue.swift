/// The events of an exchange that are not delivered yet, in order. One thread at a time delivers.
struct EventQueue: Sendable {
    /// An event to deliver.
    struct Delivery: Sendable {
        let event: ExchangeEvent
        let observers: [any Observer]
    }

    let exchange: ObservedExchange
    private let observers: [any Observer]
    /// The instant at which the exchange was resumed.
    private let start: UInt64
    /// The instant of the last event.
    private var latest: UInt64
    private var pending: [ExchangeEvent] = []
    /// The end of a streamed body that precedes the end of the exchange.
    private var body: ExchangeLog.Entry?
    private var isDelivering = false
    private var hasEnded = false
    /// A Boolean value that indicates whether the head of the current attempt was reported.
    private var hasHead = false

    init(_ exchange: ObservedExchange, _ observers: [any Observer], start: UInt64) {
        self.exchange = exchange
        self.observers = observers
        self.start = start
        latest = start
    }

    /// - Parameter instant: Read before the lock: another thread may have added a later event.
    /// - Returns: The event, if the caller must deliver it and then all that follow (``next()``).
    mutating func add(_ kind: ExchangeEvent.Kind, at instant: UInt64) -> Delivery? {
        latest = max(latest, instant)
        let event = ExchangeEvent(exchange: exchange, kind: kind, nanoseconds: latest - start)
        guard !isDelivering else {
            pending.append(event)
            return nil
        }
        isDelivering = true
        return Delivery(event: event, observers: observers)
    }

    /// Returns the events after the last delivered ones; none if the delivery is over.
    mutating func next() -> [ExchangeEvent] {
        defer { pending = [] }
        isDelivering = !pending.isEmpty
        return pending
    }

    mutating func add(_ entry: ExchangeLog.Entry) -> Delivery? {
        guard hasEnded || entry.kind != .body else {
            body = entry
            return nil
        }
        return add(.recorded(Timeline.Event(entry, start: start)), at: entry.end ?? entry.start)
    }

    // MARK: Attempts

    mutating func start(_ number: Int, _ request: EncodedRequest, at instant: UInt64) -> Delivery? {
        hasHead = false
        return hasEnded ? nil : add(.attemptStarted(number: number, request), at: instant)
    }

    mutating func receive(_ head: ResponseHead, at instant: UInt64) -> Delivery? {
        guard !hasHead, !hasEnded else { return nil }
        hasHead = true
        return add(.headReceived(head), at: instant)
    }

    mutating func end(
        _ number: Int, _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at instant: UInt64
    ) -> Delivery? {
        guard !hasEnded else { return nil }
        var first: Delivery?
        if case .success(let response) = result, let head = response.head { first = receive(head, at: instant) }
        return first.or(add(.attemptEnded(number: number, result.withoutStream, metrics), at: instant))
    }

    mutating func end(_ summary: @autoclosure () -> ExchangeSummary, at instant: UInt64) -> Delivery? {
        guard !hasEnded else { return nil }
        hasEnded = true
        let first = add(.ended(summary()), at: instant)
        return first.or(body.take().flatMap { add($0) })
    }
}

extension EventQueue.Delivery? {
    /// Returns the first of two deliveries, of which at most one must be started.
    func or(_ other: Self) -> Self { self ?? other }
}
