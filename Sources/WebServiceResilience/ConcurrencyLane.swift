import WebServiceCore

/// The requests of one key in a ``ConcurrencyLimiter``: its limit, those in flight, and those that
/// wait.
///
/// It has no lock and no clock. No operation takes more than O(log n) time for n waiting requests.
struct ConcurrencyLane: Sendable {
    enum Entrance {
        case sent, waits(AlarmQueue.Token)
        /// Too many requests wait.
        case full
        /// The expected wait, in nanoseconds, is too long.
        case late(UInt64)
    }

    /// The changes after the end of a request.
    struct Change {
        /// The requests that are sent now, in this order.
        var admitted: [any AlarmTarget] = []
        /// The limits before and after the end.
        var limits: (before: Int, after: Int)
    }

    /// The weight of a duration in the moving average.
    private static let weight = 0.1

    private var algorithm: any LimitAlgorithm
    private(set) var inFlight = 0
    /// The number of waiting requests with each priority, the highest first.
    private var waitingCounts = [0, 0, 0]
    /// The moving average of the durations of successful requests, in nanoseconds.
    private var roundTrip = 0.0
    /// The waiting requests by their rank, the lowest first.
    private var waiting = AlarmQueue()
    /// The number of requests that have waited.
    private var number: UInt64 = 0
    /// The instant of the last end of a request.
    private(set) var lastEnd: UInt64 = 0

    init(_ algorithm: any LimitAlgorithm) { self.algorithm = algorithm }

    var limit: Int { algorithm.limit }

    var waitingCount: Int { waitingCounts.reduce(0, +) }

    /// - Parameter patience: The maximum expected wait, in nanoseconds.
    mutating func enter(
        _ request: any AlarmTarget, _ priority: Request.Priority, maximumWaiting: Int, patience: UInt64 = .max
    ) -> Entrance {
        if inFlight < algorithm.limit {
            inFlight += 1
            return .sent
        }
        guard waitingCount < maximumWaiting else { return .full }
        let rank = priority.rank(number + 1)
        let wait = Double(waitingCounts[...Self.level(rank)].reduce(1, +)) * roundTrip / Double(algorithm.limit)
        guard wait <= Double(patience) else { return .late(UInt64(min(wait, 1e18))) }
        number += 1
        waitingCounts[Self.level(rank)] += 1
        return .waits(waiting.add(at: rank, request))
    }

    private static func level(_ rank: UInt64) -> Int { Int(rank >> 62) }

    /// Removes a waiting request.
    ///
    /// - Returns: The request, or `nil` if it was already admitted or removed.
    mutating func remove(_ token: AlarmQueue.Token, _ priority: Request.Priority) -> (any AlarmTarget)? {
        guard let request = waiting.remove(token) else { return nil }
        waitingCounts[Self.level(priority.rank(0))] -= 1
        return request
    }

    /// Ends a request, and admits those that the limit allows.
    mutating func end(roundTrip: UInt64, _ outcome: RequestOutcome, at now: UInt64) -> Change {
        let before = algorithm.limit
        algorithm.end(roundTrip: roundTrip, inFlight: inFlight, outcome: outcome)
        if outcome == .success {
            self.roundTrip += (Double(roundTrip) - self.roundTrip) * (self.roundTrip == 0 ? 1 : Self.weight)
        }
        lastEnd = now
        inFlight -= 1
        var change = Change(limits: (before, algorithm.limit))
        // Ranks are unique.
        while inFlight < algorithm.limit, let rank = waiting.earliest, let next = waiting.takeDue(at: rank).first {
            inFlight += 1
            waitingCounts[Self.level(rank)] -= 1
            change.admitted.append(next)
        }
        return change
    }
}
