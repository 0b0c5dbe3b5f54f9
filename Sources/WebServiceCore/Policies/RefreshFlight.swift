import Foundation

/// The refresh of one account: at most one at a time, keyed by the generation of the credential, with everybody who waits for it.
final class RefreshFlight: Sendable {
    /// What a request was sent with.
    struct Ticket: Sendable {
        /// Counts log-outs.
        var account: Int
        /// Counts credentials.
        var generation: Int
        /// Counts refreshes that failed.
        var failures: Int
        /// The credential that the last refresh or update gave; `nil` when there was none.
        var credential: Credential?
    }

    struct Limits: Sendable {
        let duration: Duration
        let count: Int
        let window: Duration
    }

    fileprivate typealias Waiter = CheckedContinuation<Ticket, any Error>

    fileprivate struct State {
        var ticket = Ticket(account: 0, generation: 0, failures: 0)
        var lastFailure: (any Error)?
        /// How many refreshes have failed since the last credential.
        var failuresInSuccession = 0
        /// When the last one failed.
        var failedAt: UInt64 = 0
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
        /// The number of the refresh that runs; `nil` when none does. What an older one brings is ignored.
        var running: Int?
        var task: Task<Void, Never>?
        var nextFlight = 0
        var begun: [UInt64] = []
    }

    private let state = Mutex(State())

    var ticket: Ticket { state.withLock { $0.ticket } }

    var waiting: Int { state.withLock { $0.waiters.count } }

    func clear() {
        let (waiters, task) = state.withLock { state in
            state.ticket = Ticket(account: state.ticket.account + 1, generation: state.ticket.generation + 1, failures: state.ticket.failures)
            state.failuresInSuccession = 0
            return (state.takeWaiters(), state.takeRunning())
        }
        task?.cancel()
        for waiter in waiters { waiter.resume(throwing: Authentication.cleared) }
    }

    func update(_ credential: Credential) {
        let (waiters, ticket, task) = state.withLock { state in
            state.ticket.generation += 1
            state.ticket.credential = credential
            state.failuresInSuccession = 0
            return (state.takeWaiters(), state.ticket, state.takeRunning())
        }
        task?.cancel()
        for waiter in waiters { waiter.resume(returning: ticket) }
    }

    fileprivate enum Arrival {
        /// There is something newer, or an error, already.
        case over(Result<Ticket, any Error>)
        case parked
        /// Parked, and the refresh has to be begun.
        case first(flight: Int)
    }

    /// Waits until there is a credential newer than the ticket's; begins a refresh when none runs. Cancelling the Swift task ends the wait of this one only.
    func wait(
        _ ticket: Ticket, _ limits: Limits, _ clock: TaskClock, refresh: @escaping @Sendable () async throws -> Credential?
    ) async throws -> Ticket {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                // A cancel that came before has found nobody to tell.
                guard !Task.isCancelled else { return waiter.resume(throwing: CancellationError()) }
                let now = clock.now
                switch state.withLock({ $0.arrive(id, waiter, ticket, limits, now) }) {
                case .over(let result): waiter.resume(with: result)
                case .parked: break
                case .first(let flight): begin(flight, limits, clock, refresh)
                }
                if Task.isCancelled { leave(id) }
            }
        } onCancel: {
            leave(id)
        }
    }

    private func leave(_ id: Int) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }

    private func begin(
        _ flight: Int, _ limits: Limits, _ clock: TaskClock, _ refresh: @escaping @Sendable () async throws -> Credential?
    ) {
        let limit = Limit { [self] in
            land(flight, .failure(WebServiceError(.authenticationFailed, "the refresh took longer than \(limits.duration)")), at: clock.now)
        }
        let alarm = clock.schedule(after: limits.duration, limit)
        let task = Task {
            do {
                let credential = try await refresh()
                clock.cancel(alarm)
                land(flight, .success(credential), at: clock.now)
            } catch {
                clock.cancel(alarm)
                let failure = WebServiceError(.authenticationFailed, "the credentials could not be refreshed", underlying: error)
                land(flight, .failure(failure), at: clock.now)
            }
        }
        let isWanted = state.withLock { state in
            if state.running == flight { state.task = task }
            return state.running == flight
        }
        if !isWanted { task.cancel() }
    }

    private final class Limit: AlarmTarget {
        private let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        package func ring() { body() }
    }

    /// A refresh has ended. The first word of the one that runs counts.
    private func land(_ flight: Int, _ result: Result<Credential?, any Error>, at now: UInt64) {
        let landed = state.withLock { state -> (waiters: [Waiter], ticket: Ticket, task: Task<Void, Never>?)? in
            guard state.running == flight else { return nil }
            let task = state.takeRunning()
            switch result {
            case .success(let credential?):
                state.ticket.generation += 1
                state.ticket.credential = credential
                state.failuresInSuccession = 0
            case .success(nil):
                state.begun.removeLast()  // there was no way to get one, so it was no refresh
            case .failure(let error):
                state.ticket.failures += 1
                state.lastFailure = error
                state.failuresInSuccession += 1
                state.failedAt = now
            }
            return (state.takeWaiters(), state.ticket, task)
        }
        guard let landed else { return }
        landed.task?.cancel()  // the one that took too long; for one that has ended it means nothing
        for waiter in landed.waiters { waiter.resume(with: result.map { _ in landed.ticket }) }
    }
}

extension RefreshFlight.State {
    fileprivate mutating func takeWaiters() -> [RefreshFlight.Waiter] {
        defer { waiters = [:] }
        return Array(waiters.values)
    }

    /// - Returns: The refresh that ran, whose word counts no more.
    fileprivate mutating func takeRunning() -> Task<Void, Never>? {
        defer { (running, task) = (nil, nil) }
        return task
    }

    fileprivate mutating func arrive(
        _ id: Int, _ waiter: RefreshFlight.Waiter, _ theirs: RefreshFlight.Ticket, _ limits: RefreshFlight.Limits, _ now: UInt64
    ) -> RefreshFlight.Arrival {
        guard theirs.account == ticket.account else { return .over(.failure(Authentication.cleared)) }
        guard theirs.generation == ticket.generation else { return .over(.success(ticket)) }
        // A refresh has failed since the request was sent: its failure is the answer to this one too, however late it comes.
        if theirs.failures != ticket.failures, let lastFailure { return .over(.failure(lastFailure)) }
        if running != nil {
            waiters[id] = waiter
            return .parked
        }
        if let lastFailure, now < failedAt.addingSaturated(backOff(limits)) { return .over(.failure(lastFailure)) }
        begun.removeAll { $0.addingSaturated(limits.window) <= now }
        guard begun.count < limits.count else {
            let message = "more than \(limits.count) refreshes in \(limits.window)"
            return .over(.failure(WebServiceError(.excessiveRefresh, message)))
        }
        begun.append(now)
        nextFlight += 1
        running = nextFlight
        waiters[id] = waiter
        return .first(flight: nextFlight)
    }

    /// How long no refresh begins after the last failure.
    private func backOff(_ limits: RefreshFlight.Limits) -> Duration {
        guard failuresInSuccession > 1 else { return .zero }
        return min(.seconds(1 << min(failuresInSuccession - 2, 30)), limits.window)
    }
}
