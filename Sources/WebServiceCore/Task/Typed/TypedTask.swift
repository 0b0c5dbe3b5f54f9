import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The typed face of a ``SessionTask``: the same exchange and the same chain of handlers, with a value of a known type at the end.
///
/// ```swift
/// let brewers = try await service.GET("/brewers").decode([Brewer].self).value
/// service.GET("/brewers").decode([Brewer].self).map(\.count).updateUI { count in show(count) }.updateErrorUI { error in show(error) }.resume()
/// ```
/// - `decode`, `data`, `string`, `json` and `empty` of a ``SessionTask`` begin one; `map`, `mapAsync`, `flatMap`, `recover` and `validate` go on;
///   `onSuccess`, `onError`, `onCompletion`, `updateUI` and `updateErrorUI` observe, any number of times, also when the value is there already.
/// - The status has to be from 200 to 299 unless `validate` says otherwise.
/// - Steps and observers run in the order in which they were added, one at a time, in the background or on the main actor as each says.
/// - ``value``, ``result`` and ``response`` resume the task if nobody did. Cancelling the Swift task that awaits them cancels the exchange.
///
/// All members may be used from any thread.
public final class TypedTask<Value: Sendable>: Sendable {
    /// The exchange.
    public let task: SessionTask

    let rules: ResponseRules
    /// A value ahead of the result; `nil` where there cannot be one.
    let early: EarlyValue<Value>?
    private let box = ResultBox<Value>()
    /// The service of a typed request, until the task completes; `nil` for other tasks.
    private let owner: TaskOwner?

    /// - Parameters:
    ///   - isOwn: Whether no closure of the user's runs in the step.
    ///   - early: A value ahead of the result.
    ///   - step: Makes the result; runs once, when the exchange has ended and everything added before has run.
    init(
        _ task: SessionTask, _ rules: ResponseRules, isOwn: Bool = false, owner: TaskOwner? = nil, early: EarlyValue<Value>? = nil,
        step: @escaping @Sendable (StepInput) -> Result<Value, any Error>
    ) {
        self.task = task
        self.rules = rules
        self.early = early
        self.owner = owner
        let settle: @Sendable (StepInput) -> (any Error)? = { [box, weak owner] input in
            owner?.release()
            return box.set(step(input), input)
        }
        task.add(.step(settle, isOwn: isOwn))
    }

    /// - Parameter step: Makes the result; the handlers that follow wait for it.
    init(
        _ task: SessionTask, _ rules: ResponseRules, owner: TaskOwner? = nil,
        asyncStep: @escaping @Sendable (StepInput) async -> Result<Value, any Error>
    ) {
        self.task = task
        self.rules = rules
        early = nil
        self.owner = owner
        // The step runs in a Swift task that is begun elsewhere, and has to know all the same when it belongs to a refresh.
        let refreshing = Authentication.refreshing
        task.add(
            .asyncStep { [box] input in
                box.set(await Authentication.$refreshing.withValue(refreshing) { await asyncStep(input) }, input)
            })
    }

    /// - Parameter step: Makes the result on the main actor; the handlers that follow wait for it.
    init(
        _ task: SessionTask, _ rules: ResponseRules, owner: TaskOwner? = nil,
        mainStep: @escaping @MainActor @Sendable (StepInput) -> Result<Value, any Error>
    ) {
        self.task = task
        self.rules = rules
        early = nil
        self.owner = owner
        let settle: @MainActor @Sendable (StepInput) -> (any Error)? = { [box, weak owner] input in
            owner?.release()
            return box.set(mainStep(input), input)
        }
        task.add(.mainStep(.init(applies: { true }, isUI: false, body: settle)))
    }

    /// Sends the request, if nobody did; harmless otherwise.
    @discardableResult
    public func resume() -> Self {
        task.resume()
        return self
    }

    /// Asks the exchange to stop; see ``SessionTask/cancel()``. A `mapAsync` or `flatMap` under way is cancelled as well. The result is
    /// `URLError.cancelled` unless there was one already.
    public func cancel() {
        task.cancel()
    }

    /// The value, once it is there. Resumes the task if nobody did; cancelling the awaiting Swift task cancels the exchange.
    ///
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for what the framework found, and what steps threw.
    public var value: Value {
        get async throws { try await result.get() }
    }

    /// The result, once it is there; like ``value``, without throwing.
    public var result: Result<Value, any Error> {
        get async {
            await task.finished()
            return box.result
        }
    }

    /// The answer, whatever its status, once it is there. Resumes the task if nobody did; cancelling the awaiting Swift task cancels the exchange.
    ///
    /// - Throws: The error of the exchange when there was no answer.
    public var response: Response {
        get async throws {
            await task.finished()
            return try task.response()
        }
    }

    /// The result, if this step has run.
    var settled: Result<Value, any Error>? { box.settled }

    /// Adds an observer behind everything that was added so far.
    func observe(_ observer: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Self {
        let step: @Sendable (StepInput) -> (any Error)? = { [box] _ in
            observer(box.result)
            return nil
        }
        task.add(.step(step, isOwn: false))
        return self
    }

    /// Adds an observer of some results on the main actor behind everything that was added so far.
    func observeOnMain<Part: Sendable>(
        _ part: @escaping @Sendable (Result<Value, any Error>) -> Part?, _ observer: @escaping @MainActor @Sendable (Part) -> Void
    ) -> Self {
        let applies: @Sendable () -> Bool = { [box] in part(box.result) != nil }
        let step = Handler.MainStep(applies: applies, isUI: true) { [box] _ in
            if let part = part(box.result) { observer(part) }
            return nil
        }
        task.add(.mainStep(step))
        return self
    }

    /// The step that follows this one.
    func then<Next: Sendable>(_ step: @escaping @Sendable (Result<Value, any Error>) -> Result<Next, any Error>) -> TypedTask<Next> {
        TypedTask<Next>(task, rules, owner: owner, step: { [box] _ in step(box.result) })
    }

    /// The step that follows this one, which may take its time.
    func thenAsync<Next: Sendable>(
        _ step: @escaping @Sendable (Result<Value, any Error>) async -> Result<Next, any Error>
    ) -> TypedTask<Next> {
        TypedTask<Next>(task, rules, owner: owner, asyncStep: { [box] _ in await step(box.result) })
    }
}

/// What a step of a typed task begins with.
struct StepInput: Sendable {
    let result: Result<Response, any Error>
    fileprivate let task: SessionTask
    /// Why there is nothing to work with: the error of the exchange, or of an untyped handler before.
    let failure: (any Error)?

    init(_ result: Result<Response, any Error>, of task: SessionTask, failure: (any Error)?) {
        self.result = result
        self.task = task
        self.failure = failure
    }

    /// Copied when it is asked for: most steps do not.
    var request: Request { task.request }

    /// What the error mappers of request and service make of an answer that is a failure.
    func mappedError(for response: Response) -> (any Error)? {
        request.errorMapper?.error(for: response) ?? task.service.errorMapper?.error(for: response)
    }
}

/// Holds an object until a task completes, or until nothing holds the task.
final class TaskOwner: Sendable {
    private let object: Mutex<(any AnyObject & Sendable)?>

    init(_ object: any AnyObject & Sendable) {
        self.object = Mutex(object)
    }

    func release() {
        let released = object.withLock { $0.take() }
        withExtendedLifetime(released) {}
    }
}

/// The result of one step, set once by the step and read by everything behind it.
private final class ResultBox<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, any Error>?>(nil)

    /// - Returns: The error, where it arose in this step.
    func set(_ result: Result<Value, any Error>, _ input: StepInput) -> (any Error)? {
        state.withLock { $0 = result }
        guard input.failure == nil, case .failure(let error) = result else { return nil }
        return error
    }

    var settled: Result<Value, any Error>? { state.withLock { $0 } }

    /// Readers stand behind the step in the chain, so it has run; that it has not is no state that can be reached.
    var result: Result<Value, any Error> {
        state.withLock { $0 } ?? .failure(URLError(.unknown))
    }
}
