import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a typed task or of one of its steps, set before the handlers that read it run.
/// Only the first result counts.
final class TypedResult<Value: Sendable>: Sendable {
    private let settlement = AtomicLazyReference<Settlement>()
    private let step: Step
    /// The object that retains the service of a typed request until the step has run.
    private weak let owner: TaskOwner?
    /// The rules for the response, if the step is the first one of its typed tasks.
    private let rules: ResponseRules

    /// The source of the result. A custom closure is not part of it: it belongs to the handler that
    /// sets the result, and is released with it.
    enum Step: Sendable {
        /// A handler or the creator of the result sets it.
        case none
        /// Another result, which is set before the task completes.
        case provided(TypedResult)
        /// The accepted response, from which a closure of the package makes the value.
        case response(@Sendable (Response) throws -> Value)
    }

    init(_ step: Step = .none, accepting statuses: ResponseRules.Statuses = .success, owner: TaskOwner? = nil) {
        self.step = step
        self.owner = owner
        rules = ResponseRules(statuses)
    }

    /// - Returns: Whether this is the first result.
    @discardableResult
    func set(_ result: Result<Value, any Error>) -> Bool {
        let new = Settlement(result.map { $0 })
        return settlement.storeIfNil(new) === new
    }

    /// Sets the result of a step.
    ///
    /// - Returns: The error if it originated in this step; otherwise `nil`.
    func set(_ result: Result<Value, any Error>, _ input: StepInput) -> (any Error)? {
        let result = result.mapError(input.locating)
        set(result)
        guard input.failure == nil, case .failure(let error) = result else { return nil }
        return error
    }

    /// The value. Readers run after the result is set, so a missing result is unreachable.
    var value: Value {
        get throws {
            switch settlement.load()?.result {
            case .success(let value as Value): return value
            case .failure(let error): throw error
            default: throw URLError(.unknown)
            }
        }
    }

    /// The result; see ``value``.
    var result: Result<Value, any Error> { Result { try value } }

    /// The result; `nil` until it is set.
    var settled: Result<Value, any Error>? { settlement.load() == nil ? nil : result }

    /// Releases the service of a typed request.
    func releaseOwner() { owner?.release() }
}

/// A step without a custom closure, regardless of the type of its value.
protocol OwnStep: AnyObject, Sendable {
    /// Sets the result of the step.
    ///
    /// - Returns: The error if it originated in this step; otherwise `nil`.
    func run(_ input: StepInput) -> (any Error)?
}

extension TypedResult: OwnStep {
    func run(_ input: StepInput) -> (any Error)? {
        releaseOwner()
        return set(result(for: input), input)
    }

    private func result(for input: StepInput) -> Result<Value, any Error> {
        switch step {
        case .none: .failure(URLError(.unknown))  // unreachable: a result without a step is no handler
        case .provided(let other):
            Result {
                _ = try rules.accept(input)
                return try other.value
            }
        case .response(let make):
            Result {
                do { return try make(try rules.accept(input)) } catch var error as WebServiceError
                    where error.request == nil
                {
                    error.request = input.request
                    throw error
                }
            }
        }
    }
}

/// A first step, with the rules of the typed tasks that follow it.
protocol RuledStep: AnyObject, Sendable {
    func changeRules(_ change: (inout ResponseRules.Rules) -> Void)
}

extension TypedResult: RuledStep {
    func changeRules(_ change: (inout ResponseRules.Rules) -> Void) { rules.set(change) }

    /// Returns the response if the rules accept it.
    func accept(_ input: StepInput) throws -> Response { try rules.accept(input) }
}

/// A result whose type is erased, because each access to a generic class costs several lookups of
/// type metadata.
private final class Settlement: Sendable {
    let result: Result<any Sendable, any Error>

    init(_ result: Result<any Sendable, any Error>) { self.result = result }
}
