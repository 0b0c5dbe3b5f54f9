import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceResilience

@Suite("Lane of a ConcurrencyLimiter", .permit)
struct ConcurrencyLaneTests {
    /// The requests that were created, which are identified by their numbers.
    private final class Waiters {
        private var numbers: [ObjectIdentifier: (request: WaitingRequest, number: Int)] = [:]

        func make(_ number: Int, _ priority: Request.Priority = .normal, deadline: UInt64 = .max) -> WaitingRequest {
            let request = WaitingRequest(priority, deadline: deadline)
            numbers[ObjectIdentifier(request)] = (request, number)
            return request
        }

        func number(_ request: WaitingRequest) -> Int { numbers[ObjectIdentifier(request)]?.number ?? -1 }
    }

    /// An algorithm with a constant limit and outlook.
    private struct Algorithm: LimitAlgorithm {
        let limit: Int
        let outlook: LimitOutlook

        mutating func end(_ request: EndedRequest) {}
    }

    private let waiters = Waiters()

    private func numbers(_ change: ConcurrencyLane.Change) -> [Int] { change.admitted.map(waiters.number) }

    private func refused(_ change: ConcurrencyLane.Change) -> [Int] {
        change.refused.map { waiters.number($0.request) }
    }

    private func token(_ entrance: ConcurrencyLane.Entrance) -> PriorityQueue<WaitingRequest>.Token? {
        if case .waits(let token) = entrance { token } else { nil }
    }

    /// Returns the duration after which a response is expected, for a request that cannot wait.
    private func expected(_ lane: ConcurrencyLane, _ priority: Request.Priority = .normal, at now: UInt64) -> UInt64? {
        var copy = lane
        let entrance = copy.enter(waiters.make(-1, priority, deadline: now), maximumWaiting: 99, at: now)
        if case .late(let expected) = entrance { return expected }
        return nil
    }

    @Test("An extreme round-trip time does not trap")
    func extremeRoundTrip() {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        _ = lane.enter(waiters.make(0), maximumWaiting: .max, at: 0)
        _ = lane.end(roundTrip: .max, .success, at: 1)
        _ = lane.enter(waiters.make(1), maximumWaiting: .max, at: 1)
        let entrance = lane.enter(waiters.make(100, deadline: 2), maximumWaiting: .max, at: 1)
        guard case .late(1_000_000_000_000_000_000) = entrance else {
            Issue.record("\(entrance)")
            return
        }
    }

    @Test("The expected response depends on the limit, the round-trip times and the priority")
    func expectedWait() {
        var lane = ConcurrencyLane(FixedLimit(limit: 2))
        for number in 0..<2 { _ = lane.enter(waiters.make(number), maximumWaiting: 9, at: 0) }
        #expect(expected(lane, at: 0) == nil)
        _ = lane.end(roundTrip: 100, .success, at: 100)
        for number in 0..<4 { _ = lane.enter(waiters.make(number), maximumWaiting: 9, at: 100) }
        // Four requests at two places, and the response itself.
        #expect(expected(lane, at: 100) == 300)
        #expect(expected(lane, .high, at: 100) == 150)
        _ = lane.end(roundTrip: 900, .neither, at: 100)
        #expect(expected(lane, at: 100) == 250)
        // The mean is 200, and the mean deviation 100.
        _ = lane.end(roundTrip: 300, .success, at: 100)
        #expect(expected(lane, .low, at: 100) ?? 0 >= 600)
    }

    @Test("While the limit doubles, the expected wait grows with the logarithm of the place")
    func doubling() {
        var lane = ConcurrencyLane(Algorithm(limit: 2, outlook: .doubling(roundTrip: 100, maximum: 8)))
        for number in 0..<7 { _ = lane.enter(waiters.make(number), maximumWaiting: 99, at: 0) }
        // Place 6 at a limit of 2, 4 and 8.
        #expect(expected(lane, at: 0) == 200)
        for number in 0..<9 { _ = lane.enter(waiters.make(number), maximumWaiting: 99, at: 0) }
        #expect(expected(lane, at: 0) == 200 + 100 * 9 / 8)
        let unknown = Algorithm(limit: 1, outlook: .unknown)
        var other = ConcurrencyLane(unknown)
        for number in 0..<3 { _ = other.enter(waiters.make(number, deadline: 1), maximumWaiting: 99, at: 0) }
        let change = other.end(roundTrip: 1, .success, at: 0)
        #expect(refused(change) == [])
        #expect(numbers(change) == [1])
    }

    @Test("When the first duration is known, requests that cannot meet their deadlines are refused")
    func firstDuration() {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        for number in 0..<20 { _ = lane.enter(waiters.make(number, deadline: 400), maximumWaiting: 99, at: 0) }
        let change = lane.end(roundTrip: 100, .success, at: 100)
        #expect(numbers(change) == [1])
        #expect(refused(change) == Array(3..<20))
        #expect(lane.waitingCount == 1)
        #expect(numbers(lane.end(roundTrip: 100, .success, at: 200)) == [2])
    }

    @Test("While a limit settles, requests may wait twice as long as expected, but none enters")
    func settling() {
        var lane = ConcurrencyLane(Algorithm(limit: 1, outlook: .settling))
        for number in 0..<20 { _ = lane.enter(waiters.make(number, deadline: 400), maximumWaiting: 99, at: 0) }
        let change = lane.end(roundTrip: 100, .success, at: 100)
        #expect(refused(change) == Array(5..<20))
        let entrance = lane.enter(waiters.make(20, deadline: 500), maximumWaiting: 99, at: 100)
        guard case .late(500) = entrance else {
            Issue.record("\(entrance)")
            return
        }
    }

    @Test("When the server becomes slower, the waiting requests are judged again")
    func slower() {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        _ = lane.enter(waiters.make(0), maximumWaiting: 99, at: 0)
        _ = lane.end(roundTrip: 10, .success, at: 10)
        for number in 1..<10 { _ = lane.enter(waiters.make(number, deadline: 1_000), maximumWaiting: 99, at: 10) }
        let first = lane.end(roundTrip: 10, .success, at: 20)
        #expect(refused(first) == [])
        var kept = lane.waitingCount
        for round in 1...3 {
            let change = lane.end(roundTrip: 200, .success, at: 20 + UInt64(round) * 200)
            kept -= change.refused.count + change.admitted.count
        }
        #expect(kept == lane.waitingCount)
        #expect(lane.waitingCount <= 2)
    }

    @Test("A request that waited is not sent if a response takes longer than the rest of its time")
    func lateTurn() {
        var lane = ConcurrencyLane(FixedLimit(limit: 10))
        for number in 0..<10 { _ = lane.enter(waiters.make(number), maximumWaiting: 99, at: 0) }
        _ = lane.enter(waiters.make(10, deadline: 150), maximumWaiting: 99, at: 0)
        _ = lane.enter(waiters.make(11), maximumWaiting: 99, at: 0)
        let change = lane.end(roundTrip: 100, .success, at: 100)
        #expect(refused(change) == [10])
        #expect(numbers(change) == [11])
        #expect(lane.inFlight == 10)
        #expect(lane.waitingCount == 0)
    }

    @Test(
        "When the limit grows, an end admits several requests; when it shrinks, none until enough have ended")
    func changingLimit() {
        var lane = ConcurrencyLane(AIMDLimit(initial: 4, bounds: 1...10, decrease: 0.5))
        for number in 0..<8 { _ = lane.enter(waiters.make(number), maximumWaiting: 10, at: 0) }
        #expect(lane.waitingCount == 4)
        #expect(numbers(lane.end(roundTrip: 1, .overload, at: 1)) == [])
        #expect(lane.limit == 2)
        #expect(lane.inFlight == 3)
        #expect(numbers(lane.end(roundTrip: 1, .neither, at: 1)) == [])
        #expect(numbers(lane.end(roundTrip: 1, .neither, at: 1)) == [4])
        #expect(numbers(lane.end(roundTrip: 1, .neither, at: 1)) == [5])
        #expect(numbers(lane.end(roundTrip: 1, .success, at: 1)) == [6])
        let change = lane.end(roundTrip: 1, .success, at: 1)
        #expect(numbers(change) == [7])
        #expect(lane.waitingCount == 0)
    }

    @Test("A request that was admitted or removed cannot be removed")
    func removal() throws {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        var tokens: [PriorityQueue<WaitingRequest>.Token] = []
        for number in 0..<4 {
            tokens += [token(lane.enter(waiters.make(number), maximumWaiting: 10, at: 0))].compactMap(\.self)
        }
        #expect(tokens.count == 3)
        let removals = (0..<2).map { _ in lane.remove(tokens[1], .normal) }
        #expect(removals == [true, false])
        #expect(numbers(lane.end(roundTrip: 1, .success, at: 1)) == [1])
        let isRemoved = lane.remove(tokens[0], .normal)
        #expect(!isRemoved)
        #expect(lane.waitingCount == 1)
        #expect(lane.inFlight == 1)
    }

    @Test(
        "Random operations give the order of a sorted list, and never exceed the limit"
    )
    func model() {
        var generator = SeededGenerator(seed: 11)
        var lane = ConcurrencyLane(FixedLimit(limit: 3))
        var expected: [(level: Int, number: Int, token: PriorityQueue<WaitingRequest>.Token)] = []
        var inFlight = 0
        let levels: [Request.Priority] = [.high, .normal, .low]
        for number in 0..<20_000 {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let level = Int.random(in: 0..<3, using: &generator)
                switch lane.enter(waiters.make(number, levels[level]), maximumWaiting: 50, at: 0) {
                case .sent: inFlight += 1
                case .waits(let token): expected.append((level, number, token))
                case .full: #expect(expected.count == 50)
                case .late: Issue.record("the patience is unlimited")
                }
            case 2 where !expected.isEmpty:
                let place = Int.random(in: 0..<expected.count, using: &generator)
                let isRemoved = lane.remove(expected[place].token, levels[expected[place].level])
                #expect(isRemoved)
                expected.remove(at: place)
            default:
                guard inFlight > 0 else { continue }
                let next = expected.min { ($0.level, $0.number) < ($1.level, $1.number) }
                #expect(numbers(lane.end(roundTrip: 1, .success, at: 1)) == [next?.number].compactMap(\.self))
                if let next { expected.removeAll { $0.number == next.number } } else { inFlight -= 1 }
            }
            #expect(lane.inFlight == inFlight)
            #expect(lane.waitingCount == expected.count)
        }
    }

    @Test(
        "Many waiting requests are admitted and removed in time that hardly depends on their number"
    )
    func manyWaiting() {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        let count = amount(10_000, thorough: 100_000)
        let tokens = (0..<count).compactMap { token(lane.enter(waiters.make($0), maximumWaiting: .max, at: 0)) }
        for token in tokens.reversed().prefix(count / 2) { _ = lane.remove(token, .normal) }
        var admitted = 0
        while lane.inFlight > 0 { admitted += numbers(lane.end(roundTrip: 1, .success, at: 1)).count }
        #expect(admitted == count / 2 - 1)
    }
}
