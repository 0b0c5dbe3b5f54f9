import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension WebService {
    /// Returns a task that reads the stored response to a request.
    ///
    /// Like every task, it starts when it is resumed; awaiting it resumes it.
    ///
    /// The read finds the responses that this service received earlier, even if they are still
    /// being stored. A value stored as raw bytes is processed by the first endpoint that processes
    /// stored data of the request. The task fails with ``WebServiceError/Code/noStoredData`` if
    /// there is no entry, none that is recent enough, or none that can still be read; in the last
    /// case, the reason is the underlying error. The task can also fail with
    /// ``WebServiceError/Code/noStorage``, ``WebServiceError/Code/noEndpoint``, the error of the
    /// storage, or `URLError.cancelled`.
    ///
    /// A read with a dependency completes on the main actor: its handlers run there before any
    /// handler that receives the newer value, unless the read is cancelled.
    ///
    /// - Parameters:
    ///   - request: The request whose response is stored; only its identifier and classification
    ///     are used.
    ///   - maximumAge: The maximum age. An entry of unknown age counts as too old. Defaults to
    ///     `nil`: any age.
    ///   - dependency: The task that the read depends on. Defaults to
    ///     ``StorageReadDependency/independent``.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        readStored(request, maximumAge: maximumAge, dependency) { $0 }
    }

    /// - Parameter transform: A closure that returns the value of the task.
    package func readStored<Request: StorableRequest, Value: Sendable>(
        _ request: Request, maximumAge: Duration?, _ dependency: StorageReadDependency,
        _ transform: @escaping @Sendable (SourcedValue<Request.Output>) -> Value
    ) -> TypedTask<Value> {
        let outcome = TypedResult<SourcedValue<Request.Output>>()
        let task = SessionTask(core, type: Request.self) { [core] task in
            core.beginRead(of: request, maximumAge: maximumAge, dependency, task: task, outcome: outcome)
        }
        let step: @Sendable (StepInput) -> Result<Value, any Error> = { input in
            Result {
                if let failure = input.failure { throw failure }
                if dependency.isOver?() == true { throw URLError(.cancelled) }
                return transform(try outcome.value)
            }
        }
        if dependency.isOver == nil {
            return TypedTask(
                task, accepting: .any, owner: TaskOwner(self), isOwn: true, step: { input, _ in step(input) })
        }
        return TypedTask(task, accepting: .any, owner: TaskOwner(self), mainStep: { input, _ in step(input) })
    }

    /// Waits until pending storage changes are complete, for at most 10 seconds.
    ///
    /// These changes store the responses received so far and complete the deletions started so far.
    /// Call this method before a program exits, because a response is delivered before it is
    /// stored.
    ///
    /// - Returns: `false` if a storage has not finished within 10 seconds.
    @discardableResult
    public func finishStoring() async -> Bool {
        await typed.order.settled(core.clock)
    }

    /// Removes the stored response to a request for the current account.
    ///
    /// The response to a request in flight is still stored: cancel that request first.
    ///
    /// - Throws: ``WebServiceError/Code/noStorage``; the error of the storage; or
    ///   ``WebServiceError/Code/storage`` if the removal takes longer than 10 seconds. The entry is
    ///   then removed when the storage responds again.
    public func deleteStored(_ request: some StorableRequest) async throws {
        let typed = typed
        guard let storage = typed.storages.first(where: { $0.isFor(request) }) else {
            throw ServiceCore.noStorage(for: request)
        }
        guard let key = request.storageKey(account: typed.storageAccount) else { return }
        try await remove(key, from: [storage], typed) { try await $0.removeEntry(for: key) }
    }

    /// Removes the stored responses with a classification, of all accounts, from every storage.
    ///
    /// Responses with other classifications remain
    /// (``ResponseStorage/removeEntries(of:)``).
    ///
    /// - Throws: The error of the first storage that fails; the others are still processed. If the
    ///   removal takes longer than 10 seconds, the error is ``WebServiceError/Code/storage``.
    public func deleteStored(_ classification: DataClassification) async throws {
        let typed = typed
        let storages = typed.storages.filter { $0.classifications?.contains(classification) ?? true }
        try await remove(nil, from: storages, typed) { try await $0.removeEntries(of: classification) }
    }

    /// Empties the storages that accept any classification.
    ///
    /// - Throws: The error of the first storage that fails; the others are still emptied. If the
    ///   removal takes longer than 10 seconds, the error is ``WebServiceError/Code/storage``.
    public func deleteStoredInAnyClassification() async throws {
        try await removeAll { $0.classifications == nil }
    }

    /// Empties all storages.
    ///
    /// - Throws: The error of the first storage that fails; the others are still emptied. If the
    ///   removal takes longer than 10 seconds, the error is ``WebServiceError/Code/storage``.
    public func deleteAllStored() async throws {
        try await removeAll { _ in true }
    }
}

extension WebService {
    private func removeAll(from isMeant: (any ResponseStorage) -> Bool) async throws {
        let typed = typed
        try await remove(nil, from: typed.storages.filter(isMeant), typed) { try await $0.removeAll() }
    }

    /// - Parameter key: The key to remove, or `nil` for all entries.
    private func remove(
        _ key: StorageKey?, from storages: [any ResponseStorage], _ typed: TypedConfiguration,
        _ body: @escaping @Sendable (any ResponseStorage) async throws -> Void
    ) async throws {
        let failure = Mutex<(any Error)?>(nil)  // the error of the first storage that fails
        try await typed.order.makeChange(key, core.clock) {
            for storage in storages.reversed() {
                do { try await body(storage) } catch {
                    typed.report(error, of: .remove, key: key, in: storage)
                    failure.withLock { $0 = error }
                }
            }
        }
        if let error = failure.withLock(\.self) { throw error }
    }
}
