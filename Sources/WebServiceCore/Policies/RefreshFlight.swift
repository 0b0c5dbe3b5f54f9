import Foundation

/// The refreshes of one account, at most one at a time, and the requests that wait for them.
///
/// ``Authentication`` calls ``wait(_:_:_:refresh:)`` after a 401, and before a credential expires.
final class RefreshFlight: Sendable {
    /// The state of the account when a request was sent.
    struct Ticket: Sendable {
        /// The number of log-outs so far.
        var account: Int
        /// The number of new credentials and log-outs so far.
        var generation: Int
        /// The number of failed refreshes so far.
        var failures: Int
        /// The credential of the last refresh or update; `nil` if there was none since the last
        /// log-out.
        var credential: Credential?
    }

    struct Limits: Sendable {
        let duration: Duration
        let count: Int
        let window: Duration
    }

    fileprivate typealias Waiter = Once<Result<Ticket, any Error>>

    fileprivate struct State {
        var ticket = Ticket(account: 0, generation: 0, failures: 0)
        var lastFailure: (any Error)?
        /// The number of failed refreshes since the last new credential or log-out.
        var failuresInSuccession = 0
        /// The instant of the last failure.
        var failedAt: UInt64 = 0
        var waiters: [ObjectIdentifier: Waiter] = [:]
        /// The number of the refresh in progress, or `nil`. The result of any other refresh is
        /// ignored.
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
            state.ticket = Ticket(
                account: state.ticket.account + 1, generation: state.ticket.generation + 1,
                failures: state.ticket.failures)
            state.failuresInSuccession = 0
            return (state.takeWaiters(), state.takeRunning())
        }
        task?.cancel()
        for waiter in waiters { waiter.set(.failure(Authentication.cleared)) }
    }

    func update(_ credential: Credential) {
        let (waiters, ticket, task) = state.withLock { state in
            state.ticket.generation += 1
            state.ticket.credential = credential
            state.failuresInSuccession = 0
            return (state.takeWaiters(), state.ticket, state.takeRunning())
        }
        task?.cancel()
        for waiter in waiters { waiter.set(.success(ticket)) }
    }

    fileprivate enum Arrival {
        /// A newer credential or an error is already available.
        case over(Result<Ticket, any Error>)
        case parked
        /// The request waits, and the refresh must be started.
        case first(flight: Int)
    }

    /// Waits for a credential newer than the ticket's, and starts a refresh unless one is in
    /// progress. Cancelling the Swift task ends only this wait.
    func wait(
        _ ticket: Ticket, _ limits: Limits, _ clock: TaskClock,
        refresh: @escaping @Sendable () async throws -> Credential?
    ) async throws -> Ticket {
        try Task.checkCancellation()
        let waiter = Waiter()
        let now = clock.now
        switch state.withLock({ $0.arrive(waiter, ticket, limits, at: now) }) {
        case .over(let result): return try result.get()
        case .parked: break
        case .first(let flight): begin(flight, limits, clock, refresh: refresh)
        }
        return try await withTaskCancellationHandler {
            try await waiter.value.get()
        } onCancel: {
            _ = state.withLock { $0.waiters.removeValue(forKey: ObjectIdentifier(waiter)) }
            waiter.set(.failure(CancellationError()))
        }
    }

    private func begin(
        _ flight: Int, _ limits: Limits, _ clock: TaskClock,
        refresh: @escaping @Sendable () async throws -> Credential?
    ) {
        let alarm = clock.schedule(after: limits.duration) { [self] in
            land(
                flight,
                .failure(
                    WebServiceError(
                        .authenticationFailed,
                        "the refresh took longer than \(limits.duration); make it faster or increase refreshLimit")
                ),
                at: clock.now)
        }
        // The system clock of ``Authentication/withCredential(refreshingAfter:_:)`` does not count
        // work.
        let task = Task(executorPreference: WorkCount.current ?? clock.executor) { [self] in
            do {
                // The deadline of one request does not apply, because other requests wait for the
                // refresh as well.
                let credential = try await DeadlineScope.$current.withValue(nil) { try await refresh() }
                clock.cancel(alarm)
                land(flight, .success(credential), at: clock.now)
            } catch {
                clock.cancel(alarm)
                let failure = WebServiceError(
                    .authenticationFailed,
                    "the credential could not be refreshed\(Self.reason(error)); see the underlying error",
                    underlying: error)
                land(flight, .failure(failure), at: clock.now)
            }
        }
        let isWanted = state.withLock { state in
            if state.running == flight { state.task = task }
            return state.running == flight
        }
        if !isWanted { task.cancel() }
    }

    /// Returns the kind of an error of a refresh. Other text of the error is omitted, because it
    /// may be secret. The kind is the status and the error code of the response (RFC 6749, section
    /// 5.2), the code of an error of this library or of the transport, or a type.
    private static func reason(_ error: any Error) -> String {
        guard let error = error as? WebServiceError else { return ": \(ExchangeLog.Attempt.kind(of: error))" }
        guard error.code == .unacceptableStatus, let status = error.status else { return ": \(error.code)" }
        let code = (try? error.decodeBody(JSONValue.self))?["error"]?.string  // other bodies have no code
        guard let code, (1...40).contains(code.utf8.count), code.utf8.allSatisfy(isCodeByte) else {
            return ": status \(status)"
        }
        return ": status \(status), \(code)"
    }

    private static func isCodeByte(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "_")
    }

    /// Completes the refresh in progress; the result of any other refresh is ignored.
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
                state.begun.removeLast()  // no refresh was possible, so none is counted
            case .failure(let error):
                state.ticket.failures += 1
                state.lastFailure = error
                state.failuresInSuccession += 1
                state.failedAt = now
            }
            return (state.takeWaiters(), state.ticket, task)
        }
        guard let landed else { return }
        landed.task?.cancel()  // ends a refresh that exceeded its limit; no effect on a finished one
        for waiter in landed.waiters { waiter.set(result.map { _ in landed.ticket }) }
    }
}

extension RefreshFlight.State {
    fileprivate mutating func takeWaiters() -> [RefreshFlight.Waiter] {
        defer { waiters = [:] }
        return Array(waiters.values)
    }

    /// - Returns: The refresh in progress, whose result is now ignored.
    fileprivate mutating func takeRunning() -> Task<Void, Never>? {
        defer { (running, task) = (nil, nil) }
        return task
    }

    fileprivate mutating func arrive(
        _ waiter: RefreshFlight.Waiter, _ theirs: RefreshFlight.Ticket, _ limits: RefreshFlight.Limits,
        at now: UInt64
    ) -> RefreshFlight.Arrival {
        guard theirs.account == ticket.account else { return .over(.failure(Authentication.cleared)) }
        guard theirs.generation == ticket.generation else { return .over(.success(ticket)) }
        // A refresh has failed since this request was sent, so the request fails with the same
        // error.
        if theirs.failures != ticket.failures, let lastFailure { return .over(.failure(lastFailure)) }
        if running != nil {
            waiters[ObjectIdentifier(waiter)] = waiter
            return .parked
        }
        if let lastFailure, now < failedAt.addingSaturated(backOff(limits)) { return .over(.failure(lastFailure)) }
        begun.removeAll { $0.addingSaturated(limits.window) <= now }
        guard begun.count < limits.count else {
            let message =
                "the maximum of \(limits.count) refreshes in \(limits.window) is reached; "
                + "check why they fail or why the server rejects each new credential"
            let cause = failuresInSuccession > 0 ? lastFailure : nil
            return .over(.failure(WebServiceError(.excessiveRefresh, message, underlying: cause)))
        }
        begun.append(now)
        nextFlight += 1
        running = nextFlight
        waiters[ObjectIdentifier(waiter)] = waiter
        return .first(flight: nextFlight)
    }

    /// Returns the duration after the last failure during which no refresh starts.
    private func backOff(_ limits: RefreshFlight.Limits) -> Duration {
        guard failuresInSuccession > 1 else { return .zero }
        return .seconds(1).doubled(failuresInSuccession - 2, upTo: limits.window)
    }
}
