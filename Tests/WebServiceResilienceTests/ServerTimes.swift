import Foundation
import TestSupport

@testable import WebServiceCore

/// The response times of a server with workers and an unlimited queue, first in, first out. The
/// server does not notice that a client has given up.
final class ServerTimes: Sendable {
    private struct State {
        var generator: SeededGenerator
        /// The instants at which the workers are free; empty if their number is unlimited.
        var workers: [Duration]
        var requests = 0
    }

    private let times: ServiceTimes
    private let meanTime: Duration
    private let lateRatio: Double
    private let state: Mutex<State>

    /// - Parameters:
    ///   - workers: The number of requests that are processed concurrently; 0 for any number.
    ///   - meanTime: The mean duration of the processing of a request.
    ///   - lateRatio: The ratio of responses that are delayed by one second in addition.
    init(workers: Int, _ times: ServiceTimes, meanTime: Duration, lateRatio: Double = 0, seed: UInt64) {
        (self.times, self.meanTime, self.lateRatio) = (times, meanTime, lateRatio)
        state = Mutex(
            State(generator: SeededGenerator(seed: seed), workers: Array(repeating: .zero, count: workers)))
    }

    /// The number of requests that the server has received.
    var requests: Int { state.withLock { $0.requests } }

    /// Returns the duration until the response to a request that arrives at an instant.
    func next(at now: Duration) -> Duration {
        state.withLock { state in
            state.requests += 1
            let time = meanTime * times.next(&state.generator)
            let late = Double(state.generator.next() >> 11) / 0x1p53 < lateRatio ? Duration.seconds(1) : .zero
            let workers = state.workers
            guard let index = workers.indices.min(by: { workers[$0] < workers[$1] }) else { return time + late }
            state.workers[index] = max(workers[index], now) + time
            return state.workers[index] - now + late
        }
    }
}
