import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceResilience

@Suite("Lane of a ConcurrencyLimiter", .permit)
struct ConcurrencyLaneTests {
    /// A request, which is identified by its number.
    private final class Waiter: AlarmTarget {
        let number: Int

        init(_ number: Int) { self.number = number }

        func ring() {}
    }

    private func numbers(_ change: ConcurrencyLane.Change) -> [Int] {
        change.admitted.compactMap { ($0 as? Waiter)?.number }
    }

    private func token(_ entrance: ConcurrencyLane.Entrance) -> AlarmQueue.Token? {
        if case .waits(let token) = entrance { token } else { nil }
    }

    @Test("An extreme round-trip time does not trap", .covers("R-25"))
    func extremeRoundTrip() {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        _ = lane.enter(Waiter(0), .normal, maximumWaiting: .max)
        _ = lane.end(roundTrip: .max, .success, at: 1)
        for number in 1..<100 { _ = lane.enter(Waiter(number), .normal, maximumWaiting: .max) }
        guard case .late(let wait) = lane.enter(Waiter(100), .normal, maximumWaiting: .max, patience: 1) else {
            Issue.record("the request is admitted")
            return
        }
        #expect(wait == 1_000_000_000_000_000_000)
    }

    @Test("The expected wait depends on the limit, the round-trip time and the priority", .covers("R-25"))
    func expectedWait() {
        var lane = ConcurrencyLane(FixedLimit(limit: 2))
        func wait(_ priority: Request.Priority) -> UInt64? {
            var copy = lane
            guard case .late(let wait) = copy.enter(Waiter(0), priority, maximumWaiting: 9, patience: 0) else {
                return nil
            }
            return wait
        }
        for number in 0..<3 { _ = lane.enter(Waiter(number), .normal, maximumWaiting: 9) }
        #expect(wait(.normal) == nil)
        _ = lane.end(roundTrip: 100, .success, at: 1)
        for number in 0..<2 { _ = lane.enter(Waiter(number), .normal, maximumWaiting: 9) }
        #expect(wait(.normal) == 150)
        #expect(wait(.high) == 50)
        _ = lane.end(roundTrip: 900, .neither, at: 1)
        #expect(wait(.normal) == 100)
        _ = lane.end(roundTrip: 200, .success, at: 1)
        #expect(wait(.low) == 55)
    }

    @Test(
        "When the limit grows, an end admits several requests; when it shrinks, none until enough have ended",
        .covers("R-01"))
    func changingLimit() {
        var lane = ConcurrencyLane(AIMDLimit(initial: 4, bounds: 1...10, decrease: 0.5))
        for number in 0..<8 { _ = lane.enter(Waiter(number), .normal, maximumWaiting: 10) }
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

    @Test("A request that was admitted or removed cannot be removed", .covers("R-03"))
    func removal() throws {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        var tokens: [AlarmQueue.Token] = []
        for number in 0..<4 {
            tokens += [token(lane.enter(Waiter(number), .normal, maximumWaiting: 10))].compactMap(\.self)
        }
        #expect(tokens.count == 3)
        #expect(lane.remove(tokens[1], .normal) != nil)
        #expect(lane.remove(tokens[1], .normal) == nil)
        #expect(numbers(lane.end(roundTrip: 1, .success, at: 1)) == [1])
        #expect(lane.remove(tokens[0], .normal) == nil)
        #expect(lane.waitingCount == 1)
        #expect(lane.inFlight == 1)
    }

    @Test(
        "Random operations give the order of a sorted list, and never exceed the limit", .covers("R-01", "R-02", "R-03")
    )
    func model() {
        var generator = SeededGenerator(seed: 11)
        var lane = ConcurrencyLane(FixedLimit(limit: 3))
        var expected: [(level: Int, number: Int, token: AlarmQueue.Token)] = []
        var inFlight = 0
        let levels: [Request.Priority] = [.high, .normal, .low]
        for number in 0..<20_000 {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let level = Int.random(in: 0..<3, using: &generator)
                switch lane.enter(Waiter(number), levels[level], maximumWaiting: 50) {
                case .sent: inFlight += 1
                case .waits(let token): expected.append((level, number, token))
                case .full: #expect(expected.count == 50)
                case .late: Issue.record("the patience is unlimited")
                }
            case 2 where !expected.isEmpty:
                let place = Int.random(in: 0..<expected.count, using: &generator)
                #expect(
                    (lane.remove(expected[place].token, levels[expected[place].level]) as? Waiter)?.number
                        == expected[place].number)
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
        "100,000 waiting requests are admitted and removed in time that hardly depends on their number", .covers("R-02")
    )
    func manyWaiting() {
        var lane = ConcurrencyLane(FixedLimit(limit: 1))
        let tokens = (0..<100_000).compactMap { token(lane.enter(Waiter($0), .normal, maximumWaiting: .max)) }
        for token in tokens.reversed().prefix(50_000) { _ = lane.remove(token, .normal) }
        var admitted = 0
        while lane.inFlight > 0 { admitted += numbers(lane.end(roundTrip: 1, .success, at: 1)).count }
        #expect(admitted == 49_999)
    }
}
