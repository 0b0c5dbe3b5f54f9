/// The parts of an exchange that its streamed body needs after the head: the record, the observers
/// and the list of work in flight.
///
/// The body retains its tail and not its task, because the result of the task retains the body.
final class BodyTail: InFlightWork {
    let service: ServiceCore
    private let state: Mutex<State>

    private struct State {
        /// The task. Once the task is deallocated, its record cannot be read.
        weak var task: SessionTask?
        /// The receiver of the body; `nil` before its head is accepted, after the receiver is
        /// deallocated, and if the exchange has adopted a response without a streamed body.
        weak var receiver: ResponseReceiver?
        var events: EventQueue?
        var request: Request?
        /// The end of the body.
        var end: (entry: ExchangeLog.Entry, metrics: TransportMetrics?)?
        /// The tail of the exchange that has adopted the body.
        var owner: BodyTail?
    }

    init(_ task: SessionTask) {
        service = task.service
        state = Mutex(State(task: task))
    }

    var receiver: ResponseReceiver? { state.withLock { $0.receiver } }
    /// The events for the observers; `nil` if there are no observers.
    var events: EventQueue? { state.withLock { $0.events } }

    /// Sets the receiver of a body whose head was accepted, and the values that the body needs
    /// after its task is deallocated.
    func begin(_ receiver: ResponseReceiver?, _ request: Request?, _ events: EventQueue?) {
        state.withLock { ($0.receiver, $0.request, $0.events) = (receiver, request, events) }
    }

    /// Records an event.
    func record(_ kind: Timeline.Kind, _ detail: String = "", error: (any Error)? = nil) {
        var entry = ExchangeLog.Entry(kind: kind, start: service.clock.now, detail: detail)
        entry.error = error
        record(entry)?.deliver()
    }

    /// - Returns: The events that the caller must deliver.
    private func record(_ entry: ExchangeLog.Entry, _ metrics: TransportMetrics? = nil) -> EventQueue? {
        let (task, events) = state.withLock { ($0.task, $0.events) }
        if let task { return task.call.withLock { $0.add(entry, metrics) } }
        return events?.add(entry) == true ? events : nil
    }

    /// Records the end of the body, also for an exchange that has adopted the body. This method is
    /// usually called on the threads of sessions.
    func end(_ entry: ExchangeLog.Entry, _ metrics: TransportMetrics?) {
        let (task, owner) = state.withLock { state in
            state.end = (entry, metrics)
            return (state.task, state.owner)
        }
        record(entry, metrics)?.deliverInBackground()
        task?.call.withLock { $0.progress.relay }?.end()
        owner?.end(entry, metrics)
    }

    /// Passes the body to another exchange, for which its end is then recorded as well.
    ///
    /// - Returns: The receiver of the body, and its end if it has ended.
    func move(
        to owner: BodyTail
    ) -> (receiver: ResponseReceiver?, end: (entry: ExchangeLog.Entry, metrics: TransportMetrics?)?) {
        state.withLock { state in
            state.owner = owner
            return (state.receiver, state.end)
        }
    }

    // MARK: In flight

    var workID: ObjectIdentifier { ObjectIdentifier(self) }

    var snapshot: InFlightExchange? {
        let (request, receiver) = state.withLock { ($0.request, $0.receiver) }
        return InFlightExchange(self, .stream, request, progress: receiver?.latestProgress)
    }

    func cancel() { receiver?.cancel() }
}
