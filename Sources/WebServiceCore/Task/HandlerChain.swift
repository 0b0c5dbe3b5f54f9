import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A closure that receives the metrics and the response of a task.
typealias MetricsHandler = @Sendable (ServiceTaskMetrics, URLResponse?) -> Void

/// One handler of a task. A handler of an `observe` case returns no result
/// (``Track/afterObserving``). An error that it throws becomes the failure of the chain.
enum Handler: Sendable {
    case response(@Sendable (Data?, URLResponse?) throws -> ServiceTaskResult)
    case observeResponse(@Sendable (Data?, URLResponse?) throws -> Void)
    case responseJSON(@Sendable (Any, URLResponse?) throws -> ServiceTaskResult)
    case observeJSON(@Sendable (Any, URLResponse?) throws -> Void)
    case transform(@Sendable (Any?) throws -> ServiceTaskResult)
    case observeValue(@Sendable (Any?) throws -> Void)
    case recover(@Sendable (any Error) throws -> ServiceTaskResult)
    case responseError(@Sendable (any Error) -> Void)
    case updateUI(@MainActor @Sendable (Any?) -> Void)
    case updateErrorUI(@MainActor @Sendable (any Error) -> Void)
    /// Steps of typed tasks. They receive the result on both tracks and do not change the chain.
    /// The error that they return is reported to the delegate.
    case ownStep(any OwnStep)
    case step(@Sendable (StepInput) -> (any Error)?, isOwn: Bool)
    case asyncStep(@Sendable (StepInput) async -> (any Error)?)
    /// Continues a Swift task that waits until all earlier handlers have run.
    case wake(CheckedContinuation<Void, Never>)
    indirect case mainStep(MainStep)  // boxed to keep the other cases small

    /// A step on the main actor.
    struct MainStep: Sendable {
        /// A closure that returns whether the step has an effect. If it does not, the main actor is
        /// not entered.
        let applies: @Sendable () -> Bool
        /// Whether the step is a UI handler, for which the delegate is notified.
        let isUI: Bool
        let body: @MainActor @Sendable (StepInput) -> (any Error)?
    }

    /// Whether the step runs no custom closure, except those of `validate`, decoders and error
    /// mappers.
    var isOwnStep: Bool {
        switch self {
        case .ownStep, .step(_, isOwn: true), .wake: true
        default: false
        }
    }

    /// The name of the handler in the timeline.
    var name: String {
        switch self {
        case .response, .observeResponse: "response"
        case .responseJSON, .observeJSON: "responseJSON"
        case .transform, .observeValue: "transform"
        case .recover: "recover"
        case .responseError: "responseError"
        case .updateUI: "updateUI"
        case .updateErrorUI: "updateErrorUI"
        case .ownStep, .step, .asyncStep, .mainStep, .wake: "typed step"
        }
    }

    var runsOnMain: Bool {
        switch self {
        case .updateUI, .updateErrorUI, .mainStep: true
        default: false
        }
    }
}

/// A value of the untyped chain.
///
/// @unchecked: the value can be of any type, so the compiler cannot verify that it is `Sendable`.
/// Only the thread that runs the handlers accesses it, and that thread takes and returns the value
/// under the task's lock.
final class ChainValue: @unchecked Sendable {
    let value: Any

    init(_ value: Any) {
        self.value = value
    }
}

/// The state of the chain between two handlers.
enum Track: Sendable {
    /// No handler has returned a result yet.
    case pending
    case success(ChainValue?)
    case failure(any Error)

    /// Returns whether a handler runs on this track. Error handlers run only after a failure,
    /// `transform` runs only if there is a result, and other handlers run unless there is a
    /// failure. Steps of typed tasks always run.
    func admits(_ handler: Handler) -> Bool {
        switch handler {
        case .response, .observeResponse, .responseJSON, .observeJSON, .updateUI: !isFailure
        case .transform, .observeValue: if case .success = self { true } else { false }
        case .recover, .responseError, .updateErrorUI: isFailure
        case .ownStep, .step, .asyncStep, .mainStep, .wake: true
        }
    }

    var isFailure: Bool {
        if case .failure = self { true } else { false }
    }

    var error: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// Creates the track that follows a handler with this result.
    init(_ result: ServiceTaskResult) {
        switch result {
        case .empty: self = .success(nil)
        case .value(let value): self = .success(ChainValue(value))
        case .failure(let error): self = .failure(error)
        }
    }

    /// The track after a handler without a result: unchanged, except that a pending chain becomes
    /// an empty success.
    var afterObserving: Track {
        if case .pending = self { .success(nil) } else { self }
    }
}

/// The handlers of one task in order, and the input of the next handler. The chain has no side
/// effects: it determines the next step, which ``SessionTask/runHandlers(isAwaiting:)`` runs.
struct HandlerChain: Sendable {
    /// The next step, to be run outside the lock.
    enum Step: Sendable {
        /// A value that precedes the result must be delivered first.
        case wait(any Prelude)
        /// The delegate validates the result, before the first handler.
        case validate
        case run(Handler)
        /// All handlers added so far have run.
        case collectMetrics([MetricsHandler], isFirst: Bool, spent: ShortList<Handler>)
        /// There is no next step. Outside the lock, the caller releases the handlers that have run.
        /// If these handlers were counted, it also calls ``ServiceCore/endHandlers()``.
        case rest(isDrained: Bool, spent: ShortList<Handler>, wereCounted: Bool = false)
    }

    private var handlers = ShortList<Handler>()
    private var position = 0
    private var metricsHandlers: [MetricsHandler] = []
    /// The track while no thread runs handlers.
    private var track = Track.pending
    private var preludes: [any Prelude] = []
    private var needsValidation = false
    private var hasCollectedMetrics = false
    /// The error with which the delegate has rejected the result; `nil` if there is none.
    var rejection: (any Error)?
    private(set) var isOpen = false
    private(set) var isRunning = false
    /// The parsed JSON, shared by all handlers that use it.
    var json: ChainValue?

    /// Whether all handlers have run.
    var isDrained: Bool {
        isOpen && !isRunning && position == handlers.count && hasCollectedMetrics && metricsHandlers.isEmpty
    }

    mutating func add(_ handler: Handler) {
        handlers.append(handler)
    }

    mutating func add(_ metricsHandler: @escaping MetricsHandler) {
        metricsHandlers.append(metricsHandler)
    }

    /// Opens the chain when there is a result, so that handlers can run.
    ///
    /// - Parameters:
    ///   - preludes: The sources of values that are delivered before the first handler.
    ///   - isObserved: Whether a delegate validates the result and receives the metrics.
    mutating func open(failure: (any Error)?, after preludes: [any Prelude], isObserved: Bool) {
        isOpen = true
        self.preludes = preludes
        needsValidation = isObserved
        hasCollectedMetrics = !isObserved
        if let failure { track = .failure(failure) }
    }

    /// Whether all handlers of the chain are steps without custom closures.
    var holdsOnlyOwnSteps: Bool {
        handlers.allSatisfy(\.isOwnStep)
    }

    /// Whether the chain can begin with steps that run no custom closure: the delegate does not
    /// validate the result, no value precedes it, and all handlers are such steps.
    var beginsWithOwnSteps: Bool {
        !needsValidation && preludes.isEmpty && position < handlers.count && holdsOnlyOwnSteps
    }

    /// Claims the right to run handlers.
    ///
    /// - Returns: Whether the caller must run them, because no other thread does. The caller then
    ///   takes the track with ``pickUp()`` and calls ``next(on:)`` until the step is ``Step/rest``.
    mutating func claim() -> Bool {
        guard isOpen, !isRunning, !isDrained else { return false }
        isRunning = true
        return true
    }

    /// Returns the track, which the claimant holds while running handlers.
    mutating func pickUp() -> Track {
        defer { track = .pending }
        return track
    }

    /// Releases the right to run handlers, at the end or when the task is suspended.
    mutating func release(_ track: Track) {
        self.track = track
        isRunning = false
    }

    /// Returns the claimant's next step for the given track.
    mutating func next(on track: borrowing Track) -> Step {
        if let prelude = preludes.popLast() { return .wait(prelude) }
        if needsValidation {
            needsValidation = false
            return .validate
        }
        while position < handlers.count {
            let handler = handlers[position]
            position += 1
            if track.admits(handler) { return .run(handler) }
        }
        let spent = handlers
        handlers = ShortList()
        position = 0
        if !hasCollectedMetrics || !metricsHandlers.isEmpty {
            defer {
                hasCollectedMetrics = true
                metricsHandlers = []
            }
            return .collectMetrics(metricsHandlers, isFirst: !hasCollectedMetrics, spent: spent)
        }
        return .rest(isDrained: true, spent: spent)
    }

    /// Returns the next handler if it runs on the main actor; otherwise returns `nil` and leaves it
    /// for ``next(on:)``.
    mutating func nextOnMain(on track: borrowing Track) -> Handler? {
        while position < handlers.count, !track.admits(handlers[position]) { position += 1 }
        guard position < handlers.count, handlers[position].runsOnMain else { return nil }
        position += 1
        return handlers[position - 1]
    }
}

/// The result of a response handler, `transform` or `recover`.
///
/// The result is passed to the next handler in the chain.
public enum ServiceTaskResult {
    /// Success without a value. The next handler receives `nil`.
    case empty
    /// Success with a value.
    case value(Any)
    /// Failure. The error handlers that follow run instead of the success handlers.
    case failure(any Error)
}
