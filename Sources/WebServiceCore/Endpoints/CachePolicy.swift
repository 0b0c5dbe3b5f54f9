public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Whether a typed request that is stored asks its storage, the server, or both.
///
/// Every policy ends once: with a value or with an error.
public enum CachePolicy: Sendable, Hashable {
    /// The server only. What it answers is stored.
    case serverOnly
    /// The storage only; nothing is sent. Nothing there is ``WebServiceError/Code/noStoredData``.
    case cacheOnly
    /// Both at once. What is stored comes ahead (``TypedTask/onCacheSuccess(_:)``), unless the server is quicker; the task ends with what the server says, be it
    /// an error.
    case cacheThenServer
    /// The server; where that fails in any way (no connection, a status that is no success, an answer that cannot be decoded), what is stored. The task ends
    /// with the server's error when nothing is. One that is cancelled reads nothing.
    case serverElseCache
}

extension WebService {
    /// Makes a task for a typed request that may be answered from its storage. Like every task it does nothing before it is resumed; awaiting it resumes it.
    ///
    /// Who gave a value and how old it is tells ``TypedTask/response`` of the task, and ``TypedTask/values`` for every value.
    ///
    /// - Parameters:
    ///   - request: What is asked for.
    ///   - cachePolicy: Who is asked.
    ///   - maximumAge: How old a stored value may be, in seconds; `nil` for any age.
    ///   - key: See ``perform(_:key:duplicates:)``.
    ///   - duplicates: See ``perform(_:key:duplicates:)``.
    public func perform<Request: StorableRequest>(
        _ request: Request, cachePolicy: CachePolicy, maximumAge: TimeInterval? = nil, key: (any Hashable & Sendable)? = nil,
        duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        if cachePolicy == .cacheOnly { return stored(request, maximumAge: maximumAge).map(\.value) }
        let core = core
        let answer = Answer<Request.Output>()
        let early = cachePolicy == .cacheThenServer ? EarlyValue<Request.Output>() : nil
        let task = SessionTask(core) { task in
            let typed = core.configuration.typed
            if let early { core.readAhead(request, maximumAge, typed, early) }
            let otherwise: @Sendable (RequestRegistry.Delivery) -> Void = { delivery in
                let id = RequestRegistry.makeID()
                core.registry.beginRead(id, task)
                let work = Task {
                    await core.readInstead(of: delivery, request, maximumAge, typed, task, answer)
                    core.registry.endRead(id)
                }
                task.attach(.preparation(work))
            }
            core.begin(
                request, typed, key.map(RequestKey.init), duplicates, task, answer, otherwise: cachePolicy == .serverElseCache ? otherwise : nil
            )
        }
        task.shared.withLock { $0.attach(early) }
        let rules = ResponseRules(.any)
        return TypedTask(task, rules, isOwn: true, owner: TaskOwner(self), early: early) { input in
            Result {
                _ = try rules.accept(input)
                return try answer.value
            }
        }
    }

}

extension ServiceCore {
    /// Reads while the server is asked. Where nothing is stored, nothing happens.
    fileprivate func readAhead<Request: StorableRequest>(
        _ request: Request, _ maximumAge: TimeInterval?, _ typed: TypedConfiguration, _ early: EarlyValue<Request.Output>
    ) {
        Task {
            guard let (stored, _) = try? await read(request, maximumAge, typed) else { return }  // failures of storages are reported by then
            early.announce(LabelledValue(value: stored.value, source: .storage, age: stored.age))
        }
    }

    /// Reads where the server has failed; its error stays where nothing is stored.
    fileprivate func readInstead<Request: StorableRequest>(
        of delivery: RequestRegistry.Delivery, _ request: Request, _ maximumAge: TimeInterval?, _ typed: TypedConfiguration, _ task: SessionTask,
        _ answer: Answer<Request.Output>
    ) async {
        guard let (stored, data) = try? await read(request, maximumAge, typed) else {  // as above, and the server's error says more
            _ = answer.take(delivery, task, isJoined: false)
            return
        }
        answer.set(.success(stored.value))
        if let exchange = delivery.exchange { task.takeOver(exchange) }
        task.complete(.success(Response(data: data, source: .storage, attempts: 0, age: stored.age)))
    }
}

extension TypedTask {
    /// Calls the closure with the value that was stored, ahead of the result, in the background: at most once, and never after the end, because there is a newer
    /// value then. What was added for the result waits for it. Only tasks of ``CachePolicy/cacheThenServer`` have such a value, not those that `map` makes of them.
    @discardableResult
    public func onCacheSuccess(_ observer: @escaping @Sendable (_ value: LabelledValue<Value>) -> Void) -> Self {
        early?.add { observer($0) }
        return self
    }

    /// The same on the main actor.
    @discardableResult
    public func updateCacheUI(_ observer: @escaping @MainActor @Sendable (_ value: LabelledValue<Value>) -> Void) -> Self {
        early?.add { await observer($0) }
        return self
    }

    /// The values as they come: the stored one ahead, where there is one, and the result. Ends behind it, or throws its error. Resumes the task if nobody did; a
    /// reader that stops cancels it.
    public var values: AsyncThrowingStream<LabelledValue<Value>, any Error> {
        AsyncThrowingStream { continuation in
            early?.add { continuation.yield($0) }
            onCompletion { [task] result in
                switch result {
                case .failure(let error): continuation.finish(throwing: error)
                case .success(let value):
                    let response = try? task.response()  // a task without an answer has no age
                    continuation.yield(LabelledValue(value: value, source: response?.source ?? .endpoint, age: response?.age))
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
