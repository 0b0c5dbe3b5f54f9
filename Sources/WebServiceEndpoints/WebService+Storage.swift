import Foundation
public import WebServiceCore
public import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension WebService {
    /// Creates a task that reads the stored response to a request.
    ///
    /// The task starts when it is resumed or awaited.
    ///
    /// The read finds the responses that this service received earlier, even if they are still
    /// being stored. If a value was stored as raw bytes, the first endpoint that processes stored
    /// data of the request converts it. The task fails with `WebServiceError.Code.noStoredData` if
    /// there is no entry, if an endpoint hides the entry, if the entry is too old, or if it can no
    /// longer be read. In the last case, the underlying error, if there is one, is the reason. The
    /// task can also fail with `WebServiceError.Code.noStorage`, `WebServiceError.Code.noEndpoint`,
    /// the error of the storage, or `URLError.cancelled`.
    ///
    /// A read with a dependency completes on the main actor. Unless the read is cancelled, its
    /// handlers run there before any handler that receives the newer value.
    ///
    /// - Parameters:
    ///   - request: The request whose response is stored. Only its storage identifier and its
    ///     classification are used to find the entry.
    ///   - maximumAge: The maximum age of the entry. An entry of unknown age counts as too old.
    ///     Defaults to `nil`, which allows any age.
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
    /// - Returns: Whether all storages finished within 10 seconds.
    @discardableResult
    public func finishStoring() async -> Bool {
        await typed.order.settled(core.clock)
    }

    /// Removes the stored response to a request for the current account.
    ///
    /// The response to a request in flight is still stored. To prevent this, cancel that request
    /// first.
    ///
    /// - Throws: `WebServiceError.Code.noStorage` if no storage supports the request; the error of
    ///   the storage; or `WebServiceError.Code.storage` if the removal takes longer than 10 seconds
    ///   or if 64 changes to the entry are already pending. In the last two cases, the entry is
    ///   removed when the storage responds again.
    public func deleteStored(_ request: some StorableRequest) async throws {
        let typed = typed
        guard let storage = typed.storages.first(where: { $0.isFor(request) }) else {
            throw ServiceCore.noStorage(for: request)
        }
        guard let key = request.storageKey(account: typed.storageAccount) else { return }
        try await remove(key, from: [storage], typed) { try await $0.removeEntry(for: key) }
    }

    /// Removes the stored responses with a classification from every storage, for all accounts.
    ///
    /// Responses with other classifications remain (`ResponseStorage.removeEntries(of:)`).
    ///
    /// - Throws: The error of the first storage that fails. The other storages are still processed.
    ///   If the removal takes longer than 10 seconds, or if 64 such removals are already pending,
    ///   the error is `WebServiceError.Code.storage`.
    public func deleteStored(_ classification: DataClassification) async throws {
        let typed = typed
        let storages = typed.storages.filter { $0.classifications?.contains(classification) ?? true }
        try await remove(nil, named: "classification \(classification)", from: storages, typed) {
            try await $0.removeEntries(of: classification)
        }
    }

    /// Empties the storages that accept any classification.
    ///
    /// - Throws: The error of the first storage that fails. The other storages are still emptied.
    ///   If the removal takes longer than 10 seconds, or if 64 such removals are already pending,
    ///   the error is `WebServiceError.Code.storage`.
    public func deleteStoredInAnyClassification() async throws {
        try await removeAll(named: "any") { $0.classifications == nil }
    }

    /// Empties all storages.
    ///
    /// - Throws: The error of the first storage that fails. The other storages are still emptied.
    ///   If the removal takes longer than 10 seconds, or if 64 such removals are already pending,
    ///   the error is `WebServiceError.Code.storage`.
    public func deleteAllStored() async throws {
        try await removeAll(named: "all") { _ in true }
    }
}

extension WebService {
    private func removeAll(named name: String, from isMeant: (any ResponseStorage) -> Bool) async throws {
        let typed = typed
        try await remove(nil, named: name, from: typed.storages.filter(isMeant), typed) { try await $0.removeAll() }
    }

    /// - Parameters:
    ///   - key: The key to remove, or `nil` for several entries.
    ///   - name: The name of these entries. Defaults to an empty string.
    private func remove(
        _ key: StorageKey?, named name: String = "", from storages: [any ResponseStorage], _ typed: TypedConfiguration,
        _ body: @escaping @Sendable (any ResponseStorage) async throws -> Void
    ) async throws {
        try await typed.order.makeChange(key, named: name, core.clock) {
            var failure: (any Error)?  // the error of the first storage that fails
            for storage in storages.reversed() {
                do { try await body(storage) } catch {
                    typed.report(error, of: .remove, key: key, in: storage)
                    failure = error
                }
            }
            if let failure { throw failure }
        }
    }
}

/// Conversion between entries and values.
extension ServiceCore {
    /// Starts a storage read when its task is resumed for the first time.
    func beginRead<Request: StorableRequest>(
        of request: Request, maximumAge: Duration?, _ dependency: StorageReadDependency, task: SessionTask,
        outcome: TypedResult<SourcedValue<Request.Output>>
    ) {
        let id = EventQueue.makeID()
        task.observe(by: setup.observers, nil, type: Request.self, id: id)
        guard dependency.isOver?() != true else {
            task.complete(.failure(URLError(.cancelled)))
            return
        }
        let typed = self.typed.configuration
        typed.registry.beginRead(id, task)
        dependency.observe? { [weak task] in task?.cancel() }
        let work = HandlerPool.startImmediately(on: clock.work) {
            do {
                let (value, data) = try await self.read(request, maximumAge: maximumAge, typed, task)
                outcome.set(.success(value))
                task.complete(.success(Response(body: data, source: .storage, attempts: 0, age: value.age)))
            } catch {
                task.complete(.failure(error is CancellationError ? URLError(.cancelled) : error))
            }
            typed.registry.endRead(id)
        }
        task.attach(work)
    }

    /// Returns the stored value, and records the read in the timeline of the task.
    func read<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration?, _ typed: TypedConfiguration, _ task: SessionTask
    ) async throws -> (SourcedValue<Request.Output>, Data?) {
        let start = clock.now
        do {
            let found = try await storedValue(request, maximumAge, typed)
            let age = found.0.age.map { ", \(Int64($0.inSeconds)) s old" } ?? ""
            task.record(.storage, "read\(age)", from: start)
            return found
        } catch {
            task.record(.storage, "not read: \(ExchangeLog.reason(error))", from: start)
            throw error
        }
    }

    private func storedValue<Request: StorableRequest>(
        _ request: Request, _ maximumAge: Duration?, _ typed: TypedConfiguration
    ) async throws -> (SourcedValue<Request.Output>, Data?) {
        guard let storage = typed.storages.first(where: { $0.isFor(request) }) else {
            throw Self.noStorage(for: request)
        }
        guard let key = request.storageKey(account: typed.storageAccount) else {
            throw Self.noStoredData("the request has no storage identifier; return one from storageIdentifier")
        }
        let entry: StorageEntry
        do {
            guard let found = try await storage.entry(for: key, after: typed.order, clock) else {
                throw Self.noStoredData("no response is stored; send the request")
            }
            entry = found
        } catch {
            if (error as? WebServiceError)?.code != .noStoredData, !(error is CancellationError) {
                typed.report(error, of: .read, key: key, in: storage)
            }
            throw error
        }
        let age = entry.date.map { Duration.clamping(seconds: clock.date.timeIntervalSince($0)) }
            .flatMap { $0 >= .zero ? $0 : nil }
        if let maximumAge {
            guard let age, age <= maximumAge else {
                throw Self.noStoredData("the stored response is too old or of unknown age; send the request")
            }
        }
        let value = try await value(of: request, entry.content, typed)
        return (SourcedValue(value, source: .storage, age: age, date: entry.date), entry.data)
    }

    private func value<Request: StorableRequest>(
        of request: Request, _ content: StorageEntry.Content, _ typed: TypedConfiguration
    ) async throws -> Request.Output {
        switch content {
        case .live(let value):
            guard let value = value as? Request.Output else {
                throw Self.noStoredData("the stored value is not of type \(Request.Output.self); send the request")
            }
            return value
        case .value(let data):
            return try Self.value(of: request, data)
        case .raw(let data):
            return try await processed(request, data, typed)
        case .unlabelled(let data):
            return request is any ValueStorableRequest
                ? try Self.value(of: request, data) : try await processed(request, data, typed)
        }
    }

    private static func value<Request: StorableRequest>(of request: Request, _ data: Data) throws -> Request.Output {
        do {
            let value = try (request as? any ValueStorableRequest).flatMap { try read($0, data) } as? Request.Output
            if let value { return value }
        } catch {
            throw noStoredData("the stored value can no longer be read; send the request", error)
        }
        throw noStoredData("the stored value can no longer be read; send the request")
    }

    private static func read<Request: ValueStorableRequest>(
        _ request: Request, _ data: Data
    ) throws -> (any Sendable)? {
        try request.storedValue(from: data)
    }

    private func processed<Request: ServiceRequest>(
        _ request: Request, _ data: Data, _ typed: TypedConfiguration
    ) async throws -> Request.Output {
        for endpoint in typed.endpoints {
            switch endpoint.storedData(of: request) {
            case .leaves: continue
            case .hides: throw Self.noStoredData("the endpoint hides stored data; send the request")
            case .processes:
                do {
                    let value = try await PerformingService.$core.withValue(self) {
                        try await endpoint.process(data, of: request, isFromStorage: true)
                    }
                    return try request.output(value)
                } catch {
                    throw Self.noStoredData("the stored data can no longer be processed; send the request", error)
                }
            }
        }
        throw WebServiceError(
            .noEndpoint, "no endpoint processes stored data of \(Request.self); add one to 'endpoints'")
    }

    /// Stores a response and reports any error.
    ///
    /// - Parameters:
    ///   - date: The date at which the response was received.
    ///   - flight: The recorder of the request's exchanges. The task that started the request
    ///     records whether the response was stored.
    func store(
        _ output: any Sendable, _ rawData: (any RawDataSource)?, of request: any ServiceRequest,
        in place: StoragePlace, date: Date, _ typed: TypedConfiguration, recordingIn flight: FlightRecorder
    ) async {
        let task = flight.starter
        let start = clock.now
        do {
            guard let content = try Self.content(output, rawData, of: request) else { return }
            var entry = StorageEntry(content, date: date)
            entry.groups = flight.exchange?.groups
            try await place.storage.store(entry, for: place.key)
            task.record(.storage, "stored", from: start)
        } catch {
            typed.report(error, of: .store, key: place.key, in: place.storage)
            task.record(.storage, "not stored: \(ExchangeLog.reason(error))", from: start)
        }
    }

    /// - Returns: `nil` if there is nothing to store.
    private static func content(
        _ output: any Sendable, _ rawData: (any RawDataSource)?, of request: any ServiceRequest
    ) throws -> StorageEntry.Content? {
        if let request = request as? any ValueStorableRequest {
            return try data(output, of: request).map { .value($0) }
        }
        if request is any RawStorableRequest { return rawData?.rawData.map { .raw($0) } }
        return .live(output)
    }

    private static func data<Request: ValueStorableRequest>(
        _ output: any Sendable, of request: Request
    ) throws -> Data? {
        try (output as? Request.Output).flatMap { try request.storageData(for: $0) }
    }

    static func noStorage(for request: any ServiceRequest) -> WebServiceError {
        WebServiceError(.noStorage, "no storage stores responses to \(type(of: request)); add one to 'storages'")
    }

    private static func noStoredData(_ message: String, _ underlying: (any Error)? = nil) -> WebServiceError {
        WebServiceError(.noStoredData, message, underlying: underlying)
    }
}
