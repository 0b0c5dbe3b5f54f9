public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension WebService {
    /// Makes a task that reads the stored answer to a request. Like every task it does nothing before it is resumed; awaiting it resumes it.
    ///
    /// It sees what was stored by requests of this service that had their answers before. A value that was kept raw is processed by the first endpoint that
    /// processes stored data of the request. The result has these errors: ``WebServiceError/Code/noStoredData`` when there is nothing, nothing young
    /// enough, or nothing that can be read any more (then with the reason as the underlying error); ``WebServiceError/Code/noStorage``,
    /// ``WebServiceError/Code/noEndpoint``; what the storage threw; `URLError.cancelled`.
    ///
    /// A read that depends on a task is decided on the main actor: handlers added to it run there before any of the task that hold a newer value, or it is
    /// cancelled.
    ///
    /// - Parameters:
    ///   - request: What was asked for; only its identifier and classification count.
    ///   - maximumAge: How old the answer may be, in seconds; one whose age is not known is too old. `nil` for any age.
    ///   - dependency: On what the read depends.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<StoredValue<Request.Output>> {
        let answer = Answer<StoredValue<Request.Output>>()
        let task = SessionTask(core) { [core] task in
            core.beginRead(of: request, maximumAge, dependency, task, answer)
        }
        let step: @Sendable (StepInput) -> Result<StoredValue<Request.Output>, any Error> = { input in
            Result {
                if let failure = input.failure { throw failure }
                if dependency.isOver?() == true { throw URLError(.cancelled) }
                return try answer.value
            }
        }
        if dependency.isOver == nil { return TypedTask(task, ResponseRules(.any), isOwn: true, owner: TaskOwner(self), step: step) }
        return TypedTask(task, ResponseRules(.any), owner: TaskOwner(self), mainStep: { step($0) })
    }

    /// Reads the stored answer to a request at once; see ``stored(_:maximumAge:_:)``. The closure gets what came of it, once, on the main actor.
    @discardableResult
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<StoredValue<Request.Output>>) -> Void
    ) -> TypedTask<StoredValue<Request.Output>> {
        stored(request, maximumAge: maximumAge, dependency).observeOnMain({ $0 }, { completion(ServiceResponse($0)) }).resume()
    }

    /// Reads the stored answer to a request at once; see ``stored(_:maximumAge:_:)``. The delegate, which is held weakly, gets the value and the key, once, on
    /// the main actor; where `onlyData` is true, it hears neither of errors nor of a read that was cancelled.
    @discardableResult
    public func stored<Request: StorableRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, maximumAge: TimeInterval? = nil,
        _ dependency: StorageReadDependency = .independent, onlyData: Bool = false, delegate: any ServiceDelegate
    ) -> TypedTask<StoredValue<Request.Output>> {
        stored(request, maximumAge: maximumAge, dependency) { [weak delegate] response in
            let response = response.map { $0.value as any Sendable }
            if onlyData, response.data == nil { return }
            delegate?.serviceDidAnswer(response, to: request, key: key, isFromStorage: true)
        }
    }

    /// Returns when the answers that have come so far are stored, and the deletes that were begun are made, or after
    /// 10 seconds. For programs that end themselves: a task has its answer before that is stored.
    ///
    /// - Returns: `false` where a storage was not done within 10 seconds.
    @discardableResult
    public func finishStoring() async -> Bool {
        await typed.order.settled(core.clock)
    }

    /// Removes what is stored of a request, for the account of now. What a request that is under way brings later is stored all the same: cancel it first.
    ///
    /// - Throws: ``WebServiceError/Code/noStorage``, what the storage throws, or ``WebServiceError/Code/storage`` when it was not done within
    ///   10 seconds; then the entry is removed when the storage continues.
    public func deleteStored(_ request: some StorableRequest) async throws {
        let typed = typed
        guard let storage = typed.storages.first(where: { $0.isFor(request) }) else { throw ServiceCore.noStorage(for: request) }
        guard let key = request.storageKey(account: typed.storageAccount) else { return }
        try await remove(key, from: [storage], typed) { try await $0.removeEntry(for: key) }
    }

    /// Empties the storages that are for this kind of data by name; those for any kind are left alone. A storage for several kinds is emptied whole.
    ///
    /// - Throws: What the first storage that failed throws; the others are emptied all the same;
    ///   ``WebServiceError/Code/storage`` when they were not done within 10 seconds.
    public func deleteStored(_ classification: DataClassification) async throws {
        try await removeAll { $0.classifications?.contains(classification) == true }
    }

    /// Empties the storages that are for any kind of data.
    ///
    /// - Throws: What the first storage that failed throws; the others are emptied all the same;
    ///   ``WebServiceError/Code/storage`` when they were not done within 10 seconds.
    public func deleteStoredInAnyClassification() async throws {
        try await removeAll { $0.classifications == nil }
    }

    /// Empties all storages.
    ///
    /// - Throws: What the first storage that failed throws; the others are emptied all the same;
    ///   ``WebServiceError/Code/storage`` when they were not done within 10 seconds.
    public func deleteAllStored() async throws {
        try await removeAll { _ in true }
    }
}

extension WebService {
    private func removeAll(from isMeant: (any ResponseStorage) -> Bool) async throws {
        let typed = typed
        try await remove(nil, from: typed.storages.filter(isMeant), typed) { try await $0.removeAll() }
    }

    /// - Parameter key: What is removed; `nil` for all.
    private func remove(
        _ key: StorageKey?, from storages: [any ResponseStorage], _ typed: TypedConfiguration,
        _ body: @escaping @Sendable (any ResponseStorage) async throws -> Void
    ) async throws {
        let failure = Answer<Void>()
        failure.set(.success(()))
        try await typed.order.makeChange(key, core.clock) {
            for storage in storages.reversed() {
                do { try await body(storage) } catch {
                    typed.report(.remove, key.map { StoragePlace(storage: storage, key: $0) }, storage, error)
                    failure.set(.failure(error))
                }
            }
        }
        try failure.value
    }
}
