import Foundation
import WebServiceCore

/// The requests of one key in a ``ConcurrencyLimiter``: its limit, those in flight, and those that
/// wait.
///
/// A lane has no lock and no clock. With n waiting requests, an operation takes O(log n) time on
/// average, because all of them are re-evaluated at most once while n / 8 requests end.
struct ConcurrencyLane: Sendable {
    enum Entrance {
        case sent, waits(PriorityQueue<WaitingRequest>.Token)
        /// Too many requests wait.
        case full
        /// The response is expected after the deadline, after a duration in nanoseconds.
        case late(UInt64)
    }

    /// The changes after the end of a request.
    struct Change {
        /// The requests that are sent now, in this order.
        var admitted: [WaitingRequest] = []
        /// The requests that are not sent, because the response is expected after their deadlines,
        /// and the expected durations in nanoseconds.
        var refused: [(request: WaitingRequest, expected: UInt64)] = []
        /// The limits before and after the end.
        var limits: (before: Int, after: Int)
    }

    /// The minimum number of requests that the averages cover, once that many requests have ended.
    private static let memory = 10

    private var algorithm: any LimitAlgorithm
    private(set) var inFlight = 0
    /// The number of waiting requests with each priority, the highest first.
    private var waitingCounts = [0, 0, 0]
    private var roundTrips = RoundTrips()
    /// The average interval at which requests end while others wait, in nanoseconds.
    private var interval = 0.0
    /// The number of intervals that the average covers.
    private var intervals = 0
    /// The number of requests that have ended since the waiting requests were last evaluated, and
    /// the instant of that evaluation.
    private var judgement: (ends: Int, instant: UInt64) = (0, 0)
    /// The waiting requests by their rank, the lowest first.
    private var waiting = PriorityQueue<WaitingRequest>()
    /// The number of requests that have waited.
    private var number: UInt64 = 0
    /// The instant of the last end of a request.
    private(set) var lastEnd: UInt64 = 0

    init(_ algorithm: any LimitAlgorithm) { self.algorithm = algorithm }

    var limit: Int { algorithm.limit }

    var waitingCount: Int { waitingCounts.reduce(0, +) }

    mutating func enter(_ request: WaitingRequest, maximumWaiting: Int, at now: UInt64) -> Entrance {
        if inFlight < algorithm.limit {
            inFlight += 1
            return .sent
        }
        guard waitingCount < maximumWaiting else { return .full }
        let rank = request.priority.rank(number + 1)
        let place = waitingCounts[...Self.level(rank)].reduce(1, +)
        // The wait is only an estimate, and a server that has been overloaded for a long time must
        // not receive requests shortly before their deadlines.
        if let expected = lateness(of: request, at: place, roundTrips.upperBound, now) { return .late(expected) }
        if waitingCount == 0 { judgement = (0, now) }
        number += 1
        waitingCounts[Self.level(rank)] += 1
        return .waits(waiting.add(request, at: rank))
    }

    private static func level(_ rank: UInt64) -> Int { Int(rank >> 62) }

    /// Removes a waiting request.
    ///
    /// - Returns: Whether the request was still waiting.
    mutating func remove(_ token: PriorityQueue<WaitingRequest>.Token, _ priority: Request.Priority) -> Bool {
        guard waiting.remove(token) != nil else { return false }
        waitingCounts[Self.level(priority.rank(0))] -= 1
        return true
    }

    /// Ends a request, and admits those that the limit allows.
    ///
    /// - Parameter isTight: Whether twice the duration would have exceeded the request's deadline.
    mutating func end(
        roundTrip: UInt64, _ outcome: RequestOutcome, isTight: Bool = false, at now: UInt64
    ) -> Change {
        let before = algorithm.limit
        algorithm.end(
            EndedRequest(roundTrip: roundTrip, inFlight: inFlight, outcome: outcome, instant: now, isTight: isTight))
        let memory = max(Self.memory, algorithm.limit)
        roundTrips.add(roundTrip, outcome, memory: memory)
        lastEnd = now
        inFlight -= 1
        var change = Change(limits: (before, algorithm.limit))
        judgement.ends += 1
        let isFirst = intervals == 0
        if waitingCount > 0, judgement.ends >= algorithm.limit, isFirst || judgement.ends >= waitingCount / 8 {
            change.refused = judge(memory: memory, at: now)
        }
        while inFlight < algorithm.limit, let next = waiting.popFirst() {
            waitingCounts[Self.level(next.priority.rank(0))] -= 1
            if roundTrips.count > 0, let expected = next.lateness(roundTrips.likelyBound, now) {
                change.refused.append((next, expected))
            } else {
                inFlight += 1
                change.admitted.append(next)
            }
        }
        return change
    }

    /// Removes the waiting requests whose responses are now expected after their deadlines.
    private mutating func judge(memory: Int, at now: UInt64) -> [(WaitingRequest, UInt64)] {
        let mean = Double(now - min(judgement.instant, now)) / Double(judgement.ends)
        intervals = min(intervals + judgement.ends, memory)
        interval += (mean - interval) * min(Double(judgement.ends) / Double(intervals), 1)
        judgement = (0, now)
        guard algorithm.outlook != .unknown else { return [] }
        // The refusal of a waiting request is final, so the estimate takes into account that the
        // limit may still grow.
        let growth = algorithm.outlook == .settling ? 2.0 : 1
        var (refused, place): ([(WaitingRequest, UInt64)], Int) = ([], 1)
        var requests = PriorityQueue<WaitingRequest>()
        swap(&requests, &waiting)
        requests.removeAll { request in
            guard let expected = lateness(of: request, at: place, roundTrips.mean, growth: growth, now) else {
                place += 1
                return false
            }
            refused.append((request, expected))
            return true
        }
        waiting = requests
        for (request, _) in refused { waitingCounts[Self.level(request.priority.rank(0))] -= 1 }
        return refused
    }

    /// Returns the duration until the response to a waiting request, in nanoseconds, if it exceeds
    /// the time until the deadline.
    ///
    /// - Parameter growth: The factor by which the rate at which requests end may still increase.
    private func lateness(
        of request: WaitingRequest, at place: Int, _ roundTrip: Double, growth: Double = 1, _ now: UInt64
    ) -> UInt64? {
        guard let wait = expectedWait(place) else { return nil }
        return request.lateness(wait / growth + roundTrip, now)
    }

    /// Returns the expected wait of the request at a place in the queue, from 1, in nanoseconds;
    /// `nil` if it is unknown.
    private func expectedWait(_ place: Int) -> Double? {
        switch algorithm.outlook {
        case .unknown: return nil
        case .settling, .steady:
            // The interval is not measured while no request waits.
            let served = roundTrips.count > 0 ? roundTrips.mean / Double(algorithm.limit) : .infinity
            let interval = min(intervals > 0 ? interval : .infinity, served)
            return interval.isFinite ? Double(place) * interval : nil
        case .doubling(let roundTrip, let maximum):
            let (limit, place) = (Double(algorithm.limit), Double(place))
            let places = maximum - limit
            let trips = place <= places ? log2(1 + place / limit) : log2(maximum / limit) + (place - places) / maximum
            return roundTrip * trips
        }
    }
}

/// The average duration of the requests that succeeded, or that had no response in time and took
/// longer than the average, and its variation.
private struct RoundTrips: Sendable {
    private(set) var count = 0
    /// The mean in nanoseconds.
    private(set) var mean = 0.0
    private var deviation = 0.0

    /// A duration that few requests exceed: four mean deviations above the mean, as in the
    /// retransmission timeout of TCP (RFC 6298).
    var upperBound: Double { mean + 4 * deviation }

    /// A duration that most requests do not exceed.
    var likelyBound: Double { mean + deviation }

    /// - Parameter memory: The maximum number of requests that the averages cover.
    mutating func add(_ roundTrip: UInt64, _ outcome: RequestOutcome, memory: Int) {
        let difference = Double(roundTrip) - mean
        switch outcome {
        case .success: break
        case .timeout, .late: guard difference > 0 else { return }
        case .overload, .neither: return
        }
        count = min(count + 1, memory)
        mean += difference / Double(count)
        deviation += ((count > 1 ? abs(difference) : 0) - deviation) / Double(count)
    }
}

/// A request that waits for its permit.
final class WaitingRequest: Sendable {
    let turn = Once<Result<Void, any Error>>()
    let priority: Request.Priority
    /// The instant of the deadline.
    let deadline: UInt64

    init(_ priority: Request.Priority = .normal, deadline: UInt64 = .max) {
        self.priority = priority
        self.deadline = deadline
    }

    /// Sends the request.
    func admit() { turn.set(.success(())) }

    /// Returns a duration in whole nanoseconds if it exceeds the time until the deadline.
    fileprivate func lateness(_ expected: Double, _ now: UInt64) -> UInt64? {
        expected > Double(deadline - min(now, deadline)) ? UInt64(min(expected, 1e18)) : nil
    }
}
