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
    enum Admission { case sent(version: Int), refused(Duration) }
    enum Change: String { case opened, closed }

    private enum Phase {
        case closed(RecentResults)
        case open(until: UInt64)
        /// A trial is in flight.
        case halfOpen
    }

    private var phase = Phase.closed(RecentResults())
    /// The number of changes of the phase. The result of a request counts only in the phase in
    /// which the request was sent.
    private var version = 0
    private var changed: UInt64 = 0

    func isIdle(for limit: Duration, at now: UInt64) -> Bool {
        switch phase {
        case .closed(let results) where results.failures == 0: true
        case .closed, .open: changed.addingSaturated(limit) <= now
        case .halfOpen: false
        }
    }

    mutating func admit(at now: UInt64) -> Admission {
        switch phase {
        case .closed: return .sent(version: version)
        case .halfOpen: return .refused(.zero)
        case .open(let end) where end > now: return .refused(.nanoseconds(Int64(clamping: end - now)))
        case .open:
            enter(.halfOpen, now)
            return .sent(version: version)
        }
    }

    /// Applies the result of a request.
    mutating func end(
        _ version: Int, _ outcome: Outcome, _ threshold: CircuitBreaker.Threshold, openDuration: Duration,
        at now: UInt64
    ) -> Change? {
        guard version == self.version else { return nil }
        switch (phase, outcome) {
        case (.open, _), (.closed, .neither): return nil
        case (.closed(var results), _):
            results.add(isFailure: outcome == .failure, threshold, at: now)
            phase = .closed(results)
            guard outcome == .failure else { return nil }
            changed = now
            guard results.reach(threshold) else { return nil }
            enter(.open(until: now.addingSaturated(openDuration)), now)
            return .opened
        case (.halfOpen, .failure):
            enter(.open(until: now.addingSaturated(openDuration)), now)
            return .opened
        case (.halfOpen, .success):
            enter(.closed(RecentResults()), now)
            return .closed
        case (.halfOpen, .neither):
            enter(.open(until: now), now)
            return nil
        }
    }

    private mutating func enter(_ phase: Phase, _ now: UInt64) {
        self.phase = phase
        version += 1
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

    /// At most eleven steps, the oldest first. Consecutive failures need one.
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
