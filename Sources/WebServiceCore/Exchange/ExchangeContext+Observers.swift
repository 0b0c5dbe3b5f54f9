import Foundation
import Synchronization

/// The events for the observers of the service.
extension ExchangeContext {
    private static let lastID = Atomic<UInt64>(0)

    /// Returns a number that is unique among the exchanges of this process.
    static func makeID() -> UInt64 {
        lastID.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Sets the exchange on whose behalf this one is sent. Called before `resume()`.
    func setParent(_ id: UInt64?) {
        state.withLock { $0.parent = id }
    }

    /// The identifier of the exchange; `nil` without observers.
    var id: UInt64? { state.withLock { $0.queue?.exchange.id } }

    /// A Boolean value that indicates whether there are observers.
    var isObserved: Bool { state.withLock { $0.queue != nil } }

    /// Sets the observers and reports the first event. Called at `resume()`, after ``begin()``.
    ///
    /// - Parameters:
    ///   - request: The request; `nil` for a typed request.
    ///   - type: The type of a typed request.
    ///   - isComposite: Whether the exchange consists of other exchanges.
    ///   - id: The identifier of the exchange; `nil` for a new one.
    func observe(
        by observers: [any Observer], _ request: Request?, type: (any Sendable.Type)? = nil, isComposite: Bool = true,
        id: UInt64? = nil
    ) {
        guard !observers.isEmpty else { return }
        let id = id ?? Self.makeID()
        let streamedBodyLimit = observers.map(\.streamedBodyLimit).max() ?? 0
        let delivers = state.withLock { state in
            guard let origin = state.record.metrics.origin else { return false }  // unreachable: called after begin()
            let exchange = ObservedExchange(
                id: id, parent: state.parent, request: request, type: type, isComposite: isComposite,
                date: origin.date)
            var queue = EventQueue(exchange, observers, start: origin.instant)
            let delivers = queue.add(.created, at: origin.instant)
            state.queue = queue
            (state.options.isObserved, state.options.streamedBodyLimit) = (true, streamedBodyLimit)
            // Another thread has cancelled the task in the meantime.
            if let error = state.record.outcome?.error { _ = state.end(.failure(error), at: origin.instant) }
            return delivers
        }
        if delivers { deliver() }
    }

    /// Records the head of the response to the request that was sent last. Called on the threads of
    /// sessions.
    func report(_ head: ResponseHead) {
        let now = clock.now
        deliverInBackground(state.withLock { $0.record.attemptIsOpen && $0.queue?.receive(head, at: now) == true })
    }

    /// Records an interim head of that response. Called on the threads of sessions.
    func report(interim head: ResponseHead) {
        let now = clock.now
        deliverInBackground(
            state.withLock { $0.record.attemptIsOpen && $0.queue?.receive(interim: head, at: now) == true })
    }

    /// Records bytes of a body that no result contains. Called on the threads of sessions.
    func reportBody(_ bytes: Data) {
        let now = clock.now
        deliverInBackground(state.withLock { $0.queue?.add(.bodyReceived(bytes), at: now) == true })
    }

    /// Records a message of a connection. A slow observer delays the messages after it.
    func report(_ message: WebSocketMessage, isReceived: Bool) {
        let now = clock.now
        if state.withLock({ $0.queue?.add(.message(message, isReceived: isReceived), at: now) == true }) { deliver() }
    }

    /// Delivers events to observers, which must not delay the threads of sessions.
    func deliverInBackground(_ delivers: Bool) {
        if delivers { clock.async { self.deliver() } }
    }

    /// Delivers the pending events, and those that are added in the meantime.
    func deliver() {
        while let (event, observers) = state.withLock({ $0.nextEvent() }) {
            for observer in observers { observer.observe(event) }
        }
    }
}

/// Changes to the events. A method that adds events returns whether the caller must deliver them.
extension ExchangeContext.State {
    fileprivate mutating func nextEvent() -> (ExchangeEvent, [any Observer])? {
        guard let event = queue?.delivery.next(), let queue else { return nil }
        return (event, queue.observers)
    }

    /// Reports the end of the last attempt.
    mutating func reportEnd(_ result: Result<Response, any Error>, at instant: UInt64) -> Bool {
        queue?.end(record.number, result, record.metrics.transport, at: instant) == true
    }

    /// Ends an attempt that is still in flight.
    mutating func endOpenAttempt(
        _ result: @autoclosure () -> Result<Response, any Error>, at instant: UInt64
    ) -> Bool {
        guard record.attemptIsOpen else { return false }
        let result = result()
        record.end(result, nil, at: instant)
        return reportEnd(result, at: instant)
    }

    mutating func end(_ result: Result<Response, any Error>, at instant: UInt64) -> Bool {
        queue?.end(ExchangeSummary(result, record), at: instant) == true
    }
}
