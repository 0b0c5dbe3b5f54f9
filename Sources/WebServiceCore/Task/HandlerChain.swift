import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One handler of a task, as it was added. A `look` closure gives no result and leaves that of the chain as it was.
enum Handler: Sendable {
    case response(@Sendable (Data?, URLResponse?) throws -> ServiceTaskResult)
    case lookAtResponse(@Sendable (Data?, URLResponse?) throws -> Void)
    case responseJSON(@Sendable (Any, URLResponse?) throws -> ServiceTaskResult)
    case lookAtJSON(@Sendable (Any, URLResponse?) throws -> Void)
    case transform(@Sendable (Any?) throws -> ServiceTaskResult)
    case lookAtValue(@Sendable (Any?) throws -> Void)
    case recover(@Sendable (any Error) throws -> ServiceTaskResult)
    case responseError(@Sendable (any Error) -> Void)
    case updateUI(@MainActor @Sendable (Any?) -> Void)
    case updateErrorUI(@MainActor @Sendable (any Error) -> Void)
    /// Steps of typed tasks: they look at the outcome on both tracks and leave the chain as it is.
    /// They return an error of their own, for the delegate.
    case step(@Sendable (StepInput) -> (any Error)?, isOwn: Bool)
    case asyncStep(@Sendable (StepInput) async -> (any Error)?)
    indirect case mainStep(MainStep)  // boxed, so that the other handlers stay small

    /// A step on the main actor.
    struct MainStep: Sendable {
        /// Whether it has anything to do; if not, the main actor is left alone.
        let applies: @Sendable () -> Bool
        /// Whether it is a handler that the user added to update the UI, which the delegate hears of.
        let isUI: Bool
        let body: @MainActor @Sendable (StepInput) -> (any Error)?
    }

    /// Whether it is a step in which no closure of the user's runs.
    var isOwnStep: Bool {
        if case .step(_, isOwn: true) = self { true } else { false }
    }

    /// What the timeline calls it.
    var name: String {
        switch self {
        case .response, .lookAtResponse: "response"
        case .responseJSON, .lookAtJSON: "responseJSON"
        case .transform, .lookAtValue: "transform"
        case .recover: "recover"
        case .responseError: "responseError"
        case .updateUI: "updateUI"
        case .updateErrorUI: "updateErrorUI"
        case .step, .asyncStep, .mainStep: "typed step"
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
/// @unchecked: the values are of any type, so the compiler cannot know; but one thread at a time has them, the one that runs the
/// handlers, and it gets and returns them under the task's lock.
final class ChainValue: @unchecked Sendable {
    let value: Any

    init(_ value: Any) {
        self.value = value
    }
}

/// Where a chain stands between two handlers.
enum Track: Sendable {
    /// No handler has given a result yet.
    case pending
    case success(ChainValue?)
    case failure(any Error)

    /// Whether a handler is on duty here: success handlers on the success track, error handlers on the failure track,
    /// `transform` only where there is a result.
    func admits(_ handler: Handler) -> Bool {
        switch handler {
        case .response, .lookAtResponse, .responseJSON, .lookAtJSON, .updateUI: !isFailure
        case .transform, .lookAtValue: if case .success = self { true } else { false }
        case .recover, .responseError, .updateErrorUI: isFailure
        case .step, .asyncStep, .mainStep: true
        }
    }

    var isFailure: Bool {
        if case .failure = self { true } else { false }
    }

    var error: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// Where the chain stands behind a handler that gave this result.
    init(_ result: ServiceTaskResult) {
        switch result {
        case .empty: self = .success(nil)
        case .value(let value): self = .success(ChainValue(value))
        case .failure(let error): self = .failure(error)
        }
    }

    /// Where the chain stands behind a handler that gave no result: where it stood, except that there is a result now.
    var afterLook: Track {
        if case .pending = self { .success(nil) } else { self }
    }
}

/// The handlers of one task in order, and what the next one gets. Pure: it says what to run, ``SessionTask`` runs it.
struct HandlerChain: Sendable {
    /// What is to be done next, outside the lock.
    enum Step: Sendable {
        /// The delegate looks at the response, before the first handler.
        case validate
        case run(Handler)
        /// All handlers known so far have run.
        case collectMetrics([@Sendable (ServiceTaskMetrics) -> Void], isFirst: Bool, spent: [Handler])
        /// Nothing. The handlers that have run come along, so that what they hold is freed outside the lock.
        case rest(spent: [Handler])
    }

    private var handlers: [Handler] = []
    private var position = 0
    private var metricsHandlers: [@Sendable (ServiceTaskMetrics) -> Void] = []
    private var track = Track.pending
    private var needsValidation = false
    private var hasCollectedMetrics = false
    private(set) var isOpen = false
    private(set) var isRunning = false
    /// JSON that was parsed once, for every handler that wants it.
    var json: ChainValue?

    /// Whether everything that was added has run.
    var isDrained: Bool { isOpen && !isRunning && position == handlers.count && hasCollectedMetrics && metricsHandlers.isEmpty }

    mutating func add(_ handler: Handler) {
        if handlers.isEmpty { handlers.reserveCapacity(4) }
        handlers.append(handler)
    }

    mutating func add(_ metricsHandler: @escaping @Sendable (ServiceTaskMetrics) -> Void) {
        metricsHandlers.append(metricsHandler)
    }

    /// The outcome is there: from now on handlers run.
    ///
    /// - Parameter isObserved: Whether there is a delegate that wants to look at the response and to hear the measurements.
    mutating func open(failure: (any Error)?, isObserved: Bool) {
        isOpen = true
        needsValidation = failure == nil && isObserved
        hasCollectedMetrics = !isObserved
        if let failure { track = .failure(failure) }
    }

    /// Whether nothing but steps is in it in which no closure of the user's runs.
    var holdsOnlyOwnSteps: Bool {
        handlers.allSatisfy(\.isOwnStep)
    }

    /// Takes the right to run handlers.
    ///
    /// - Returns: Whether the caller has to begin, because nobody else does: to ``pickUp()`` the track and to ask for the ``next(on:)`` step until
    ///   it is ``Step/rest``.
    mutating func claim() -> Bool {
        guard isOpen, !isRunning, !isDrained else { return false }
        isRunning = true
        return true
    }

    /// Where the chain stands; the claimant has it while it runs handlers.
    mutating func pickUp() -> Track {
        defer { track = .pending }
        return track
    }

    /// Puts the track back while the right to run handlers is handed on, to the main actor or back.
    mutating func putDown(_ track: Track) {
        self.track = track
    }

    /// Gives up the right to run handlers: at the end, or in the middle when the task is suspended.
    mutating func release(_ track: Track) {
        self.track = track
        isRunning = false
    }

    /// What the claimant runs next, where the chain stands so.
    mutating func next(on track: borrowing Track) -> Step {
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
        handlers = []
        position = 0
        if !hasCollectedMetrics || !metricsHandlers.isEmpty {
            defer {
                hasCollectedMetrics = true
                metricsHandlers = []
            }
            return .collectMetrics(metricsHandlers, isFirst: !hasCollectedMetrics, spent: spent)
        }
        return .rest(spent: spent)
    }

    /// The next handler where that belongs on the main actor; else `nil`, and it stays for ``next(on:)``.
    mutating func nextOnMain(on track: borrowing Track) -> Handler? {
        while position < handlers.count, !track.admits(handlers[position]) { position += 1 }
        guard position < handlers.count, handlers[position].runsOnMain else { return nil }
        position += 1
        return handlers[position - 1]
    }
}
