import Dispatch
import Foundation

/// Tells the time and calls back later. Injected, so that tests turn the clock themselves instead of sleeping.
package protocol Timekeeper: AnyObject, Sendable {
    /// Nanoseconds of a clock that only goes forward.
    var now: UInt64 { get }

    /// Tells `target` once, when the delay has passed, and holds it until then.
    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm

    /// Takes an alarm back; harmless when it rang already.
    func cancel(_ alarm: Alarm)
}

/// Something scheduled with a ``Timekeeper``.
package struct Alarm: Sendable {
    fileprivate let token: AlarmQueue.Token
    fileprivate var shard = 0
}

/// The parts that every ``Timekeeper`` shares: the queue behind its lock.
package final class AlarmTimer: Sendable {
    private let queue = Mutex(AlarmQueue())

    package init() {}

    /// - Returns: The alarm, and whether it is the earliest of all, so that whoever watches the clock has to look again.
    package func add(at moment: UInt64, _ target: any AlarmTarget) -> (alarm: Alarm, isEarliest: Bool) {
        queue.withLock { queue in
            let before = queue.earliest
            let token = queue.add(at: moment, target)
            return (Alarm(token: token), before.map { moment < $0 } ?? true)
        }
    }

    package func cancel(_ alarm: Alarm) {
        let target = queue.withLock { $0.remove(alarm.token) }
        withExtendedLifetime(target) {}
    }

    /// Tells whose moment has come, and returns the moment of what is next.
    package func fire(at now: UInt64) -> UInt64? {
        for target in queue.withLock({ $0.takeDue(at: now) }) { target.ring() }
        return queue.withLock { $0.earliest }
    }

    package var count: Int { queue.withLock { $0.count } }
}

/// The clock of a service: the real one, unless a test has injected its own.
///
/// A value without references in the first case, because every task reads it on every thread: the counts of a shared object would be what the
/// threads wait for.
package struct TaskClock: Sendable {
    /// The real clock.
    package static let system = TaskClock(nil)

    private let injected: (any Timekeeper)?

    package init(_ injected: (any Timekeeper)?) {
        self.injected = injected
    }

    package var now: UInt64 {
        if let injected { injected.now } else { DispatchTime.now().uptimeNanoseconds }
    }

    package func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        if let injected { injected.schedule(after: delay, target) } else { SystemAlarms.schedule(at: now.addingSaturated(delay), target) }
    }

    package func cancel(_ alarm: Alarm) {
        if let injected { injected.cancel(alarm) } else { SystemAlarms.cancel(alarm) }
    }
}

/// The alarms of the real clock. They lie in a few shards, and a thread always uses the same one: tasks on different processors do not wait for
/// each other to set alarms that hardly ever ring.
private enum SystemAlarms {
    private static let shards = (0..<8).map { _ in Shard() }

    static func schedule(at moment: UInt64, _ target: any AlarmTarget) -> Alarm {
        let index = threadNumber % shards.count
        var alarm = shards[index].schedule(at: moment, target)
        alarm.shard = index
        return alarm
    }

    static func cancel(_ alarm: Alarm) {
        shards[alarm.shard].alarms.cancel(alarm)
    }

    /// A number that differs between most threads.
    private static var threadNumber: Int {
        #if canImport(Darwin)
        Int(bitPattern: pthread_self()) >> 12 & 0xFF_FFFF
        #else
        Int(truncatingIfNeeded: pthread_self() >> 12 & 0xFF_FFFF)
        #endif
    }

    /// One dispatch timer, set to the earliest of its alarms.
    private final class Shard: Sendable {
        let alarms = AlarmTimer()
        private let armed = Mutex<UInt64?>(nil)
        // Dispatch sources may be used from any thread; Dispatch on Linux does not say so to the compiler.
        private nonisolated(unsafe) let source: any DispatchSourceTimer

        init() {
            source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "WebService.alarms"))
            source.setEventHandler { [unowned self] in ring() }  // the shards live as long as the process
            source.activate()
        }

        func schedule(at moment: UInt64, _ target: any AlarmTarget) -> Alarm {
            let (alarm, isEarliest) = alarms.add(at: moment, target)
            if isEarliest { arm(moment) }
            return alarm
        }

        private func ring() {
            armed.withLock { $0 = nil }
            if let next = alarms.fire(at: DispatchTime.now().uptimeNanoseconds) { arm(next) }
        }

        /// Sets the timer unless it rings early enough already; one early ring too many does no harm.
        private func arm(_ moment: UInt64) {
            armed.withLock { armed in
                if let armed, armed <= moment { return }
                armed = moment
                source.schedule(deadline: DispatchTime(uptimeNanoseconds: moment), leeway: .milliseconds(1))
            }
        }
    }
}

extension UInt64 {
    /// Adds a duration; what would overflow or is negative stops at the end of the range.
    package func addingSaturated(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return self }
        let (nanoseconds, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (whole, overflow2) = nanoseconds.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000))
        let (sum, overflow3) = addingReportingOverflow(whole)
        return overflow || overflow2 || overflow3 ? .max : sum
    }
}

extension TimeInterval {
    /// A timeout that every transport can count: from a millisecond to 1e9 seconds (30 years); ``Request/defaultTimeout`` for NaN.
    var clampedTimeout: TimeInterval {
        isNaN ? Request.defaultTimeout : Swift.min(Swift.max(self, 0.001), 1e9)
    }
}
