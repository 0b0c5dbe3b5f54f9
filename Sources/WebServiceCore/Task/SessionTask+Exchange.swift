import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the pipeline tells a task.
extension SessionTask {
    func watchDeadline(of request: EncodedRequest) {
        let alarm = service.clock.schedule(after: request.source.deadline, self)
        if !shared.withLock({ $0.watch(alarm, request) }) { service.clock.cancel(alarm) }
    }

    /// The request comes back: it could not be encoded, or it is sent by way of interceptors.
    func keep(_ request: Request) {
        shared.withLock { $0.keep(request) }
    }

    func willRun(_ delegate: (any ServicePassthroughDelegate)?) {
        guard let delegate else { return }
        shared.withLock { $0.delegate = delegate }
    }

    /// - Returns: Whether what is under way is still wanted; else it has been cancelled.
    @discardableResult
    func attach(_ transport: Transport) -> Bool {
        let (isWanted, replaced) = shared.withLock { $0.attach(transport) }
        withExtendedLifetime(replaced) {}
        if !isWanted { transport.cancel() }
        return isWanted
    }

    /// What interceptors share with this exchange.
    var exchangeContext: ExchangeContext {
        let clock = service.clock
        return ExchangeContext(clock: clock, request: { self.request }, baseOrigin: service.baseURL.flatMap(Origin.init)) { id, account in
            self.shared.withLock { $0.account(id, account) }
        } record: { kind, detail in
            let now = clock.now
            self.shared.withLock { $0.timeline.add(kind, from: now, to: nil, detail) }
        } recordStretch: { kind, detail, length in
            let now = clock.now
            self.shared.withLock { $0.timeline.add(kind, from: now - min(length, now), to: now, detail) }
        }
    }

    /// Takes over what was recorded of the exchange that was sent in place of this task.
    func takeOver(_ exchange: SessionTask) {
        let recorded = exchange.withState { $0 }
        let replaced = shared.withLock { state in
            defer { state.takeOver(recorded) }
            return state.request
        }
        withExtendedLifetime(replaced) {}
    }

    /// Whether somebody asked for the end, also where it came too late.
    var isCancelRequested: Bool { shared.withLock { $0.isCancelRequested } }

    /// How many messages were sent.
    var messageCount: Int { shared.withLock { $0.messages } }

    /// Brings an outcome; the first one counts.
    ///
    /// - Returns: Whether it is this one.
    @discardableResult
    func complete(_ outcome: Outcome, isInterrupted: Bool) -> Bool {
        let now = service.clock.now
        guard let action = shared.withLock({ $0.complete(outcome, isInterrupted: isInterrupted, at: now) }) else { return false }
        perform(action)
        return true
    }

    func perform(_ action: TaskState.CompleteAction) {
        if let alarm = action.alarm { service.clock.cancel(alarm) }
        finish(action.preludes[...]) {
            if action.runsHandlers { self.scheduleHandlers() }
            action.adopter?.resume()
        }
        if action.cancelsTransport { action.transport?.cancel() }
    }

    /// Brings what comes ahead of the handlers to its end, one after another.
    private func finish(_ preludes: ArraySlice<any Prelude>, _ then: @escaping @Sendable () -> Void) {
        guard let prelude = preludes.first else { return then() }
        prelude.finish { self.finish(preludes.dropFirst(), then) }
    }
}

extension SessionTask: ExchangeOwner {
    var delegate: (any ServicePassthroughDelegate)? { shared.withLock { $0.delegate } }

    var progress: (@Sendable (TransferProgress) -> Void)? {
        guard let relay = shared.withLock({ $0.progress }) else { return nil }
        return { relay.update($0) }
    }

    /// The metrics say enough of an attempt that is the only one.
    var recordsEveryAttempt: Bool { false }

    func willSend(_ request: EncodedRequest) -> SendPermission {
        let now = service.clock.now
        let (permission, previous) = shared.withLock { $0.willSend(request, at: now) }
        withExtendedLifetime(previous) {}
        return permission
    }

    func hold(_ send: @escaping @Sendable () -> Void) {
        if !shared.withLock({ $0.hold(send) }) { send() }
    }

    func didReceive(_ outcome: Outcome, for request: EncodedRequest) {
        let now = service.clock.now
        shared.withLock { $0.recordAttempt(request, outcome, at: now) }
    }

    func record(_ kind: Timeline.Kind, _ detail: String) {
        let now = service.clock.now
        shared.withLock { $0.timeline.add(kind, from: now, to: nil, detail) }
    }

    func complete(_ outcome: Outcome) {
        complete(outcome, isInterrupted: false)
    }
}

extension SessionTask: AlarmTarget {
    package func ring() {
        let error = WebServiceError(.deadline, "the exchange took longer than \(request.deadline)", request: request)
        complete(Outcome(error: error), isInterrupted: true)
    }
}
