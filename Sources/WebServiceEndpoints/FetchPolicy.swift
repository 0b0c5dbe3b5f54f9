import Foundation
public import WebServiceCore
public import WebServiceStorage

/// The sources of the value of a storable typed request: its storage, the server, or both.
///
/// With every policy, the task ends exactly once, with a value or with an error.
public enum FetchPolicy: Sendable, Hashable {
    /// Sends the request without reading the storage. A successful response is stored.
    case serverOnly
    /// Reads the storage without sending a request.
    ///
    /// The task fails with `WebServiceError.Code.noStoredData` if nothing is stored.
    case cacheOnly
    /// Reads the storage and sends the request at the same time.
    ///
    /// The stored value is delivered first (`TypedTask.onCacheSuccess(_:)`), unless the server
    /// responds earlier. The task ends with the server's result, even if this is an error.
    case cacheThenServer
    /// Sends the request, and reads the storage if the request fails.
    ///
    /// A request fails, for example, if there is no connection, if the status is unsuccessful, or
    /// if the response cannot be decoded. If nothing is stored, the task fails with the error of
    /// the request. A task that is cancelled or rejected as a duplicate does not read the storage.
    case serverElseCache
}

extension WebService {
    /// Creates a task for a typed request whose value can come from a storage.
    ///
    /// The task starts when it is resumed or awaited. `TypedTask.response` reports the source and
    /// the age of the result. `TypedTask.values` reports the source and the age of every value.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - fetchPolicy: The sources of the value.
    ///   - maximumAge: The maximum age of a stored value. Defaults to `nil`, which allows any age.
    ///   - key: See `perform(_:key:duplicates:)`.
    ///   - duplicates: See `perform(_:key:duplicates:)`.
    ///   - configure: See `perform(_:key:duplicates:)`. Has no effect on a stored value.
    public func perform<Request: StorableRequest>(
        _ request: Request, fetchPolicy: FetchPolicy, maximumAge: Duration? = nil,
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        configuring configure: (@Sendable (_ request: inout WebServiceCore.Request) -> Void)? = nil
    ) -> TypedTask<Request.Output> {
        if fetchPolicy == .cacheOnly { return stored(request, maximumAge: maximumAge).map(\.value) }
        let core = core
        let outcome = TypedResult<Request.Output>()
        let early = fetchPolicy == .cacheThenServer ? EarlyValue<Request.Output>(core.clock) : nil
        return TypedTask(core, providing: outcome, type: Request.self, owner: TaskOwner(self), early: early) { task in
            let typed = core.typed.configuration
            let id = core.observe(task, Request.self)
            if let early { core.readAhead(request, maximumAge: maximumAge, typed, early: early, task) }
            core.begin(
                request, id: id, typed, key: key.map(RequestKey.init), duplicates: duplicates,
                configure: configure, task: task
            ) { delivery in
                guard fetchPolicy == .serverElseCache, ServiceResponse(delivery.result).error != nil else {
                    return outcome.take(delivery, task, isJoined: delivery.id != id)
                }
                let id = EventQueue.makeID()
                typed.registry.beginRead(id, task)
                let work = Task(executorPreference: core.clock.executor) {
                    await core.readInstead(
                        of: delivery, request, maximumAge: maximumAge, typed, task: task, outcome: outcome)
                    typed.registry.endRead(id)
                }
                task.attach(work)
                return false
            }
        }
    }
}

extension ServiceCore {
    /// Reads the storage while the request is in flight. Has no effect if nothing is stored.
    fileprivate func readAhead<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration?, _ typed: TypedConfiguration,
        early: EarlyValue<Request.Output>, _ task: SessionTask
    ) {
        Task(executorPreference: clock.executor) { [self] in
            // An error has already been reported.
            guard
                let (stored, _) = try? await read(request, maximumAge: maximumAge, typed, task)  // see above
            else { return }
            early.announce(stored)
        }
    }

    /// Reads the storage after the request has failed. If nothing is stored, the error of the
    /// request remains the result.
    fileprivate func readInstead<Request: StorableRequest>(
        of delivery: RequestRegistry.Delivery, _ request: Request, maximumAge: Duration?,
        _ typed: TypedConfiguration, task: SessionTask, outcome: TypedResult<Request.Output>
    ) async {
        // If the read fails, the error of the request remains the result.
        guard
            let (stored, data) = try? await read(request, maximumAge: maximumAge, typed, task)  // see above
        else {
            _ = outcome.take(delivery, task, isJoined: false)
            return
        }
        outcome.set(.success(stored.value))
        if let exchange = delivery.exchange { task.takeOver(exchange.log) }
        task.complete(.success(Response(body: data, source: .storage, attempts: 0, age: stored.age)))
    }
}

extension TypedTask {
    /// Adds an observer of the stored value.
    ///
    /// The observer is called in the background, before the result is delivered. It is called at
    /// most once, and never after the task has ended, because a newer value is then available.
    /// Handlers of the result run after the observer has returned. Only tasks with
    /// ``FetchPolicy/cacheThenServer`` call the observer. Tasks that `map` creates from them do
    /// not.
    @discardableResult
    public func onCacheSuccess(_ observer: @escaping @Sendable (_ value: SourcedValue<Value>) -> Void) -> Self {
        early?.add { observer($0) }
        return self
    }

    /// Adds an observer of the stored value on the main actor; see ``onCacheSuccess(_:)``.
    @discardableResult
    public func updateCacheUI(
        _ observer: @escaping @MainActor @Sendable (_ value: SourcedValue<Value>) -> Void
    ) -> Self {
        early?.add { await observer($0) }
        return self
    }

    /// The values of the task: the stored value, if there is one, and then the result.
    ///
    /// Accessing this property resumes the task. The sequence throws the error of the task.
    /// Cancelling the Swift task that iterates over the sequence cancels the request, as does
    /// leaving the loop.
    public var values: AsyncThrowingStream<SourcedValue<Value>, any Error> {
        AsyncThrowingStream { continuation in
            early?.add { continuation.yield($0) }
            onCompletion { [task] result in
                switch result {
                case .failure(let error): continuation.finish(throwing: error)
                case .success(let value):
                    let response = try? task.receivedResponse()  // if there is no response, there is no age
                    let age = response?.age
                    continuation.yield(
                        SourcedValue(
                            value, source: response?.source ?? .endpoint, age: age,
                            date: age.map { task.clock.date.addingTimeInterval(-$0.inSeconds) }))
                    continuation.finish()
                }
            }
            continuation.onTermination = { [task] end in
                if case .cancelled = end { task.cancel() }
            }
            resume()
        }
    }
}
