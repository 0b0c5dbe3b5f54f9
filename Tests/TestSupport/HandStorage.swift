import Foundation
package import WebServiceCore
package import WebServiceStorage

/// A storage under the control of the test, which can fail or delay its operations.
package final class HandStorage: ResponseStorage {
    package enum Call: Sendable, Equatable { case read, store(String), remove, removeAll }

    package let classifications: Set<DataClassification>?
    package let calls = Collected<Call>()
    /// The store operations that have begun, including those that wait for the gate.
    package let begun = Collected<Void>()
    private let memory = MemoryStorage()
    private let failure: (any Error)?
    private let gate: Once<Bool>?

    /// - Parameters:
    ///   - failure: The error that every operation throws, or `nil`.
    ///   - gate: The decision that a store operation waits for, or `nil`.
    package init(
        _ classifications: Set<DataClassification>? = nil, failure: (any Error)? = nil, gate: Once<Bool>? = nil
    ) {
        self.classifications = classifications
        self.failure = failure
        self.gate = gate
    }

    package func entry(for key: StorageKey) async throws -> StorageEntry? {
        calls.add(.read)
        if let failure { throw failure }
        return memory.entry(for: key)
    }

    package func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        begun.add(())
        _ = await gate?.value
        calls.add(.store(String(decoding: entry.data ?? Data(), as: UTF8.self)))
        if let failure { throw failure }
        try memory.store(entry, for: key)
    }

    package func removeEntry(for key: StorageKey) async throws {
        calls.add(.remove)
        if let failure { throw failure }
        memory.removeEntry(for: key)
    }

    package func removeAll() async throws {
        calls.add(.removeAll)
        if let failure { throw failure }
        memory.removeAll()
    }

    package func removeEntries(of classification: DataClassification) async throws {
        calls.add(.removeAll)
        if let failure { throw failure }
        await memory.removeEntries(of: classification)
    }
}
