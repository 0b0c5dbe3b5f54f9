import WebServiceCore

/// The requests of one key in a ``ConcurrencyLimiter``: its limit, those in flight, and those that
/// wait.
///
/// It has no lock and no clock. No operation takes more than O(log n) time for n waiting requests.
struct ConcurrencyLane: Sendable {
    enum Entrance { case sent, waits(AlarmQueue.Token), refused }

    /// The changes after the end of a request.
    struct Change {
        /// The requests that are sent now, in this order.
        var admitted: [any AlarmTarget] = []
        /// The limits before and after the end.
        var limits: (before: Int, after: Int)
    }

    private var algorithm: any LimitAlgorithm
    private(set) var inFlight = 0
    private(set) var waitingCount = 0
    /// The waiting requests by their rank, the lowest first.
    private var waiting = AlarmQueue()
    /// The number of requests that have waited.
    private var number: UInt64 = 0
    /// The instant of the last end of a request.
    private(set) var lastEnd: UInt64 = 0

    init(_ algorithm: any LimitAlgorithm) { self.algorithm = algorithm }

    var limit: Int { algorithm.limit }

    mutating func enter(_ request: any AlarmTarget, _ priority: Request.Priority, maximumWaiting: Int) -> Entrance {
        if inFlight < algorithm.limit {
            inFlight += 1
            return .sent
        }
        guard waitingCount < maximumWaiting else { return .refused }
        waitingCount += 1
        number += 1
        return .waits(waiting.add(at: priority.rank(number), request))
    }

    /// Removes a waiting request.
    ///
    /// - Returns: The request, or `nil` if it was already admitted or removed.
    mutating func remove(_ token: AlarmQueue.Token) -> (any AlarmTarget)? {
        guard let request = waiting.remove(token) else { return nil }
        waitingCount -= 1
        return request
    }

    /// Ends a request, and admits those that the limit allows.
    mutating func end(roundTrip: UInt64, _ outcome: RequestOutcome, at now: UInt64) -> Change {
        let before = algorithm.limit
        algorithm.end(roundTrip: roundTrip, inFlight: inFlight, outcome: outcome)
        lastEnd = now
        inFlight -= 1
        var change = Change(limits: (before, algorithm.limit))
        // Ranks are unique.
        while inFlight < algorithm.limit, let rank = waiting.earliest, let next = waiting.takeDue(at: rank).first {
            inFlight += 1
            waitingCount -= 1
            change.admitted.append(next)
        }
        return change
    }
}
