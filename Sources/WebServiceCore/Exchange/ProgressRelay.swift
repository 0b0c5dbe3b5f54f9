/// A source of values that handlers receive before the result. The handlers of the result wait for
/// these values.
package protocol Prelude: AnyObject, Sendable {
    /// Stops accepting values.
    func end()

    /// Waits until the last value has been delivered. This method is called at most once.
    func delivered() async
}

/// The receivers of the progress of a task.
struct ProgressReceivers: Sendable {
    /// The relay that delivers the progress to the handlers of the task.
    var relay: ProgressRelay?
    /// A further receiver, such as that of the typed request or the download that sends this
    /// exchange.
    var listener: ProgressRelay.Handler?

    var isEmpty: Bool { relay == nil && listener == nil }

    /// Reports progress. This method is called on any thread, including the threads of sessions.
    func report(_ progress: TransferProgress) {
        relay?.update(progress)
        listener?(progress)
    }
}

/// A relay that delivers progress to the handlers of a task in the background, one call after
/// another. Each call receives the latest progress, and the last call returns before the handlers
/// of the result run, unless the body is streamed.
final class ProgressRelay: Prelude {
    typealias Handler = @Sendable (TransferProgress) -> Void

    /// A value, for one handler or for all.
    private struct Value {
        let progress: TransferProgress
        var only: Handler?
    }

    private struct State {
        var handlers: [Handler] = []
        var latest: TransferProgress?
        var delivery = SerialDelivery<Value>()
        /// Whether a value for all handlers is pending.
        var isUpdated = false

        mutating func next() -> (TransferProgress, [Handler])? {
            let value = delivery.next()
            if value?.only == nil { isUpdated = false }
            return value.map { ($0.progress, $0.only.map { [$0] } ?? handlers) }
        }
    }

    private let state = Mutex(State())
    private let isDelivered = Once<Bool>()
    private let clock: TaskClock

    init(_ clock: TaskClock) { self.clock = clock }

    /// The progress that was reported last.
    var latest: TransferProgress? { state.withLock { $0.latest } }

    /// Adds a handler, which receives the progress that was reported before.
    ///
    /// - Parameter progress: The progress that was reported before; `nil` if there is none.
    func add(_ handler: @escaping Handler, after progress: TransferProgress?) {
        let delivers = state.withLock { state in
            state.handlers.append(handler)
            // A pending value for all handlers is newer.
            guard let progress = state.latest ?? progress, !state.isUpdated else { return false }
            state.delivery.append(Value(progress: progress, only: handler))
            return state.delivery.begin()
        }
        if delivers { clock.async { self.deliver() } }
    }

    /// A handler that calls ``update(_:)``.
    var handler: Handler { { self.update($0) } }

    /// Reports progress. This method returns immediately.
    func update(_ progress: TransferProgress) {
        let delivers = state.withLock { state in
            if !state.delivery.isOver { (state.latest, state.isUpdated) = (progress, true) }
            state.delivery.append(Value(progress: progress), replacesOthers: true)
            return state.delivery.begin()
        }
        if delivers { clock.async { self.deliver() } }
    }

    func end() {
        if state.withLock({ $0.delivery.end() }) != nil { finish() }
    }

    func delivered() async { _ = await isDelivered.value }

    private func deliver() {
        while let (progress, handlers) = state.withLock({ $0.next() }) {
            for handler in handlers { handler(progress) }
        }
        if state.withLock({ $0.delivery.isFinished }) { finish() }
    }

    /// Releases the handlers.
    private func finish() {
        let spent = state.withLock { state in
            defer { state.handlers = [] }
            return state.handlers
        }
        withExtendedLifetime(spent) {}
        isDelivered.set(true)
    }
}

extension SessionTask {
    /// Adds a progress handler. The handler also receives the progress of the attempt or body in
    /// transfer.
    ///
    /// - Returns: The relay, if it is new.
    func addProgressHandler(_ handler: @escaping ProgressRelay.Handler) -> ProgressRelay? {
        let (relay, isNew, receivers, progress) = call.withLock { call in
            let isNew = call.progress.relay == nil
            let relay = call.progress.relay ?? ProgressRelay(clock)
            call.progress.relay = relay
            return (relay, isNew, call.receivers.all + [tail?.receiver].compactMap(\.self), call.progress)
        }
        for receiver in receivers { receiver.reportProgress(to: progress) }
        let earlier = receivers.last?.latestProgress
        relay.add(handler, after: earlier.flatMap { $0.bytesSent + $0.bytesReceived > 0 ? $0 : nil })
        return isNew ? relay : nil
    }

    /// Sets a listener that also receives the progress. This method is called before `resume()`.
    package func forwardProgress(to listener: @escaping @Sendable (TransferProgress) -> Void) {
        call.withLock { $0.progress.listener = listener }
    }

    /// Reports the progress of requests that are sent on behalf of the task.
    package func report(_ progress: TransferProgress) {
        call.withLock { $0.progress }.report(progress)
    }

    /// The progress of the exchange, or of the request that was sent last.
    var latestProgress: TransferProgress? {
        let (relay, receiver) = call.withLock { ($0.progress.relay, tail?.receiver ?? $0.receivers.last) }
        return relay?.latest ?? receiver?.latestProgress
    }
}
