import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Alarm queue", .permit)
struct AlarmQueueTests {
    private let rang = Collected<Int>()

    @Test("Only due alarms are removed, in the order of their due times")
    func order() {
        var queue = AlarmQueue()
        for moment in [50, 10, 40, 20, 30] {
            _ = queue.add(at: UInt64(moment), Bell { rang.add(moment) })
        }
        #expect(queue.earliest == 10)
        for bell in queue.takeDue(at: 35) { bell.ring() }
        #expect(rang.values == [10, 20, 30])
        #expect(queue.earliest == 40)
        #expect(queue.count == 2)
    }

    @Test("Removing an alarm removes only its entry, and a used token has no effect after its slot is reused")
    func removal() {
        var queue = AlarmQueue()
        let rang = Collected<String>()
        let first = queue.add(at: 1, Bell { rang.add("first") })
        queue.remove(first)
        let second = queue.add(at: 2, Bell { rang.add("second") })
        queue.remove(first)
        for bell in queue.takeDue(at: 5) { bell.ring() }
        queue.remove(second)
        #expect(rang.values == ["second"])
        #expect(queue.count == 0)
    }

    @Test("The queue behaves like a sorted list under 20,000 random operations")
    func againstModel() {
        var random = SeededGenerator(seed: 7)
        var queue = AlarmQueue()
        var model: [(instant: UInt64, token: AlarmQueue.Token)] = []
        for _ in 0..<20_000 {
            switch UInt8.random(in: 0..<10, using: &random) {
            case 0..<5:
                let moment = UInt64.random(in: 0..<1_000_000, using: &random)
                model.append((moment, queue.add(at: moment, Bell { rang.add(Int(moment)) })))
            case 5..<9 where !model.isEmpty:
                let victim = model.remove(at: Int.random(in: 0..<model.count, using: &random))
                queue.remove(victim.token)
            default:
                let now = UInt64.random(in: 0..<1_000_000, using: &random) / 10
                for bell in queue.takeDue(at: now) { bell.ring() }
                #expect(rang.values == model.filter { $0.instant <= now }.map { Int($0.instant) }.sorted())
                model.removeAll { $0.instant <= now }
                rang.removeAll()
            }
            #expect(queue.earliest == model.map(\.instant).min())
            #expect(queue.count == model.count)
        }
    }

    @Test("A due time beyond the range of the clock is saturated, and a negative delay counts as zero", .covers("M-27"))
    func saturation() {
        #expect(UInt64(5).addingSaturated(.seconds(Int64.max)) == .max)
        #expect(UInt64.max.addingSaturated(.nanoseconds(1)) == .max)
        #expect(UInt64(5).addingSaturated(.seconds(-1)) == 5)
        #expect(UInt64(5).addingSaturated(.milliseconds(2)) == 2_000_005)
    }
}

final class Bell: AlarmTarget {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    func ring() { body() }
}
