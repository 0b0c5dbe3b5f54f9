import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("Order of changes to a storage", .permit)
struct StorageOrderTests {
    private let order = StorageOrder()
    private let log = Collected<String>()

    /// Starts a change that waits for a decision.
    private func begin(_ name: String, _ key: StorageKey?, until gate: Once<Bool>) throws -> Task<Void, Never> {
        try order.change(key) { [log] in
            _ = await gate.value
            log.add(name)
        }
    }

    @Test(
        "A change waits for the previous one, even if an earlier one has ended meanwhile", arguments: [true, false])
    func threeChanges(areOfOneKey: Bool) async throws {
        let key: StorageKey? = areOfOneKey ? StorageKey(identifier: "a") : nil
        let gates = (0..<3).map { _ in Once<Bool>() }
        let first = try begin("first", key, until: gates[0])
        let second = try begin("second", key, until: gates[1])
        gates[0].set(true)
        await first.value
        gates[2].set(true)
        let third = try begin("third", key, until: gates[2])
        // Gives the third change time to start too early.
        for _ in 0..<500 { await Task.yield() }
        #expect(log.values == ["first"])
        gates[1].set(true)
        await second.value
        await third.value
        #expect(log.values == ["first", "second", "third"])
    }

    @Test("A change of one key waits for a change of all keys, and a change of all keys for those of every key")
    func all() async throws {
        let gates = (0..<3).map { _ in Once<Bool>() }
        let tasks = [
            try begin("a", StorageKey(identifier: "a"), until: gates[0]), try begin("all", nil, until: gates[1]),
            try begin("b", StorageKey(identifier: "b"), until: gates[2]),
        ]
        gates[2].set(true)
        gates[1].set(true)
        for _ in 0..<500 { await Task.yield() }
        #expect(log.values == [])
        gates[0].set(true)
        for task in tasks { await task.value }
        #expect(log.values == ["a", "all", "b"])
    }

    @Test("Waiting for a key returns after all changes of that key that were started earlier")
    func settled() async throws {
        let gate = Once<Bool>()
        let change = try begin("change", StorageKey(identifier: "a"), until: gate)
        await order.settled(StorageKey(identifier: "b"))
        #expect(log.values == [])
        gate.set(true)
        await order.settled(StorageKey(identifier: "a"))
        #expect(log.values == ["change"])
        await order.settled(nil)
        await change.value
    }
}
