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
/// A service uses the clock for retry pauses, deadlines, the delays of mocks and of event
/// reconnection, rate limits, the age of stored and cached data, and the expiry of tokens and
/// cookies. A ``MockSession`` uses it for delays and timeouts. The timeouts of sessions that use a
/// network are measured by the system clock.
///
/// The type conforms to the standard library's `Clock`, so custom code can wait for it as well.
///
/// Each clock advances independently of all others. All members may be called from any thread.
public final class TestClock: Clock {
    /// An instant of a ``TestClock``.
    public struct Instant: InstantProtocol {
        /// The duration by which the clock has advanced at this instant.
        public let elapsed: Duration

        /// Returns the instant after a duration.
        public func advanced(by duration: Duration) -> Instant { Instant(elapsed: elapsed + duration) }

        /// Returns the duration from this instant to another.
        public func duration(to other: Instant) -> Duration { other.elapsed - elapsed }

        /// Returns whether an instant precedes another.
        public static func < (first: Instant, second: Instant) -> Bool { first.elapsed < second.elapsed }
    }

    private struct State {
        var elapsed = Duration.zero
        var random: UInt64
        var scheduledCount = 0
    }

    /// The maximum number of times that alarms fire at one instant.
    private static let maximumRounds = 10_000
    /// The maximum duration of the work at one instant, measured by the system clock.
    private static let patience = Duration.seconds(30)
    private static let start: UInt64 = 1_000_000_000

    private let alarms = AlarmTimer()
    private let progress: WorkCount
    private let startDate: Date
    private let state: Mutex<State>

    /// Creates a clock that does not advance automatically.
    ///
    /// - Parameters:
    ///   - date: The initial date. Defaults to January 1, 2026, 00:00 UTC.
    ///   - seed: The seed of the random numbers that services with this clock use for the jitter of
    ///     retries and reconnections. Clocks with equal seeds return equal sequences of numbers.
    ///     Defaults to 0.
    public convenience init(date: Date = Date(timeIntervalSince1970: 1_767_225_600), seed: UInt64 = 0) {
        self.init(date: date, seed: seed, work: WorkCount())
    }

    /// - Parameter work: The work in progress that the clock waits for.
    package init(
        date: Date = Date(timeIntervalSince1970: 1_767_225_600), seed: UInt64 = 0, work: WorkCount
    ) {
        progress = work
        startDate = date
        state = Mutex(State(random: seed))
    }

    /// The current date: the initial date plus ``elapsed``.
    public var date: Date { startDate.addingTimeInterval(elapsed.inSeconds) }

    /// The duration by which the clock has advanced.
    public var elapsed: Duration { state.withLock { $0.elapsed } }

    /// The current instant.
    public var now: Instant { Instant(elapsed: elapsed) }

    /// The smallest difference between two instants, which is one nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// An executor whose Swift tasks ``advance(by:)`` waits for.
    ///
    /// ```swift
    /// let brewers = Task(executorPreference: clock.executor) { try await client.brewers() }
    /// await clock.advance(by: .seconds(20))
    /// ```
    /// Swift tasks may block the executor's threads.
    public var executor: any TaskExecutor { progress }

    /// Advances the clock, and runs everything that becomes due, in chronological order.
    ///
    /// The clock stops at each instant at which something is due, such as the end of a retry pause,
    /// and proceeds when no work is in progress, so that newly scheduled work runs at its own
    /// instant. When this method returns, all work that services and sessions with this clock have
    /// started is complete, or waits for one of the following:
    /// - the clock;
    /// - bytes of a network connection, or a storage or session that is not part of this package;
    /// - custom code that waits in turn, such as an interceptor that awaits a value.
    ///
    /// Handlers, observers, interceptors, stubs and storages count as a part of the task that calls
    /// them, even while they block a thread. Except for handlers on the main actor, they do not
    /// count while the main actor, or another actor with a custom executor, runs them
    /// asynchronously.
    ///
    /// Other Swift tasks do not count, unless they run on the clock's ``executor``. A `Task` or
    /// `async let` that does not use it may not even have started when this method returns. A
    /// session without this clock does not count either. Await the result of such work after the
    /// call.
    ///
    /// Call this method from one Swift task at a time.
    ///
    /// - Parameter duration: The duration. A negative duration counts as zero.
    /// - Returns: `false` if the clock has stopped before the end, either because the Swift task
    ///   was cancelled, because the work at one instant has not ended within 30 seconds of real
    ///   time, or because work has been scheduled 10,000 times at one instant.
    @discardableResult
    public func advance(by duration: Duration) async -> Bool {
        let end = elapsed + max(duration, .zero)
        var rounds = 0
        while await progress.finish(within: Self.patience), !Task.isCancelled {
            guard let next = alarms.earliest, next <= Self.start.addingSaturated(end) else {
                if elapsed >= end { return true }
                state.withLock { $0.elapsed = max($0.elapsed, end) }
                continue
            }
            rounds = Self.elapsed(at: next) > elapsed ? 0 : rounds + 1
            guard rounds < Self.maximumRounds else { return false }
            fire(at: next)
        }
        return false
    }

    /// Advances the clock to the next alarm, and fires the alarms that are due then, without
    /// waiting for work.
    package func fireNextAlarm() {
        if let next = alarms.earliest { fire(at: next) }
    }

    private func fire(at next: UInt64) {
        state.withLock { $0.elapsed = max($0.elapsed, Self.elapsed(at: next)) }
        alarms.fire(at: next)
    }

    private static func elapsed(at instant: UInt64) -> Duration {
        .nanoseconds(Int64(clamping: instant - min(instant, start)))
    }

    /// The duration until something is due; `nil` if nothing is scheduled.
    package var timeToNextAlarm: Duration? {
        alarms.earliest.map { .nanoseconds(Int64(clamping: $0 - min($0, instant))) }
    }

    /// The number of alarms that have been scheduled so far.
    package var scheduledCount: Int { state.withLock { $0.scheduledCount } }

    /// Suspends the Swift task until the clock has advanced to an instant.
    ///
    /// - Parameters:
    ///   - deadline: The instant. If it has passed, the task is not suspended.
    ///   - tolerance: Has no effect.
    /// - Throws: `CancellationError` as soon as the Swift task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let rest = now.duration(to: deadline)
        guard rest > .zero else { return try Task.checkCancellation() }
        try await TaskClock(self).sleep(for: rest)
    }
}

extension TestClock: Timekeeper {
    package var instant: UInt64 { Self.start.addingSaturated(elapsed) }

    package var work: WorkCount? { progress }

    package func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        let elapsed = state.withLock { state in
            state.scheduledCount += 1
            return state.elapsed
        }
        return alarms.add(at: Self.start.addingSaturated(elapsed).addingSaturated(delay), target)
    }

    package var clock: any Clock<Duration> { self }

    package func cancel(_ alarm: Alarm) { alarms.cancel(alarm) }

    /// Returns a number from 0 to 1, generated with SplitMix64.
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
