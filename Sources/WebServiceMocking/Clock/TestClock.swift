import Dispatch
public import Foundation
package import WebServiceCore

/// A clock that advances only when a test advances it.
///
/// ```swift
/// let clock = TestClock()
/// let mock = MockService(clock: clock)
/// mock.on(.GET, "/slow", .text("late").after(.seconds(20)))
/// let task = mock.service.GET("/slow").data().resume()
/// await clock.advance(by: .seconds(20))
/// ```
/// A service with a test clock measures retry pauses, deadlines, the delays of mocks and of event
/// reconnection, rate limits, the age of stored and cached data, and the expiry of tokens and
/// cookies with it. A ``MockSession`` with the clock measures its delays and timeouts with it. The
/// timeouts of sessions that use a network are measured by the system clock.
///
/// Two tests share no time, unless they share a clock. All members may be called from any thread.
public final class TestClock: Sendable {
    private struct State {
        var elapsed = Duration.zero
        var random: UInt64
        /// The number of tasks in flight, and of those that do not wait for an alarm.
        var taskCount = 0
        var workCount = 0
        /// A Boolean value that indicates whether a task has continued since the clock stopped.
        var hasWorked = true
        /// Changes with each alarm and with the number of tasks.
        var activity: UInt64 = 0
    }

    private static let start: UInt64 = 1_000_000_000

    private let alarms = AlarmTimer()
    private let startDate: Date
    private let state: Mutex<State>

    /// Creates a clock that stands still.
    ///
    /// - Parameters:
    ///   - date: The initial date. Defaults to January 1, 2026, 00:00 UTC.
    ///   - seed: Determines the random numbers of services with this clock, for the jitter of
    ///     retries and reconnections. Clocks with equal seeds return equal sequences of numbers.
    ///     Defaults to 0.
    public init(date: Date = Date(timeIntervalSince1970: 1_767_225_600), seed: UInt64 = 0) {
        startDate = date
        state = Mutex(State(random: seed))
    }

    /// The current date: the initial date plus ``elapsed``.
    public var date: Date { startDate.addingTimeInterval(elapsed.inSeconds) }

    /// The duration by which the clock has advanced.
    public var elapsed: Duration { state.withLock { $0.elapsed } }

    /// Advances the clock and runs everything that is due until then, in the order of time.
    ///
    /// The clock stops at each instant at which something is due, such as the end of a retry pause.
    /// It proceeds when the tasks that continue there have completed or wait for the clock again,
    /// so that what they schedule runs at its own instant. It returns when the tasks that are due
    /// at the last instant have proceeded.
    ///
    /// The clock proceeds if nothing has been scheduled or completed for a duration of real time:
    /// - 1 millisecond while all tasks of services wait for the clock, in a retry pause or in a
    ///   ``MockSession`` with this clock;
    /// - 250 milliseconds while a task of a service does anything else, and longer on a busy
    ///   machine;
    /// - 20 milliseconds otherwise, for other code that uses the clock or starts a request.
    ///
    /// Work that takes longer, such as a response over a network or a task on a busy machine,
    /// completes at a later instant of the clock. The clock waits at each instant for at most 10
    /// seconds.
    ///
    /// Returns early if the Swift task is cancelled. Call it from one Swift task at a time.
    ///
    /// - Parameter duration: The duration. A negative duration counts as zero.
    public func advance(by duration: Duration) async {
        let end = elapsed + max(duration, .zero)
        await settle()
        while let next = alarms.earliest, next <= Self.start.addingSaturated(end), !Task.isCancelled {
            let instant = Duration.nanoseconds(Int64(clamping: next - min(next, Self.start)))
            state.withLock { ($0.elapsed, $0.hasWorked) = (max($0.elapsed, instant), false) }
            _ = alarms.fire(at: next)
            await settle()
        }
        if !Task.isCancelled { state.withLock { $0.elapsed = max($0.elapsed, end) } }
    }

    /// Suspends the Swift task until the clock has advanced by a duration.
    ///
    /// - Throws: `CancellationError` as soon as the Swift task is cancelled.
    public func sleep(for duration: Duration) async throws {
        try await TaskClock(self).sleep(for: duration)
    }

    /// Lets other tasks proceed until they wait or have completed.
    ///
    /// After the step of a task that waits again, nothing else is expected, and the wait is short.
    private func settle() async {
        let limit = ContinuousClock.now + .seconds(10)
        var last: UInt64?
        var (rounds, start) = (0, ContinuousClock.now)
        while ContinuousClock.now < limit, !Task.isCancelled {
            let state = state.withLock { $0 }
            if state.activity != last { (last, rounds, start) = (state.activity, 0, .now) }
            let isTracked = state.taskCount > 0 && state.hasWorked
            let isBusy = state.workCount > 0
            let quiet = Duration.milliseconds(isBusy ? 250 : isTracked ? 1 : 20)
            // On a busy machine, a round takes longer, and so does the step of a task.
            if rounds >= (isBusy ? 150 : 30), start.duration(to: .now) >= quiet { return }
            if rounds >= 30 {
                try? await TaskClock.system.sleep(for: .milliseconds(1))  // ends when the task is cancelled
            }
            await hop()
            rounds += 1
        }
    }

    /// Returns after the work that is queued on the executors has started.
    private func hop() async {
        await Task.yield()
        await withCheckedContinuation { continuation in DispatchQueue.global().async { continuation.resume() } }
    }
}

extension TestClock: Timekeeper {
    package var now: UInt64 { Self.start.addingSaturated(elapsed) }

    package func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        defer { recordWork(0, tasks: 0) }
        return alarms.add(at: now.addingSaturated(delay), target).alarm
    }

    package func cancel(_ alarm: Alarm) {
        alarms.cancel(alarm)
        recordWork(0, tasks: 0)
    }

    package func recordWork(_ change: Int, tasks: Int) {
        state.withLock { state in
            state.workCount += change
            state.taskCount += tasks
            if change > 0 { state.hasWorked = true }
            state.activity &+= 1
        }
    }

    /// A number from 0 to 1 (SplitMix64).
    package func random() -> Double {
        state.withLock { state in
            state.random &+= 0x9E37_79B9_7F4A_7C15
            var value = state.random
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return Double((value ^ (value >> 31)) >> 11) / 0x1p53
        }
    }
}
