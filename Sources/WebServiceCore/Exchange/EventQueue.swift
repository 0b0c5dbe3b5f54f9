/// The events of an exchange that are not delivered yet, in order.
///
/// A method that adds events returns whether the caller must deliver them.
struct EventQueue {
    let exchange: ObservedExchange
    let observers: [any Observer]
    var delivery = SerialDelivery<ExchangeEvent>()
    /// The instant at which the exchange was resumed.
    private let start: UInt64
    /// The instant of the last event.
    private var latest: UInt64
    /// The end of a streamed body that precedes the end of the exchange.
    private var body: ExchangeLog.Entry?
    private var hasEnded = false
    /// A Boolean value that indicates whether the head of the current attempt was reported.
    private var hasHead = false
    /// The last deprecation that was reported.
    private var deprecation: String?

    init(_ exchange: ObservedExchange, _ observers: [any Observer], start: UInt64) {
        self.exchange = exchange
        self.observers = observers
        self.start = start
        latest = start
    }

    /// - Parameter instant: The instant of the event, read before the lock was taken: another
    ///   thread may have added a later event.
    mutating func add(_ kind: ExchangeEvent.Kind, at instant: UInt64) -> Bool {
        latest = max(latest, instant)
        delivery.append(ExchangeEvent(exchange: exchange, kind: kind, nanoseconds: latest - start))
        return delivery.begin()
    }

    mutating func add(_ entry: ExchangeLog.Entry) -> Bool {
        guard hasEnded || entry.kind != .body else {
            body = entry
            return false
        }
        return add(.recorded(Timeline.Event(entry, start: start)), at: entry.end ?? entry.start)
    }

    // MARK: Attempts

    mutating func start(_ number: Int, _ request: EncodedRequest, at instant: UInt64) -> Bool {
        hasHead = false
        return hasEnded ? false : add(.attemptStarted(number: number, request), at: instant)
    }

    mutating func receive(_ head: ResponseHead, at instant: UInt64) -> Bool {
        guard !hasHead, !hasEnded else { return false }
        hasHead = true
        return add(.headReceived(head), at: instant)
    }

    mutating func receive(interim head: ResponseHead, at instant: UInt64) -> Bool {
        hasHead || hasEnded ? false : add(.interimHeadReceived(head), at: instant)
    }

    mutating func end(
        _ number: Int, _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at instant: UInt64
    ) -> Bool {
        guard !hasEnded else { return false }
        var delivers = false
        var note: ExchangeLog.Entry?
        if case .success(let response) = result, let head = response.head {
            delivers = receive(head, at: instant)
            note = ExchangeLog.Entry(deprecationIn: head, at: instant, exchange.date)
        }
        delivers = add(.attemptEnded(number: number, result.withoutStream, metrics), at: instant) || delivers
        guard let note, note.detail != deprecation else { return delivers }
        deprecation = note.detail
        return add(note) || delivers
    }

    mutating func end(_ summary: @autoclosure () -> ExchangeSummary, at instant: UInt64) -> Bool {
        guard !hasEnded else { return false }
        hasEnded = true
        let delivers = add(.ended(summary()), at: instant)
        return body.take().map { add($0) } == true || delivers
    }
}
