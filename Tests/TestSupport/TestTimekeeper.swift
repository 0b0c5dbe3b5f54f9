package import Foundation
package import WebServiceCore

/// A clock whose dates and pauses a test supplies; its instants are those of another clock.
package final class TestTimekeeper: Timekeeper {
    private let injected: (any Timekeeper)?
    private let base: TaskClock
    private let readDate: @Sendable () -> Date
    private let pause: (@Sendable (Duration) async throws -> Void)?
    private let alarms = AlarmTimer()

    /// - Parameters:
    ///   - base: The clock for instants, and for alarms without `pause`; `nil` for the system clock.
    ///   - pause: Waits for the delay of an alarm, which then fires unless an error is thrown.
    package init(
        _ base: (any Timekeeper)? = nil, pause: (@Sendable (Duration) async throws -> Void)? = nil,
        date: @escaping @Sendable () -> Date = { TaskClock.system.date }
    ) {
        injected = base
        self.base = TaskClock(base)
        self.pause = pause
        readDate = date
    }

    package var instant: UInt64 { base.now }
    package var work: WorkCount? { pause == nil ? injected?.work : nil }
    package var date: Date { readDate() }

    package func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        guard let pause else { return base.schedule(after: delay, target) }
        Task {
            try await pause(delay)
            target.ring()
        }
        return alarms.add(at: .max, target)
    }

    package func cancel(_ alarm: Alarm) {
        if pause == nil { base.cancel(alarm) } else { alarms.cancel(alarm) }
    }
}

extension CookieJar {
    package convenience init(date: @escaping @Sendable () -> Date) {
        self.init(timekeeper: TestTimekeeper(date: date))
    }
}

extension RetryPolicy {
    /// Creates a policy that calls a closure in place of each pause.
    package init(
        maximumAttempts: Int = 3, baseDelay: Duration = .milliseconds(500), budget: Duration = .seconds(60),
        retryBudget: RetryPolicy.Budget? = nil, date: @escaping @Sendable () -> Date = { TaskClock.system.date },
        random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) },
        pause: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.init(
            maximumAttempts: maximumAttempts, baseDelay: baseDelay, budget: budget, retryBudget: retryBudget,
            random: random)
        timekeeper = TestTimekeeper(pause: pause, date: date)
    }
}
