import TestSupport
import Testing

@testable import WebServiceResilience

@Suite("Growth of an adaptive limit", .permit)
struct LimitProbeTests {
    /// A server with a number of workers, and without random variation.
    private struct Server {
        var probe: LimitProbe
        let workers: Int
        /// The time of a request without a queue, in nanoseconds.
        var time = 1_000_000
        /// The maximum number of requests in flight.
        var callers = Int.max
        private var instant: UInt64 = 1_000_000_000

        init(initial: Int, maximum: Double = 1_000, workers: Int) {
            probe = LimitProbe(initial: initial, bounds: 1...maximum)
            self.workers = workers
        }

        /// Ends as many requests as the limit was at the beginning of the round trip.
        ///
        /// - Returns: The last step but `.none`.
        mutating func round(isTight: Bool = false) -> LimitProbe.Step {
            let limit = min(probe.limit, callers)
            for _ in 0..<limit {
                instant += UInt64(time / min(limit, workers))
                let step = probe.end(
                    EndedRequest(
                        roundTrip: UInt64(time * max(limit, workers) / workers), inFlight: min(probe.limit, callers),
                        outcome: .success, instant: instant, isTight: isTight))
                guard step == .none else {
                    probe.restart(at: instant)
                    return step
                }
            }
            return .none
        }
    }

    @Test("The limit doubles with each round trip while the throughput does")
    func growth() {
        var server = Server(initial: 20, workers: 10_000)
        var limits: [Int] = []
        for _ in 0..<8 {
            #expect(server.round() == .none)
            limits.append(server.probe.limit)
        }
        #expect(limits == [20, 40, 80, 160, 320, 640, 1_000, 1_000])
    }

    @Test("The growth ends at the capacity of the server, after an experiment with a lower limit")
    func capacity() {
        var server = Server(initial: 20, workers: 40)
        var (steps, limits): ([LimitProbe.Step], [Int]) = ([], [])
        while limits.count < 9, steps.last != .reachedCapacity {
            steps.append(server.round())
            limits.append(server.probe.limit)
        }
        #expect(steps.filter { $0 != .none } == [.lowered, .reachedCapacity])
        #expect((40...60).contains(limits.last ?? 0), "\(limits)")
        #expect(limits.max() ?? 0 <= 160, "\(limits)")
    }

    @Test("If the throughput falls with the limit, because the server is only slower, the limit grows again")
    func slower() {
        var server = Server(initial: 20, workers: 10_000)
        for _ in 0..<3 { _ = server.round() }
        server.time = 2_500_000
        #expect(server.round() == .lowered)
        #expect(server.probe.outlook == .unknown)
        var limits: [Int] = []
        for _ in 0..<7 {
            #expect(server.round() == .none)
            limits.append(server.probe.limit)
        }
        #expect(limits.last == 1_000, "\(limits)")
    }

    @Test("If the callers do not reach the limit, longer round trips show that it is above the capacity")
    func callers() {
        for (workers, isCapacity) in [(20, true), (10_000, false)] {
            var server = Server(initial: 20, workers: workers)
            server.callers = 48
            var steps: [LimitProbe.Step] = []
            for _ in 0..<10 where steps.last != .reachedCapacity { steps.append(server.round()) }
            #expect((steps.last == .reachedCapacity) == isCapacity)
            #expect((isCapacity ? 20...30 : 45...60).contains(server.probe.limit), "\(server.probe.limit)")
        }
    }

    @Test("The limit does not grow while twice the duration would exceed the deadlines")
    func tight() {
        var server = Server(initial: 20, workers: 10_000)
        for _ in 0..<3 { _ = server.round(isTight: true) }
        #expect(server.probe.limit <= 20)
    }

    @Test("Nothing is expected before the second window")
    func outlook() {
        var server = Server(initial: 20, maximum: 50, workers: 10_000)
        #expect(server.probe.outlook == .unknown)
        _ = server.round()
        #expect(server.probe.outlook == .unknown)
        _ = server.round()
        #expect(server.probe.outlook == .doubling(roundTrip: 1_000_000, maximum: 50))
    }

    @Test("Durations of zero and bounds that leave no choice do not trap")
    func extremes() {
        for (initial, bounds) in [(20, 20.0...20), (90, 90...110), (1, 1...1_000_000)] {
            var probe = LimitProbe(initial: initial, bounds: bounds)
            for number in 0..<5_000 {
                _ = probe.end(
                    EndedRequest(
                        roundTrip: number % 3 == 0 ? .max : 0, inFlight: .max,
                        outcome: number % 5 == 0 ? .late : .success, instant: number % 7 == 0 ? .max : 0))
                if !bounds.contains(Double(probe.limit)) { Issue.record("the limit is \(probe.limit)") }
            }
        }
    }
}
