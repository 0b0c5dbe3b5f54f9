public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A ``SessionTask`` with a result of a known type.
///
/// A typed task and its ``task`` share one exchange and one chain of handlers.
///
/// ```swift
/// let brewers = try await service.GET("/brewers").decode([Brewer].self).value
/// service.GET("/brewers").decode([Brewer].self)
///     .map(\.count)
///     .updateUI { count in show(count) }
///     .updateErrorUI { error in show(error) }
///     .resume()
/// ```
/// - `decode`, `data`, `string`, `json` and `empty` of a ``SessionTask`` create a typed task.
///   `map`, `mapAsync`, `flatMap`, `recover` and `validate` continue it. `onSuccess`, `onError`,
///   `onCompletion`, `updateUI` and `updateErrorUI` add observers, in any number, even after the
///   task has a result.
/// - The status must be 200 to 299 unless `validate` specifies otherwise. Any other status fails
///   with ``WebServiceError/Code/unacceptableStatus``, or with the error of an ``ErrorMapper``.
/// - Steps and observers run in the order in which they were added, one at a time, in the
///   background or on the main actor as documented.
/// - ``value``, ``result`` and ``response`` resume the task. Cancelling the Swift task that awaits
///   them cancels the exchange.
///
/// All members may be used from any thread.
public final class TypedTask<Value: Sendable>: Sendable {
    /// The exchange that the task wraps, with its request, handlers and timeline.
    public let task: SessionTask

    /// The first step, whose rules the response must meet, if this task continues another one.
    private weak let root: (any RuledStep)?
    private let continues: Bool
    /// The value delivered before the result; `nil` for tasks without one.
    package let early: EarlyValue<Value>?
    private let outcome: TypedResult<Value>
    /// The object that retains the service of a typed request, because the program might not retain
    /// the service.
    ///
    /// The value is `nil` for other tasks, which use only the core of the service
    /// (``SessionTask``).
    private let owner: TaskOwner?

    /// - Parameters:
    ///   - outcome: The step, which runs no custom closure. It runs once, after the exchange has
    ///     ended and all earlier handlers have run.
    ///   - early: The value delivered before the result.
    init(
        _ task: SessionTask, _ outcome: TypedResult<Value>, owner: TaskOwner? = nil, early: EarlyValue<Value>? = nil
    ) {
        self.task = task
        self.outcome = outcome
        root = nil
        continues = false
        self.early = early
        self.owner = owner
        task.add(.ownStep(outcome))
    }

    /// - Parameters:
    ///   - statuses: The statuses that do not count as errors.
    ///   - root: The first step of the typed tasks that this one continues.
    ///   - continues: Whether this task continues another one.
    ///   - isOwn: Whether the step runs no custom closure.
    ///   - step: A closure that returns the result. Its second argument applies the rules for the
    ///     response.
    package init(
        _ task: SessionTask, accepting statuses: ResponseRules.Statuses = .success, root: (any RuledStep)? = nil,
        continues: Bool = false, owner: TaskOwner? = nil, isOwn: Bool = false,
        step: @escaping @Sendable (StepInput, TypedResult<Value>) -> Result<Value, any Error>
    ) {
        let outcome = TypedResult<Value>(accepting: statuses, owner: owner)
        self.task = task
        self.outcome = outcome
        self.root = root
        self.continues = continues
        early = nil
        self.owner = owner
        let settle: @Sendable (StepInput) -> (any Error)? = { input in
            outcome.releaseOwner()
            return outcome.set(step(input, outcome), input)
        }
        task.add(.step(settle, isOwn: isOwn))
    }

    /// Creates a task whose result a producer provides.
    ///
    /// - Parameters:
    ///   - provided: The result, which the producer sets before it completes the task.
    ///   - type: The type of a typed request.
    ///   - producer: See ``SessionTask/init(_:type:isListed:producer:)``.
    package convenience init(
        _ service: ServiceCore, providing provided: TypedResult<Value>, type: (any Sendable.Type)? = nil,
        owner: TaskOwner? = nil, early: EarlyValue<Value>? = nil, isListed: Bool = true,
        producer: @escaping @Sendable (SessionTask) -> Void
    ) {
        let task = SessionTask(service, type: type, isListed: isListed, producer: producer)
        if let early { _ = task.call.withLock { $0.attach(early) } }  // the task has not been resumed
        self.init(
            task, TypedResult(.provided(provided), accepting: .any, owner: owner), owner: owner, early: early)
    }

    /// - Parameter asyncStep: A closure that returns the result. Later handlers wait until the
    ///   closure returns.
    private init(
        _ task: SessionTask, root: (any RuledStep)?, owner: TaskOwner?,
        asyncStep: @escaping @Sendable (StepInput) async -> Result<Value, any Error>
    ) {
        let outcome = TypedResult<Value>()
        self.task = task
        self.outcome = outcome
        self.root = root
        continues = true
        early = nil
        self.owner = owner
        // The step runs in a Swift task that is started elsewhere and does not inherit the
        // task-local value that marks work as part of a refresh.
        let refreshing = Refresh.current
        task.add(
            .asyncStep { input in
                outcome.set(await Refresh.$current.withValue(refreshing) { await asyncStep(input) }, input)
            })
    }

    /// - Parameters:
    ///   - statuses: The statuses that do not count as errors.
    ///   - mainStep: A closure that returns the result on the main actor. Its second argument
    ///     applies the rules for the response. Later handlers wait until the closure returns.
    package init(
        _ task: SessionTask, accepting statuses: ResponseRules.Statuses, owner: TaskOwner? = nil,
        mainStep: @escaping @MainActor @Sendable (StepInput, TypedResult<Value>) -> Result<Value, any Error>
    ) {
        let outcome = TypedResult<Value>(accepting: statuses, owner: owner)
        self.task = task
        self.outcome = outcome
        root = nil
        continues = false
        early = nil
        self.owner = owner
        let settle: @MainActor @Sendable (StepInput) -> (any Error)? = { input in
            outcome.releaseOwner()
            return outcome.set(mainStep(input, outcome), input)
        }
        task.add(.mainStep(.init(applies: { true }, isUI: false, body: settle)))
    }

    /// Resumes the task; see ``SessionTask/resume()``.
    @discardableResult
    public func resume() -> Self {
        task.resume()
        return self
    }

    /// Cancels the exchange; see ``SessionTask/cancel()``.
    ///
    /// A `mapAsync` or `flatMap` in progress is cancelled as well. The result is
    /// `URLError.cancelled` unless there already is one.
    public func cancel() {
        task.cancel()
    }

    /// The value of the task. Accessing it resumes the task, and cancelling the awaiting Swift task
    /// cancels the exchange.
    ///
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for errors of this library,
    ///   and errors of custom code, such as steps and interceptors.
    public var value: Value {
        get async throws {
            await task.finished()
            return try outcome.value
        }
    }

    /// The result of the task. Accessing this property resumes and awaits the task as ``value``
    /// does, but does not throw.
    public var result: Result<Value, any Error> {
        get async {
            await task.finished()
            return outcome.result
        }
    }

    /// The response, with any status.
    ///
    /// Accessing this property resumes the task, and cancelling the awaiting Swift task cancels the
    /// exchange.
    ///
    /// - Throws: The error of the exchange if there is no complete response.
    public var response: Response {
        get async throws {
            await task.finished()
            return try task.receivedResponse()
        }
    }

    /// Changes the rules that the response must meet. A call after the response has arrived may
    /// have no effect.
    func changeRules(_ change: (inout ResponseRules.Rules) -> Void) { firstStep?.changeRules(change) }

    /// The first step; `nil` after it has run and was released.
    private var firstStep: (any RuledStep)? { continues ? root : outcome }

    /// The result; `nil` until this step has run.
    package var settled: Result<Value, any Error>? { outcome.settled }

    /// Adds an observer after all handlers added so far.
    package func observe(_ observer: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Self {
        let step: @Sendable (StepInput) -> (any Error)? = { [outcome] _ in
            observer(outcome.result)
            return nil
        }
        task.add(.step(step, isOwn: false))
        return self
    }

    /// Adds an observer of some results on the main actor, after all handlers added so far.
    package func observeOnMain<Part: Sendable>(
        _ part: @escaping @Sendable (Result<Value, any Error>) -> Part?,
        _ observer: @escaping @MainActor @Sendable (Part) -> Void
    ) -> Self {
        let applies: @Sendable () -> Bool = { [outcome] in part(outcome.result) != nil }
        let step = Handler.MainStep(applies: applies, isUI: true) { [outcome] _ in
            if let part = part(outcome.result) { observer(part) }
            return nil
        }
        task.add(.mainStep(step))
        return self
    }

    /// Returns a task with another step.
    func then<Next: Sendable>(
        _ step: @escaping @Sendable (Result<Value, any Error>) -> Result<Next, any Error>
    ) -> TypedTask<Next> {
        following { [outcome] _ in step(outcome.result) }
    }

    /// Transforms the value and the response in the background. The response of a value that
    /// replaced an error has no header fields.
    package func mapWithResponse<Next: Sendable>(
        _ transform: @escaping @Sendable (Value, Response) throws -> Next
    ) -> TypedTask<Next> {
        following { [outcome] input in
            outcome.result.flatMap { value in
                let response = try? input.result.get()  // the error was replaced by the value
                return Result {
                    try transform(value, response ?? Response(body: nil, source: .endpoint, attempts: 0))
                }
            }
        }
    }

    private func following<Next: Sendable>(
        _ step: @escaping @Sendable (StepInput) -> Result<Next, any Error>
    ) -> TypedTask<Next> {
        TypedTask<Next>(task, root: firstStep, continues: true, owner: owner, step: { input, _ in step(input) })
    }

    /// Adds an observer on an executor, after all handlers added so far.
    func observe(
        on executor: any TaskExecutor, _ observer: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) -> Self {
        task.add(
            .asyncStep { [outcome] _ in
                await withTaskExecutorPreference(executor) { observer(outcome.result) }
                return nil
            })
        return self
    }

    /// Returns a task with another asynchronous step.
    func thenAsync<Next: Sendable>(
        _ step: @escaping @Sendable (Result<Value, any Error>) async -> Result<Next, any Error>
    ) -> TypedTask<Next> {
        TypedTask<Next>(task, root: firstStep, owner: owner, asyncStep: { [outcome] _ in await step(outcome.result) })
    }
}

/// The input of a step of a typed task.
package struct StepInput: Sendable {
    let result: Result<Response, any Error>
    fileprivate let task: SessionTask
    /// The error of the exchange or of an earlier untyped handler; `nil` if there is none.
    package let failure: (any Error)?

    init(_ result: Result<Response, any Error>, of task: SessionTask, failure: (any Error)?) {
        self.result = result
        self.task = task
        self.failure = failure
    }

    /// The request, which is computed on access because most steps do not use it.
    var request: Request { task.request }

    /// Returns the error with the request of the exchange.
    func locating(_ error: any Error) -> any Error { task.locating(error) }

    func mappedError(for response: Response) -> (any Error)? { task.mappedError(for: response) }
}

extension SessionTask {
    /// Returns the error that the error mappers of the request and the service create for an
    /// unacceptable response.
    func mappedError(for response: Response) -> (any Error)? {
        let decoder = service.decoder
        return request.options.errorMapper?.error(for: response, decoder: decoder)
            ?? service.errorMapper?.error(for: response, decoder: decoder)
    }
}

/// An object that retains the service of a typed request until the request completes.
///
/// All typed tasks of the request share this object, and steps refer to it weakly. When all these
/// tasks are deallocated, the service is released. Deallocating a service ends its typed requests
/// in flight.
package final class TaskOwner: Sendable {
    private let object: Mutex<(any AnyObject & Sendable)?>

    package init(_ object: any AnyObject & Sendable) {
        self.object = Mutex(object)
    }

    func release() {
        let released = object.withLock { $0.take() }
        withExtendedLifetime(released) {}
    }
}

extension TypedTask {
    /// Changes the request with a closure; see ``SessionTask/configure(_:)``.
    @discardableResult
    public func configure(_ change: (inout Request) -> Void) -> Self {
        task.configure(change)
        return self
    }

    /// The request with the changes of all setters, before the interceptors change it.
    public var request: Request { task.request }

    /// The events so far; see ``SessionTask/timeline``.
    public var timeline: Timeline { task.timeline }

    /// The metrics so far; see ``SessionTask/metrics``.
    public var metrics: ServiceTaskMetrics { task.metrics }

    /// The state, the metrics, the progress and the request at one instant; see
    /// ``SessionTask/status``.
    public var status: SessionTask.Status { task.status }
}

extension SessionTask {
    /// Returns a typed task that decodes the body.
    ///
    /// An empty body decodes to `nil` for an optional type and fails with
    /// ``WebServiceError/Code/emptyResponse`` for any other type.
    ///
    /// If the body cannot be decoded, the task fails with ``WebServiceError/Code/decoding``. The
    /// message of the error usually contains the coding path, the underlying error is that of the
    /// decoder, and ``WebServiceError/body`` contains the body. For a type whose conformance to
    /// `Decodable` is isolated to the main actor, see ``decode(onMain:)``.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - decoder: The decoder. Defaults to `nil`: the current ``WebService/decoder``.
    public func decode<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: (any BodyDecoder)? = nil
    ) -> TypedTask<Value> {
        let decoder = decoder ?? service.decoder
        return typed { try $0.decoded(type, decoder) }
    }

    /// Returns a typed task that decodes the response with a closure on the main actor.
    ///
    /// Use this method for types that are isolated to the main actor. An error thrown by the
    /// closure becomes the error of the task.
    public func decode<Value: Sendable>(
        onMain decode: @escaping @MainActor @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, accepting: .success, mainStep: { input, step in Result { try decode(try step.accept(input)) } })
    }

    /// Returns a typed task that decodes the response with a closure in the background.
    ///
    /// An error thrown by the closure becomes the error of the task.
    public func decode<Value: Sendable>(
        with decode: @escaping @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, step: { input, step in Result { try decode(try step.accept(input)) } })
    }

    /// Returns a typed task with the bytes of the body, empty if there is none.
    public func data() -> TypedTask<Data> {
        typed { $0.data }
    }

    /// Returns a typed task with the body as a string.
    ///
    /// The charset is that of `Content-Type`, or UTF-8 if that field names none. A byte order mark
    /// is removed. If the charset is unsupported or the bytes are invalid in it, the task fails
    /// with ``WebServiceError/Code/decoding``. The charsets of the Encoding Standard (WHATWG) are
    /// supported, except IBM866, macintosh, x-mac-cyrillic and x-user-defined.
    public func string() -> TypedTask<String> {
        typed { try $0.text() }
    }

    /// Returns a typed task with the body as JSON of any shape.
    ///
    /// The value for status 204 without content (RFC 9110, section 15.3.5) is an empty object. If
    /// members of an object have the same name, the first one counts, as in `decode`.
    public func json() -> TypedTask<JSONValue> {
        typed {
            $0.status == 204 && $0.data.isEmpty ? .object([:]) : try $0.json()
        }
    }

    /// Returns a typed task without a value. The body is ignored.
    public func empty() -> TypedTask<Void> {
        typed { _ in }
    }

    /// Returns a typed task with a step that runs no custom closure.
    ///
    /// - Parameter statuses: The statuses that do not count as errors. Defaults to those from 200
    ///   to 299.
    func typed<Value: Sendable>(
        accepting statuses: ResponseRules.Statuses = .success, _ make: @escaping @Sendable (Response) throws -> Value
    ) -> TypedTask<Value> {
        TypedTask(self, TypedResult(.response(make), accepting: statuses))
    }
}
