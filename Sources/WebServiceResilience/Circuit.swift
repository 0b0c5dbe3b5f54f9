import WebServiceCore

/// The state machine of a circuit.
struct Circuit: Sendable {
    enum Outcome {
        case success, failure, neither

        init(_ result: Result<Response, any Error>, _ isFailure: (Result<Response, any Error>) -> Bool) {
            if isFailure(result) {
                self = .failure
            } else if case .success = result {
                self = .success
            } else {
                self = .neither
            }
        }
    }
    /// The decision about a request. A refusal contains the duration until the next trial; `nil` if
    /// no trial is planned.
    enum Admission { case sent(version: Int), refused(Duration?) }
    enum Change: String { case opened, closed }

    private enum Phase {
        case closed(RecentResults)
        /// If there is no instant, the circuit was opened manually.
        case open(until: UInt64?)
        /// The versions of the trials in flight, and the number of those that have succeeded.
        case halfOpen(trials: [Int], successes: Int)
    }

    private var phase = Phase.closed(RecentResults())
    /// The version changes with each phase and each trial. The result of a request counts only in
    /// the phase in which the request was sent, and the result of a trial counts only once.
    private var version = 0
    /// The number of phase changes.
    private(set) var changes = 0
    private var changed: UInt64 = 0

    func state(at now: UInt64) -> CircuitBreaker.State {
        switch phase {
        case .closed: .closed
        case .open(let end): .open(remaining: end.map { .nanoseconds(Int64(clamping: $0 - min($0, now))) })
        case .halfOpen: .halfOpen
        }
    }

    func isIdle(for limit: Duration, at now: UInt64) -> Bool {
        switch phase {
        case .closed(let results) where results.failures == 0: true
        case .open(nil): false
        case .halfOpen(let trials, _) where !trials.isEmpty: false
        case .closed, .open, .halfOpen: changed.addingSaturated(limit) <= now
        }
    }

    /// - Parameter maximumTrials: The number of trials that may be in flight or have succeeded.
    mutating func admit(at now: UInt64, maximumTrials: Int = 1) -> Admission {
        switch phase {
        case .closed: return .sent(version: version)
        case .open(nil): return .refused(nil)
        case .open(let end?) where end > now: return .refused(.nanoseconds(Int64(clamping: end - now)))
        case .open: enter(.halfOpen(trials: [], successes: 0), now)
        case .halfOpen: break
        }
        guard case .halfOpen(let trials, let successes) = phase, trials.count + successes < maximumTrials else {
            return .refused(.zero)
        }
        version += 1
        phase = .halfOpen(trials: trials + [version], successes: successes)
        return .sent(version: version)
    }

    /// Applies the result of a request.
    mutating func end(
        _ version: Int, _ outcome: Outcome, _ threshold: CircuitBreaker.Threshold, openDuration: Duration,
        maximumTrials: Int = 1, at now: UInt64
    ) -> Change? {
        switch phase {
        case .open: return nil
        case .closed(var results):
            guard version == self.version, outcome != .neither else { return nil }
            results.add(isFailure: outcome == .failure, threshold, at: now)
            phase = .closed(results)
            guard outcome == .failure else { return nil }
            changed = now
            guard results.reach(threshold) else { return nil }
        case .halfOpen(var trials, var successes):
            guard let index = trials.firstIndex(of: version) else { return nil }
            trials.remove(at: index)
            if outcome == .success { successes += 1 }
            if successes >= maximumTrials {
                enter(.closed(RecentResults()), now)
                return .closed
            }
            phase = .halfOpen(trials: trials, successes: successes)
            guard outcome == .failure else { return nil }
        }
        enter(.open(until: now.addingSaturated(openDuration)), now)
        return .opened
    }

    /// Opens the circuit until it is closed manually.
    mutating func open() { enter(.open(until: nil), changed) }

    /// Closes the circuit and forgets the results.
    mutating func close() {
        if case .closed = phase {
            phase = .closed(RecentResults())
        } else {
            enter(.closed(RecentResults()), changed)
        }
    }

    private mutating func enter(_ phase: Phase, _ now: UInt64) {
        self.phase = phase
        version += 1
        changes += 1
        changed = now
    }
}

/// The results that the threshold of a closed circuit counts.
struct RecentResults: Sendable {
    /// The results of a tenth of the window.
    private struct Step {
        let start: UInt64
        var requests = 0
        var failures = 0
    }

    /// At most eleven steps, oldest first. A count of consecutive failures needs only one step.
    private var steps: [Step] = []

    var requests: Int { steps.reduce(0) { $0 + $1.requests } }
    var failures: Int { steps.reduce(0) { $0 + $1.failures } }

    mutating func add(isFailure: Bool, _ threshold: CircuitBreaker.Threshold, at now: UInt64) {
        switch threshold {
        case .consecutiveFailures:
            if !isFailure { steps = [] }
            if steps.isEmpty { steps = [Step(start: now)] }
        case .failureRatio(_, _, let window):
            steps.removeAll { $0.start.addingSaturated(window) <= now }
            if steps.last.map({ $0.start.addingSaturated(window / 10) <= now }) ?? true {
                steps.append(Step(start: now))
            }
        }
        steps[steps.count - 1].requests += 1
        if isFailure { steps[steps.count - 1].failures += 1 }
    }

    func reach(_ threshold: CircuitBreaker.Threshold) -> Bool {
        switch threshold {
        case .consecutiveFailures(let maximum): failures >= maximum
        case .failureRatio(let ratio, let minimum, _):
            requests >= minimum && Double(failures) >= ratio * Double(requests)
        }
    }
}
