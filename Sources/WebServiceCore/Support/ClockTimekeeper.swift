import Foundation

/// A service's clock that is based on a Swift `Clock`.
///
/// One Swift task sleeps until the next alarm. A clock whose `sleep` throws or returns early only
/// causes alarms to fire early.
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
    init(standard clock: (any Clock<Duration>)?) {
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
