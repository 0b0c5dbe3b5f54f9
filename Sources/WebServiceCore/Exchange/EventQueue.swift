import Foundation
import Synchronization

/// The events of an exchange for the observers of its service, in order.
///
/// A method that returns a Boolean returns whether its caller must call ``deliver()`` after
/// releasing all locks. The lock of the queue may be taken while the lock of the task is held.
package final class EventQueue: Sendable {
    private static let lastID = Atomic<UInt64>(0)

    /// Returns a number that is unique among the exchanges of this process.
    package static func makeID() -> UInt64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

    let exchange: ObservedExchange
    /// The number of bytes of a streamed body that the observers receive.
    let streamedBodyLimit: Int
    private let observers: [any Observer]
    private let clock: TaskClock
    private let state: Mutex<State>

    /// - Parameters:
    ///   - streamedBodyLimit: The largest limit of the observers.
    ///   - start: The instant at which the exchange was resumed.
    init(
        _ exchange: ObservedExchange, _ observers: [any Observer], streamedBodyLimit: Int = 0, _ clock: TaskClock,
        start: UInt64
    ) {
        self.exchange = exchange
        self.observers = observers
        self.streamedBodyLimit = streamedBodyLimit
        self.clock = clock
        state = Mutex(State(exchange: exchange, start: start, latest: start))
    }

    /// Delivers the pending events, and those that are added in the meantime.
    func deliver() {
        while let event = state.withLock({ $0.delivery.next() }) {
            for observer in observers { observer.observe(event) }
        }
    }

    func add(_ kind: ExchangeEvent.Kind, at instant: UInt64) -> Bool { state.withLock { $0.add(kind, at: instant) } }

    func add(_ entry: ExchangeLog.Entry) -> Bool { state.withLock { $0.add(entry) } }

    func startAttempt(_ number: Int, _ request: EncodedRequest, at instant: UInt64) -> Bool {
        state.withLock { $0.startAttempt(number, request, at: instant) }
    }

    func endAttempt(
        _ number: Int, _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at instant: UInt64
    ) -> Bool {
        state.withLock { $0.endAttempt(number, result, metrics, at: instant) }
    }

    func end(_ summary: ExchangeSummary, at instant: UInt64) -> Bool {
        state.withLock { $0.end(summary, at: instant) }
    }

    // MARK: Reports of sessions and connections

    /// Reports the head of the response to the request that was sent last. This method is called on
    /// the threads of sessions, which observers must not delay.
    func report(_ head: ResponseHead) {
        let now = clock.now
        if state.withLock({ $0.attemptIsOpen && $0.receive(head, at: now) }) { deliverInBackground() }
    }

    /// Reports an interim head of the response to the request that was sent last. This method is
    /// called on the threads of sessions.
    func report(interim head: ResponseHead) {
        let now = clock.now
        if state.withLock({ $0.attemptIsOpen && $0.receive(interim: head, at: now) }) { deliverInBackground() }
    }

    /// Reports bytes of a body that no result contains. This method is called on the threads of
    /// sessions.
    func reportBody(_ bytes: Data) {
        if add(.bodyReceived(bytes), at: clock.now) { deliverInBackground() }
    }

    /// Reports a message of a connection. A slow observer delays the messages that follow.
    func report(_ message: WebSocketMessage, isReceived: Bool) {
        if add(.message(message, isReceived: isReceived), at: clock.now) { deliver() }
    }

    func deliverInBackground() { clock.async { self.deliver() } }
}

extension EventQueue {
    private struct State {
        let exchange: ObservedExchange
        /// The instant at which the exchange was resumed.
        let start: UInt64
        /// The instant of the last event.
        var latest: UInt64
        var delivery = SerialDelivery<ExchangeEvent>()
        /// The end of a streamed body that precedes the end of the exchange.
        var body: ExchangeLog.Entry?
        var hasEnded = false
        /// Whether the attempt that was started last has no result.
        var attemptIsOpen = false
        /// Whether the head of the current attempt was reported.
        var hasHead = false
        /// The last deprecation that was reported.
        var deprecation: String?

        init(exchange: ObservedExchange, start: UInt64, latest: UInt64) {
            (self.exchange, self.start, self.latest) = (exchange, start, latest)
        }

        /// - Parameter instant: The instant of the event. It is read before the lock is taken, so
        ///   another thread may have added a later event.
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

        mutating func startAttempt(_ number: Int, _ request: EncodedRequest, at instant: UInt64) -> Bool {
            (hasHead, attemptIsOpen) = (false, true)
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

        mutating func endAttempt(
            _ number: Int, _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at instant: UInt64
        ) -> Bool {
            attemptIsOpen = false
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

        mutating func end(_ summary: ExchangeSummary, at instant: UInt64) -> Bool {
            guard !hasEnded else { return false }
            hasEnded = true
            let delivers = add(.ended(summary), at: instant)
            return body.take().map { add($0) } == true || delivers
        }
    }
}
