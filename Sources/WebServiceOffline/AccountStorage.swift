import Foundation
import WebServiceCore

/// A storage of an account, which is empty after the account has ended.
struct AccountStorage: ResponseStorage {
    let storage: any ResponseStorage
    let scope: AccountScope

    var classifications: Set<DataClassification>? { storage.classifications }

    func supports(_ request: any StorableRequest) -> Bool { storage.supports(request) }

    func entry(for key: StorageKey) async throws -> StorageEntry? {
        try await unlessEnded(nil) { try await storage.entry(for: key) }
    }

    /// - Throws: ``WebServiceError/Code/loggedOut``.
    func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        guard let token = scope.begin() else { throw WebServiceError.loggedOut }
        defer { withExtendedLifetime(token) {} }
        try await storage.store(entry, for: key)
    }

    // After the end, a removal has nothing to remove, and could create an empty file.

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

    /// Returns the value of an operation, or another value if the account ends before.
    private func unlessEnded<Value>(_ other: Value, _ operation: () async throws -> Value) async throws -> Value {
        guard let token = scope.begin() else { return other }
        defer { withExtendedLifetime(token) {} }
        let value = try await operation()
        return scope.isEnded ? other : value
    }
}

extension WebServiceError {
    static var loggedOut: WebServiceError {
        WebServiceError(.loggedOut, "the account is logged out; create another Account")
    }
}
