import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Priority queue", .permit)
struct PriorityQueueTests {
    @Test("Selected elements are removed, in the order of their ranks, and the others remain in order")
    func removeAll() {
        var queue = PriorityQueue<Int>()
        let tokens = (0..<50).map { queue.add($0, at: UInt64($0 * 7 % 50)) }
        var order: [Int] = []
        queue.removeAll { element in
            order.append(element)
            return order.count.isMultiple(of: 2)
        }
        #expect(order.map { $0 * 7 % 50 } == Array(0..<50))
        #expect(queue.count == 25)
        let removed = Set(order.indices.filter { !$0.isMultiple(of: 2) }.map { order[$0] })
        for number in 0..<50 where number % 10 == 0 {
            #expect((queue.remove(tokens[number]) == nil) == removed.contains(number))
        }
        #expect(queue.takeAll(upTo: .max) == order.filter { !removed.contains($0) && $0 % 10 != 0 })
    }

    @Test("Only elements up to a rank are removed, in the order of their ranks")
    func order() {
        var queue = PriorityQueue<Int>()
        for rank in [50, 10, 40, 20, 30] { _ = queue.add(rank, at: UInt64(rank)) }
        #expect(queue.lowest == 10)
        #expect(queue.takeAll(upTo: 35) == [10, 20, 30])
        #expect(queue.lowest == 40)
        #expect(queue.popFirst() == 40)
        #expect(queue.count == 1)
    }

    @Test("Removing an element removes only that one, and a used token has no effect after its slot is reused")
    func removal() {
        var queue = PriorityQueue<String>()
        let first = queue.add("first", at: 1)
        #expect(queue.remove(first) == "first")
        let second = queue.add("second", at: 2)
        #expect(queue.remove(first) == nil)
        #expect(queue.takeAll(upTo: 5) == ["second"])
        #expect(queue.remove(second) == nil)
        #expect(queue.popFirst() == nil)
    }

    @Test("The queue behaves like a sorted list under 20,000 random operations")
    func againstModel() {
        var random = SeededGenerator(seed: 7)
        var queue = PriorityQueue<UInt64>()
        var model: [(rank: UInt64, token: PriorityQueue<UInt64>.Token)] = []
        for _ in 0..<20_000 {
            switch UInt8.random(in: 0..<10, using: &random) {
            case 0..<5:
                let rank = UInt64.random(in: 0..<1_000_000, using: &random)
                model.append((rank, queue.add(rank, at: rank)))
            case 5..<9 where !model.isEmpty:
                let victim = model.remove(at: Int.random(in: 0..<model.count, using: &random))
                #expect(queue.remove(victim.token) == victim.rank)
            default:
                let limit = UInt64.random(in: 0..<1_000_000, using: &random) / 10
                #expect(queue.takeAll(upTo: limit) == model.map(\.rank).filter { $0 <= limit }.sorted())
                model.removeAll { $0.rank <= limit }
            }
            #expect(queue.lowest == model.map(\.rank).min())
            #expect(queue.count == model.count)
        }
    }

    @Test("A due time beyond the range of the clock is saturated, and a negative delay counts as zero")
    func saturation() {
        #expect(UInt64(5).addingSaturated(.seconds(Int64.max)) == .max)
        #expect(UInt64.max.addingSaturated(.nanoseconds(1)) == .max)
        #expect(UInt64(5).addingSaturated(.seconds(-1)) == 5)
        #expect(UInt64(5).addingSaturated(.milliseconds(2)) == 2_000_005)
    }
}
