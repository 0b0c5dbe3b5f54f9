import Dispatch
package import Foundation

/// A clock that schedules alarms. Tests inject one that they advance without sleeping.
package protocol Timekeeper: AnyObject, Sendable {
    /// The current instant of a monotonic clock, in nanoseconds.
    var instant: UInt64 { get }

    /// The current date.
    var date: Date { get }

    /// Notifies `target` once, when the delay has passed, and retains it until then.
    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm

    /// Cancels an alarm, unless the alarm has already fired.
    func cancel(_ alarm: Alarm)

    /// Returns a random number from 0 to 1, for jitter.
    func random() -> Double

    /// The work in progress that the clock waits for; `nil` if it does not wait.
    var work: WorkCount? { get }

    /// The clock as a `Clock` of the standard library.
    var clock: any Clock<Duration> { get }
}

extension Timekeeper {
    /// The date of the system clock.
    package var date: Date { Date() }
    /// Returns a random number from the system's generator.
    package func random() -> Double { Double.random(in: 0...1) }
    /// `nil`, because the clock waits for no work.
    package var work: WorkCount? { nil }
    /// The system clock.
    package var clock: any Clock<Duration> { SuspendingClock() }
}

/// An object that is notified at a scheduled instant.
package protocol AlarmTarget: AnyObject, Sendable {
    /// Notifies the target. This method is called once, on any thread, unless the alarm is
    /// cancelled first.
    func ring()
}

/// An alarm that was scheduled with a ``Timekeeper``.
package struct Alarm: Sendable {
    fileprivate let token: PriorityQueue<any AlarmTarget>.Token
    /// The index among the groups of ``SystemAlarms``.
    fileprivate var group = 0
}

/// The state of a ``Timekeeper``: the queue of alarms, the timer that fires them, and their lock.
package final class AlarmTimer: Sendable {
    private struct State {
        /// The alarms by their instants.
        var queue = PriorityQueue<any AlarmTarget>()
        /// The instant to which the timer is set.
        var setting: UInt64?

        /// Returns the instant to which the timer must be set; `nil` if it already fires early
        /// enough.
        ///
        /// It is harmless if the timer fires earlier than necessary.
        mutating func change() -> UInt64? {
            guard let earliest = queue.lowest, setting.map({ earliest < $0 }) ?? true else { return nil }
            setting = earliest
            return earliest
        }
    }

    private let state = Mutex(State())
    private let setTimer: @Sendable (UInt64) -> Void

    /// - Parameter setTimer: A closure that sets the timer that calls ``fire(at:)``. It is called
    ///   while the lock is held, so that the last call has the earliest instant. Defaults to no
    ///   timer.
    package init(setTimer: @escaping @Sendable (UInt64) -> Void = { _ in }) {
        self.setTimer = setTimer
    }

    package func add(at instant: UInt64, _ target: any AlarmTarget) -> Alarm {
        state.withLock { state in
            let alarm = Alarm(token: state.queue.add(target, at: instant))
            if let instant = state.change() { setTimer(instant) }
            return alarm
        }
    }

    package func cancel(_ alarm: Alarm) {
        let target = state.withLock { $0.queue.remove(alarm.token) }
        withExtendedLifetime(target) {}
    }

    /// Notifies the targets that are due.
    package func fire(at now: UInt64) {
        let due = state.withLock { state in
            state.setting = nil
            return state.queue.takeAll(upTo: now)
        }
        for target in due { target.ring() }
        state.withLock { state in
            if let instant = state.change() { setTimer(instant) }
        }
    }

    package var count: Int { state.withLock { $0.queue.count } }

    /// The instant of the next alarm; `nil` if there is none.
    package var earliest: UInt64? { state.withLock { $0.queue.lowest } }
}

/// The clock of the package: the system clock unless a service or a test injects another one.
///
/// For the system clock, this is a value without references. All tasks read it on all threads,
/// which would otherwise contend for the reference count of a shared object.
package struct TaskClock: Sendable {
    /// The system clock.
    package static let system = TaskClock(nil)

    private let injected: (any Timekeeper)?

    package init(_ injected: (any Timekeeper)?) {
        self.injected = injected
    }

    package var now: UInt64 {
        if let injected { injected.instant } else { DispatchTime.now().uptimeNanoseconds }
    }

    package var date: Date {
        if let injected { injected.date } else { Date() }
    }

    /// The same instant on all clocks.
    struct Instant: Sendable {
        /// The monotonic instant of this clock, in nanoseconds.
        let nanoseconds: UInt64
        let date: Date
        /// The monotonic instant of the system's clock, in nanoseconds.
        let system: UInt64
    }

    /// The current instant on all clocks.
    var instant: Instant {
        let now = now
        return Instant(nanoseconds: now, date: date, system: injected == nil ? now : Self.system.now)
    }

    package func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        if let injected {
            injected.schedule(after: delay, target)
        } else {
            SystemAlarms.schedule(at: now.addingSaturated(delay), target)
        }
    }

    /// Calls a closure once, on any thread, when the delay has passed, and retains it until then.
    package func schedule(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> Alarm {
        schedule(after: delay, AlarmClosure(body))
    }

    package func cancel(_ alarm: Alarm) {
        if let injected { injected.cancel(alarm) } else { SystemAlarms.cancel(alarm) }
    }

    package func random() -> Double { injected?.random() ?? Double.random(in: 0...1) }

    /// Whether the clock was injected in place of the system clock.
    package var isInjected: Bool { injected != nil }

    package var work: WorkCount? { injected?.work }

    /// The clock as a `Clock` of the standard library.
    var standard: any Clock<Duration> { injected?.clock ?? SuspendingClock() }
}

/// A closure that is called when an alarm fires.
private final class AlarmClosure: AlarmTarget {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func ring() { body() }
}

/// The alarms of the system clock, distributed over a few groups.
///
/// A thread always uses the same group, so that tasks on different processors do not contend for a
/// lock when they set alarms, few of which ever fire.
private enum SystemAlarms {
    private static let groups = (0..<8).map { _ in makeGroup() }

    static func schedule(at instant: UInt64, _ target: any AlarmTarget) -> Alarm {
        let index = threadNumber % groups.count
        var alarm = groups[index].add(at: instant, target)
        alarm.group = index
        return alarm
    }

    static func cancel(_ alarm: Alarm) {
        groups[alarm.group].cancel(alarm)
    }

    /// A number that differs between most threads.
    private static var threadNumber: Int {
        #if canImport(Darwin)
        Int(bitPattern: pthread_self()) >> 12 & 0xFF_FFFF
        #else
        Int(truncatingIfNeeded: pthread_self() >> 12 & 0xFF_FFFF)
        #endif
    }

    /// Returns alarms with a dispatch timer, which are never deallocated.
    private static func makeGroup() -> AlarmTimer {
        // Dispatch sources are thread-safe, but Dispatch on Linux does not declare it.
        nonisolated(unsafe) let source = DispatchSource.makeTimerSource(
            queue: DispatchQueue(label: "WebService.alarms"))
        let alarms = AlarmTimer { instant in
            source.schedule(deadline: DispatchTime(uptimeNanoseconds: instant), leeway: .milliseconds(1))
        }
        source.setEventHandler { alarms.fire(at: DispatchTime.now().uptimeNanoseconds) }
        source.activate()
        return alarms
    }
}

extension UInt64 {
    /// Returns the sum of this instant and a duration.
    ///
    /// On overflow, the result is the maximum. A negative duration counts as zero.
    package func addingSaturated(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return self }
        let (nanoseconds, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (whole, overflow2) = nanoseconds.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000))
        let (sum, overflow3) = addingReportingOverflow(whole)
        return overflow || overflow2 || overflow3 ? .max : sum
    }
}

/// A service's clock that is based on a Swift `Clock`.
///
/// One Swift task sleeps until the next alarm. If the clock's `sleep` throws or returns early, the
/// only effect is that alarms fire early.
final class ClockTimekeeper<Base: Clock>: Timekeeper where Base.Duration == Duration {
    /// A weak reference through which the alarms call the timekeeper that owns them.
    private struct Owner: Sendable {
        weak var timekeeper: ClockTimekeeper?
    }

    private final class Link: Sendable {
        let owner = Mutex(Owner())
    }

    private static var origin: UInt64 { 1_000_000_000 }

    private let base: Base
    private let start: Base.Instant
    /// The date of ``start``; `nil` for a system clock, which uses the system's date.
    private let startDate: Date?
    private let alarms: AlarmTimer
    /// The task that sleeps until the next alarm.
    private let sleeper = Mutex<Task<Void, Never>?>(nil)

    init(_ base: Base) {
        self.base = base
        start = base.now
        startDate = base is ContinuousClock || base is SuspendingClock ? nil : Date()
        let link = Link()
        alarms = AlarmTimer { instant in link.owner.withLock { $0.timekeeper }?.sleep(until: instant) }
        link.owner.withLock { $0.timekeeper = self }
    }

    private var elapsed: Duration { start.duration(to: base.now) }

    var instant: UInt64 { Self.origin.addingSaturated(elapsed) }

    var date: Date { startDate.map { $0.addingTimeInterval(elapsed.inSeconds) } ?? Date() }

    var clock: any Clock<Duration> { base }

    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        alarms.add(at: instant.addingSaturated(delay), target)
    }

    func cancel(_ alarm: Alarm) { alarms.cancel(alarm) }

    /// Starts to sleep until an instant, in place of the current sleep. This method is called while
    /// the lock of the alarms is held, so it must not call custom code, not even by cancelling a
    /// task.
    private func sleep(until instant: UInt64) {
        let delay = Duration.nanoseconds(Int64(clamping: instant - min(instant, Self.origin)))
        sleeper.withLock { sleeper in
            sleeper = Task.detached { [self, previous = sleeper] in
                previous?.cancel()
                do { try await base.sleep(until: start.advanced(by: delay), tolerance: nil) } catch {
                    if Task.isCancelled { return }
                }
                alarms.fire(at: max(instant, self.instant))
            }
        }
    }
}

extension TaskClock {
    /// - Parameter clock: The clock of a service; `nil` for the system clock.
    package init(standard clock: (any Clock<Duration>)?) {
        switch clock {
        case nil, is SuspendingClock: self.init(nil)
        case let timekeeper as any Timekeeper: self.init(timekeeper)
        case let clock?: self.init(Self.timekeeper(clock))
        }
    }

    private static func timekeeper<Base: Clock>(_ base: Base) -> any Timekeeper where Base.Duration == Duration {
        ClockTimekeeper(base)
    }
}

extension TaskClock {
    /// Suspends the Swift task until the delay has passed on this clock.
    ///
    /// - Throws: `CancellationError` as soon as the Swift task is cancelled.
    package func sleep(for delay: Duration) async throws {
        try Task.checkCancellation()
        let isOver = await value(of: Once(), orAfter: delay, true, orIfCancelled: false)
        if !isOver { throw CancellationError() }
    }

    /// Awaits a value, which this clock sets to `late` if it is not set within the delay.
    ///
    /// - Parameter cancelled: The value that the cancellation of the Swift task sets. Defaults to
    ///   `nil`: a cancellation has no effect.
    package func value<Value: Sendable>(
        of once: Once<Value>, orAfter delay: Duration, _ late: Value, orIfCancelled cancelled: Value? = nil
    ) async -> Value {
        let alarm = schedule(after: delay) { once.set(late) }
        defer { cancel(alarm) }
        guard let cancelled else { return await once.value }
        return await once.value(orIfCancelled: cancelled)
    }

    /// Runs an operation and returns its value, unless the operation exceeds a limit on this clock.
    ///
    /// An operation that exceeds the limit is cancelled, and its value is discarded.
    ///
    /// - Returns: The value, or `nil` if the limit was exceeded.
    /// - Throws: The error of the operation, or `CancellationError` as soon as the Swift task is
    ///   cancelled.
    package func value<Value: Sendable>(
        within limit: Duration, of operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try Task.checkCancellation()
        let end = Once<Result<Value?, any Error>>()
        let executor = executor
        // The limit ends the wait in a separate task, so that an operation that also waits for a
        // thread runs first if all threads are busy.
        let alarm = schedule(after: limit) { Task(executorPreference: executor) { end.set(.success(nil)) } }
        defer { cancel(alarm) }
        let task = Task(executorPreference: executor) {
            do { end.set(.success(try await operation())) } catch { end.set(.failure(error)) }
        }
        defer { task.cancel() }
        return try await end.value(orIfCancelled: .failure(CancellationError())).get()
    }
}

extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double { (Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9) / 1e9 }

    /// Returns the duration after a number of doublings, up to a maximum. A negative duration
    /// becomes zero.
    package func doubled(_ times: Int, upTo maximum: Duration) -> Duration {
        let factor = 1 << min(max(times, 0), 40)
        return self > maximum / factor ? maximum : max(self, .zero) * factor
    }

    /// Returns a number of seconds as a duration, rounded to nanoseconds.
    ///
    /// A positive number becomes at least a nanosecond. The result is limited to 1e12 seconds in
    /// both directions. NaN becomes zero.
    package static func clamping(seconds: Double) -> Duration {
        guard !seconds.isNaN else { return .zero }
        let seconds = min(max(seconds, -1e12), 1e12)
        let whole = seconds.rounded(.down)
        let nanoseconds = Int64(((seconds - whole) * 1e9).rounded())
        let duration = Duration.seconds(Int64(whole)) + .nanoseconds(nanoseconds)
        return seconds > 0 ? max(duration, .nanoseconds(1)) : duration
    }
}
