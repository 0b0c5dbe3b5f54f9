import TestSupport
import Testing

@testable import WebServiceResilience

@Suite("Algorithms of adaptive limits", .permit)
struct LimitAlgorithmTests {
    private func gradient(
        _ initial: Int = 20, bounds: ClosedRange<Double> = 1...1_000, tolerance: Double = 1, queueSize: Double = 1,
        smoothing: Double = 1
    ) -> GradientLimit {
        GradientLimit(
            initial: initial,
            .init(bounds: bounds, tolerance: tolerance, queueSize: queueSize, smoothing: smoothing), probes: false)
    }

    /// Ends as many requests as a window has, with a full limit or a number in flight.
    private func window(_ limit: inout GradientLimit, _ roundTrip: UInt64, inFlight: Int? = nil) {
        for _ in 0..<max(limit.limit, GradientLimit.minimumSamples) {
            limit.end(roundTrip: roundTrip, inFlight: inFlight ?? limit.limit, outcome: .success)
        }
    }

    /// Ends the first measurement, so that the next window is the first of the changes.
    private func measure(_ limit: inout GradientLimit, _ roundTrip: UInt64) {
        for _ in 0...GradientLimit.measurements { window(&limit, roundTrip) }
    }

    @Test("AIMD grows by one per limit of successes, if more than half of it is in use")
    func increase() {
        var limit = AIMDLimit(initial: 10, bounds: 1...12, decrease: 0.5)
        for _ in 0..<100 { limit.end(roundTrip: 1, inFlight: 5, outcome: .success) }
        #expect(limit.limit == 10)
        for _ in 0..<11 { limit.end(roundTrip: 1, inFlight: 6, outcome: .success) }
        #expect(limit.limit == 11)
        for _ in 0..<100 { limit.end(roundTrip: 1, inFlight: 12, outcome: .success) }
        #expect(limit.limit == 12)
    }

    @Test("AIMD is lowered once for the requests that were in flight, and not below its minimum")
    func decrease() {
        var limit = AIMDLimit(initial: 16, bounds: 3...100, decrease: 0.5)
        for left in stride(from: 16, to: 0, by: -1) { limit.end(roundTrip: 1, inFlight: left, outcome: .overload) }
        #expect(limit.limit == 8)
        limit.end(roundTrip: 1, inFlight: 1, outcome: .overload)
        #expect(limit.limit == 4)
        for _ in 0..<9 { limit.end(roundTrip: 1, inFlight: 1, outcome: .overload) }
        #expect(limit.limit == 3)
    }

    @Test("One timeout for three successes does not lower the gradient's limit")
    func isolatedTimeouts() {
        var limit = gradient(tolerance: 2)
        for _ in 0..<200 {
            limit.end(roundTrip: 1, inFlight: limit.limit, outcome: .timeout)
            for _ in 0..<3 { limit.end(roundTrip: 1, inFlight: limit.limit, outcome: .success) }
        }
        #expect(limit.limit >= 20)
    }

    @Test("A result that is neither a success nor an overload does not change a limit")
    func neither() {
        var algorithms: [any LimitAlgorithm] = [AIMDLimit(initial: 10, bounds: 1...99, decrease: 0.5), gradient()]
        let before = algorithms.map(\.limit)
        for index in algorithms.indices {
            for _ in 0..<1_000 { algorithms[index].end(roundTrip: 1, inFlight: 20, outcome: .neither) }
        }
        #expect(algorithms.map(\.limit) == before)
    }

    @Test(
        "The gradient measures with three quarters of the limit, and then grows faster and faster")
    func cycle() {
        var limit = gradient()
        #expect(limit.limit == 15)
        measure(&limit, 100)
        var limits: [Int] = []
        for _ in 0..<GradientLimit.changes {
            limits.append(limit.limit)
            window(&limit, 100)
        }
        #expect(limits == [20, 20, 21, 23, 26, 30, 35, 41, 48, 56, 65, 75])
        #expect(limit.limit == 64)
        measure(&limit, 100)
        #expect(limit.limit == 86)
        window(&limit, 100)
        window(&limit, 101)
        #expect(limit.limit == 86)
    }

    @Test("The gradient follows the ratio of the round-trip times, at most by 30 % per window")
    func ratio() {
        var limit = gradient(100, queueSize: 0)
        measure(&limit, 100)
        window(&limit, 100)
        window(&limit, 125)
        #expect(limit.limit == 80)
        window(&limit, 1_000_000)
        #expect(limit.limit == 56)
        window(&limit, 1)
        #expect(limit.limit == 78)
    }

    @Test("Tolerance, smoothing and bounds apply")
    func parameters() {
        var tolerant = gradient(100, tolerance: 1.25, queueSize: 0)
        measure(&tolerant, 100)
        for _ in 0..<2 { window(&tolerant, 125) }
        #expect(tolerant.limit == 100)
        var smooth = gradient(100, queueSize: 10, smoothing: 0.5)
        measure(&smooth, 100)
        for _ in 0..<2 { window(&smooth, 125) }
        #expect(smooth.limit == 95)
        var bounded = gradient(100, bounds: 90...110, queueSize: 20)
        #expect(bounded.limit == 90)
        measure(&bounded, 100)
        for _ in 0..<2 { window(&bounded, 100) }
        #expect(bounded.limit == 110)
        for _ in 0..<2 { window(&bounded, 1_000) }
        #expect(bounded.limit == 90)
    }

    @Test("A limit that is not in use does not grow, and its windows are measurements")
    func notInUse() {
        var limit = gradient(100, queueSize: 0)
        measure(&limit, 100)
        window(&limit, 100)
        for _ in 0..<9 { window(&limit, 200, inFlight: 75) }
        #expect(limit.limit == 100)
        window(&limit, 200)
        #expect((90...97).contains(limit.limit))
    }

    @Test("The long-term round-trip time follows a slower server")
    func slowerServer() {
        var limit = gradient()
        measure(&limit, 100)
        for _ in 0..<600 { window(&limit, 200) }
        #expect(limit.limit > 20)
    }

    @Test("Requests that take no time do not lower the gradient")
    func noTime() {
        var limit = gradient()
        for _ in 0..<20 { window(&limit, 0) }
        #expect(limit.limit > 20)
    }

    @Test("A request without a response counts with twice its duration")
    func withoutResponse() {
        var limit = gradient(100, queueSize: 0)
        measure(&limit, 100)
        window(&limit, 100)
        for number in 0..<limit.limit {
            limit.end(roundTrip: 100, inFlight: limit.limit, outcome: number % 4 == 0 ? .late : .success)
        }
        #expect(limit.limit == 80)
    }

    @Test(
        "If most requests have no response, the gradient is halved",
        arguments: [RequestOutcome.late, .timeout], [true, false])
    func withoutResponses(outcome: RequestOutcome, probes: Bool) {
        var limit = GradientLimit(
            initial: 100, .init(bounds: 1...1_000, tolerance: 1, queueSize: 1, smoothing: 1), probes: probes)
        let before = limit.limit
        for _ in 0..<before / 2 { limit.end(roundTrip: 1, inFlight: 1, outcome: outcome) }
        #expect(limit.limit == 37)
    }

    @Test("A failure changes neither the gradient nor its measurements")
    func failures() {
        var limits = [gradient(), gradient()]
        for index in limits.indices {
            for window in 0..<40 {
                for _ in 0..<30 {
                    for _ in 0..<(index == 1 ? window % 5 : 0) {
                        limits[index].end(roundTrip: 1, inFlight: 20, outcome: .neither)
                    }
                    limits[index].end(roundTrip: 100, inFlight: 20, outcome: .success)
                }
            }
        }
        #expect(limits[0].limit == limits[1].limit)
    }

    @Test("An overload lowers the gradient once for the requests that were in flight")
    func overload() {
        var limit = gradient(100)
        measure(&limit, 100)
        for left in stride(from: 100, to: 0, by: -1) { limit.end(roundTrip: 1, inFlight: left, outcome: .overload) }
        #expect(limit.limit == 70)
    }

    @Test("Extreme parameters and durations neither trap nor leave the bounds")
    func extremes() {
        let limits: [ConcurrencyLimit] = [
            .fixed(.min), .fixed(.max), .aimd(initial: .min, minimum: .max, maximum: .min, decrease: .nan),
            .aimd(initial: .max, minimum: .min, maximum: .max, decrease: -.infinity),
            .gradient(initial: .min, minimum: .min, maximum: .min, tolerance: .nan, queueSize: .infinity, smoothing: 0),
            .gradient(
                initial: .max, minimum: 5, maximum: 7, tolerance: -1, queueSize: -.infinity, smoothing: .infinity),
        ]
        for limit in limits {
            var algorithm = limit.algorithm
            for number in 0..<2_000 {
                algorithm.end(
                    roundTrip: number % 3 == 0 ? .max : 0, inFlight: number % 5 == 0 ? .max : 0,
                    outcome: number % 7 == 0 ? .overload : .success)
                if algorithm.limit < 1 { Issue.record("the limit is \(algorithm.limit)") }
            }
        }
    }
}

extension LimitAlgorithm {
    mutating func end(roundTrip: UInt64, inFlight: Int, outcome: RequestOutcome) {
        end(EndedRequest(roundTrip: roundTrip, inFlight: inFlight, outcome: outcome, instant: 0))
    }
}
