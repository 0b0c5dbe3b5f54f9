import TestSupport
import WebServiceMocking

@testable import WebServiceCore

/// A server that responds to the requests of a `MockSession` by a test clock.
final class SimulatedServer: Sendable {
    let clock: TestClock
    let mock: MockService
    let times: ServerTimes

    init(_ times: ServerTimes, seed: UInt64) {
        self.times = times
        clock = TestClock(seed: seed)
        mock = MockService(clock: clock)
        mock.on(.any) { [clock] _ in .text("beer").after(times.next(at: clock.elapsed)) }
    }

    /// Advances the clock until a closure on its executor has returned.
    func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        let result = Mutex<Value?>(nil)
        let task = Task(executorPreference: clock.executor) {
            let value = await body()
            result.withLock { $0 = value }
            return value
        }
        while result.withLock({ $0 == nil }), await clock.advance(by: .seconds(1)) {}
        return await task.value
    }
}
