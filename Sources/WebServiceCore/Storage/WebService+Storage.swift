public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An answer that a storage kept.
public struct StoredValue<Value: Sendable>: Sendable {
    /// The value.
    public let value: Value
    /// When it was stored; `nil` where the storage does not know, and for a time that has not come yet: the clock was wrong then or is now.
    public let date: Date?
    /// How old it was in seconds when it was read; `nil` without a date.
    public let age: TimeInterval?
}

/// On what a read depends: a task that asks for the same, so that what is stored is of no use once there is an answer.
public struct StorageReadDependency: Sendable {
    /// Whether the read is of no use any more; `nil` where it always is.
    let isOver: (@Sendable () -> Bool)?
    /// Has the closure called when the task has ended.
    let observe: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// On nothing.
    public static let independent = StorageReadDependency(isOver: nil, observe: nil)

    /// The read is cancelled when the task has a value first.
    public static func untilSuccess<Value>(of task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .data = $0 { true } else { false } }
    }

    /// The read is cancelled when the task has a value first, or is cancelled, or turns out to be a duplicate. An error of the task leaves the read: what is
    /// stored is all there is then.
    public static func untilFinished<Value>(_ task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .error = $0 { false } else { true } }
    }

    private static func until<Value>(
        _ task: TypedTask<Value>, _ ends: @escaping @Sendable (ServiceResponse<Value>) -> Bool
    ) -> StorageReadDependency {
        StorageReadDependency {
            task.settled.map { ends(ServiceResponse($0)) } ?? false
        } observe: { ended in
            _ = task.observe { _ in ended() }
        }
    }
}

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
        let service = performing
        let answer = Answer<StoredValue<Request.Output>>()
        let task = SessionTask(service: service) { task in
            service.beginRead(of: request, maximumAge, dependency, task, answer)
        }
        let step: @Sendable (StepInput) -> Result<StoredValue<Request.Output>, any Error> = { input in
            Result {
                if let failure = input.failure { throw failure }
                if dependency.isOver?() == true { throw URLError(.cancelled) }
                return try answer.value
            }
        }
        if dependency.isOver == nil { return TypedTask(task, ResponseRules(.any), isOwn: true, step: step) }
        return TypedTask(task, ResponseRules(.any), mainStep: { step($0) })
    }

    /// Reads the stored answer to a request at once.
    ///
    /// - Parameter completion: Gets what came of it, once, on the main actor.
    @discardableResult
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<StoredValue<Request.Output>>) -> Void
    ) -> TypedTask<StoredValue<Request.Output>> {
        stored(request, maximumAge: maximumAge, dependency).observeOnMain({ $0 }, { completion(ServiceResponse($0)) }).resume()
    }

    /// Reads the stored answer to a request at once.
    ///
    /// - Parameters:
    ///   - key: Handed to the delegate.
    ///   - onlyData: Whether the delegate hears of nothing but data: neither of errors nor of a read that was cancelled.
    ///   - delegate: Gets the value, on the main actor, if it is still there. Held weakly.
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

    /// Returns when the answers that have come so far are stored, and the deletes that were begun are made. For programs that end themselves: a task has its
    /// answer before that is stored.
    public func finishStoring() async {
        await typed.order.settled(nil)
    }

    /// Removes what is stored of a request, for the account of now. What a request that is under way brings later is stored all the same: cancel it first.
    ///
    /// - Throws: ``WebServiceError/Code/noStorage``, or what the storage throws.
    public func deleteStored(_ request: some StorableRequest) async throws {
        let typed = typed
        guard let storage = typed.storages.first(where: { $0.isFor(request) }) else { throw Self.noStorage(for: request) }
        guard let key = request.storageKey(account: typed.storageAccount) else { return }
        try await remove(key, from: [storage], typed) { try await $0.removeEntry(for: key) }
    }

    /// Empties the storages that are for this kind of data by name; those for any kind are left alone. A storage for several kinds is emptied whole.
    ///
    /// - Throws: What the first storage that failed throws; the others are emptied all the same.
    public func deleteStored(_ classification: DataClassification) async throws {
        try await removeAll { $0.classifications?.contains(classification) == true }
    }

    /// Empties the storages that are for any kind of data.
    ///
    /// - Throws: What the first storage that failed throws; the others are emptied all the same.
    public func deleteStoredInAnyClassification() async throws {
        try await removeAll { $0.classifications == nil }
    }

    /// Empties all storages.
    ///
    /// - Throws: What the first storage that failed throws; the others are emptied all the same.
    public func deleteAllStored() async throws {
        try await removeAll { _ in true }
    }
}

extension WebService {
    private func beginRead<Request: StorableRequest>(
        of request: Request, _ maximumAge: TimeInterval?, _ dependency: StorageReadDependency, _ task: SessionTask,
        _ answer: Answer<StoredValue<Request.Output>>
    ) {
        let id = RequestRegistry.makeID()
        guard dependency.isOver?() != true, registry.beginRead(id, task) else {
            task.complete(Outcome(error: URLError(.cancelled)))
            return
        }
        dependency.observe? { [weak task] in
            if dependency.isOver?() == true { task?.cancel() }
        }
        let work = Task {
            do {
                let (value, data) = try await self.read(request, maximumAge)
                answer.set(.success(value))
                task.complete(Outcome(data: data, source: .storage, attempts: 0))
            } catch {
                task.complete(Outcome(error: error is CancellationError ? URLError(.cancelled) : error))
            }
            self.registry.endRead(id)
        }
        task.attach(.preparation(work))
    }

    private func read<Request: StorableRequest>(
        _ request: Request, _ maximumAge: TimeInterval?
    ) async throws -> (StoredValue<Request.Output>, Data?) {
        let typed = typed
        guard let storage = typed.storages.first(where: { $0.isFor(request) }) else { throw Self.noStorage(for: request) }
        guard let key = request.storageKey(account: typed.storageAccount) else { throw Self.noStoredData("the request names no identifier") }
        let place = StoragePlace(storage: storage, key: key)
        await typed.order.settled(key)
        let entry: StorageEntry
        do {
            guard let found = try await storage.entry(for: key) else { throw Self.noStoredData("nothing is stored") }
            entry = found
        } catch {
            if (error as? WebServiceError)?.code != .noStoredData { typed.report(.read, place, storage, error) }
            throw error
        }
        let age = entry.date.map { date().timeIntervalSince($0) }.flatMap { $0 >= 0 ? $0 : nil }
        if let maximumAge {
            guard let age, age <= maximumAge else { throw Self.noStoredData("what is stored is too old, or nobody knows how old") }
        }
        let value = try await value(of: request, entry.content, typed)
        return (StoredValue(value: value, date: age == nil ? nil : entry.date, age: age), entry.data)
    }

    private func value<Request: StorableRequest>(
        of request: Request, _ content: StorageEntry.Content, _ typed: TypedConfiguration
    ) async throws -> Request.Output {
        switch content {
        case .live(let value):
            guard let value = value as? Request.Output else { throw Self.noStoredData("what is stored is no \(Request.Output.self)") }
            return value
        case .value(let data):
            return try Self.value(of: request, data)
        case .raw(let data):
            return try await processed(request, data, typed)
        case .unlabelled(let data):
            return request is any ValueStorableRequest ? try Self.value(of: request, data) : try await processed(request, data, typed)
        }
    }

    private static func value<Request: StorableRequest>(of request: Request, _ data: Data) throws -> Request.Output {
        do {
            let value = try (request as? any ValueStorableRequest).flatMap { try read($0, data) } as? Request.Output
            if let value { return value }
        } catch {
            throw noStoredData("what is stored can no longer be read", error)
        }
        throw noStoredData("what is stored can no longer be read")
    }

    private static func read<Request: ValueStorableRequest>(_ request: Request, _ data: Data) throws -> (any Sendable)? {
        try request.storedValue(from: data)
    }

    private func processed<Request: ServiceRequest>(_ request: Request, _ data: Data, _ typed: TypedConfiguration) async throws -> Request.Output {
        for endpoint in typed.endpoints {
            switch endpoint.storedData(of: request) {
            case .leaves: continue
            case .hides: throw Self.noStoredData("the endpoint hides what is stored")
            case .processes:
                do {
                    return try Self.output(of: request, try await endpoint.process(data, of: request, isFromStorage: true))
                } catch {
                    throw Self.noStoredData("what is stored can no longer be processed", error)
                }
            }
        }
        throw WebServiceError(.noEndpoint, "no endpoint processes stored data of \(Request.self)")
    }

    /// Stores an answer; what goes wrong is reported.
    func store<Request: ServiceRequest>(
        _ output: Request.Output, _ rawData: (any RawDataSource)?, of request: Request, in place: StoragePlace, _ typed: TypedConfiguration
    ) async {
        do {
            guard let content = try Self.content(output, rawData, of: request) else { return }
            try await place.storage.store(StorageEntry(content, date: date()), for: place.key)
        } catch {
            typed.report(.store, place, place.storage, error)
        }
    }

    /// - Returns: `nil` when nothing is to be kept.
    private static func content<Request: ServiceRequest>(
        _ output: Request.Output, _ rawData: (any RawDataSource)?, of request: Request
    ) throws -> StorageEntry.Content? {
        if let request = request as? any ValueStorableRequest { return try data(output, of: request).map { .value($0) } }
        if request is any RawStorableRequest { return rawData?.rawData.map { .raw($0) } }
        return .live(output)
    }

    private static func data<Request: ValueStorableRequest>(_ output: any Sendable, of request: Request) throws -> Data? {
        try (output as? Request.Output).flatMap { try request.storageData(for: $0) }
    }

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
        await typed.order.change(key) {
            for storage in storages.reversed() {
                do { try await body(storage) } catch {
                    typed.report(.remove, key.map { StoragePlace(storage: storage, key: $0) }, storage, error)
                    failure.set(.failure(error))
                }
            }
        }.value
        try failure.value
    }

    private static func noStorage(for request: any ServiceRequest) -> WebServiceError {
        WebServiceError(.noStorage, "no storage keeps answers to \(type(of: request))")
    }

    private static func noStoredData(_ message: String, _ underlying: (any Error)? = nil) -> WebServiceError {
        WebServiceError(.noStoredData, message, underlying: underlying)
    }
}
