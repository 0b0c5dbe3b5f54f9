import Foundation
import WebServiceCore
import WebServiceStorage

/// A storage of an account. It is empty after the account has ended.
final class AccountStorage: ResponseStorage {
    private let storage: any ResponseStorage
    private let scope: AccountScope
    /// The operations in progress. They end before the entries are removed.
    private let work = WorkCount()

    init(_ storage: any ResponseStorage, _ scope: AccountScope) { (self.storage, self.scope) = (storage, scope) }

    var classifications: Set<DataClassification>? { storage.classifications }

    func supports(_ request: any StorableRequest) -> Bool { storage.supports(request) }

    func entry(for key: StorageKey) async throws -> StorageEntry? {
        try await unlessEnded(nil) { try await storage.entry(for: key) }
    }

    /// - Throws: `WebServiceError.Code.loggedOut` after the account has ended.
    func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        let token = work.begin()
        defer { withExtendedLifetime(token) {} }
        guard !scope.isEnded else { throw WebServiceError.loggedOut }
        try await storage.store(entry, for: key)
    }

    // After the account has ended, there is nothing left to remove, and a removal could create a
    // file.

    func removeEntry(for key: StorageKey) async throws {
        try await unlessEnded(()) { try await storage.removeEntry(for: key) }
    }

    func removeAll() async throws {
        try await unlessEnded(()) { try await storage.removeAll() }
    }

    func removeEntries(of classification: DataClassification) async throws {
        try await unlessEnded(()) { try await storage.removeEntries(of: classification) }
    }

    func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        try await unlessEnded([]) { try await storage.summaries(after: key, limit: limit) }
    }

    /// Returns the value of an operation, or `other` if the account ends first.
    private func unlessEnded<Value>(_ other: Value, _ operation: () async throws -> Value) async throws -> Value {
        let token = work.begin()
        defer { withExtendedLifetime(token) {} }
        guard !scope.isEnded else { return other }
        let value = try await operation()
        return scope.isEnded ? other : value
    }

    /// Waits until no operation is in progress, or until the Swift task is cancelled.
    func settle() async {
        while await !work.finish(within: .seconds(3_600)), !Task.isCancelled {}
    }

    /// Removes all data after the operations in progress have ended. Called after the account has
    /// ended.
    func erase() async throws {
        await settle()
        try await storage.eraseAll()
    }
}

extension WebServiceError {
    static var loggedOut: WebServiceError {
        WebServiceError(.loggedOut, "the account is logged out; create another Account")
    }
}
