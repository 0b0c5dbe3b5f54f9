import Dispatch

/// Tells the time and calls back later. Injected, so that tests turn the clock themselves instead of sleeping.
package protocol Timekeeper: AnyObject, Sendable {
    /// Nanoseconds of a clock that only goes forward.
    var now: UInt64 { get }

    /// Calls `work` once, on any thread, when the delay has passed.
    func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> Alarm
}

/// Something scheduled with a ``Timekeeper``.
package struct Alarm: Sendable {
    fileprivate let token: AlarmQueue.Token
    fileprivate let timer: AlarmTimer

    /// Takes the work back; harmless when it ran already.
    package func cancel() {
        timer.remove(token)
    }
}

/// The parts that every ``Timekeeper`` shares: the queue behind its lock.
package final class AlarmTimer: Sendable {
    private let queue = Mutex(AlarmQueue())

    package init() {}

    /// - Returns: The alarm, and whether it is the earliest of all, so that whoever watches the clock has to look again.
    package func add(at moment: UInt64, _ work: @escaping @Sendable () -> Void) -> (alarm: Alarm, isEarliest: Bool) {
        queue.withLock { queue in
            let before = queue.earliest
            let token = queue.add(at: moment, work)
            return (Alarm(token: token, timer: self), before.map { moment < $0 } ?? true)
        }
    }

    fileprivate func remove(_ token: AlarmQueue.Token) {
        queue.withLock { $0.remove(token) }
    }

    /// Runs what is due and returns the moment of what is next.
    package func fire(at now: UInt64) -> UInt64? {
        for work in queue.withLock({ $0.takeDue(at: now) }) { work() }
        return queue.withLock { $0.earliest }
    }

    package var count: Int { queue.withLock { $0.count } }
}

/// The real clock: one dispatch timer for the whole process, set to the earliest alarm.
final class SystemTimekeeper: Timekeeper {
    static let shared = SystemTimekeeper()

    private let alarms = AlarmTimer()
    // Dispatch sources may be used from any thread; Dispatch on Linux does not say so to the compiler.
    private nonisolated(unsafe) let source: any DispatchSourceTimer
    private let armed = Mutex<UInt64?>(nil)

    private init() {
        source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "WebService.alarms"))
        source.setEventHandler { [unowned self] in ring() }  // the shared instance lives as long as the process
        source.activate()
    }

    var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> Alarm {
        let moment = now.addingSaturated(delay)
        let (alarm, isEarliest) = alarms.add(at: moment, work)
        if isEarliest { arm(moment) }
        return alarm
    }

    private func ring() {
        armed.withLock { $0 = nil }
        if let next = alarms.fire(at: now) { arm(next) }
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
