import TestSupport
import Testing

@testable import WebServiceCore

private final class Bell: AlarmTarget {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    func ring() { body() }
}

@Suite("Alarms: real time", .permit)
struct AlarmRealTimeTests {
    private let rang = Collected<Int>()

    @Test("An alarm of the system clock fires, and a cancelled alarm does not")
    func systemClock() async {
        let start = ContinuousClock.now
        let cancelled = TaskClock.system.schedule(after: .milliseconds(100), Bell { rang.add(1) })
        TaskClock.system.cancel(cancelled)
        let wasInTime = ContinuousClock.now - start < .milliseconds(80)
        _ = TaskClock.system.schedule(after: .milliseconds(150), Bell { rang.add(2) })
        let values = await rang.wait()
        #expect(ContinuousClock.now - start >= .milliseconds(150))
        if wasInTime { #expect(values == [2]) }
    }
}
