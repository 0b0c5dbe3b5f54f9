import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of a typed task or of one of its steps, set before the handlers that read it run.
/// Only the first result counts.
package final class TypedResult<Value: Sendable>: Sendable {
    private let settlement = AtomicLazyReference<Settlement>()
    private let step: Step
    /// The object that retains the service of a typed request until the step has run.
    private weak let owner: TaskOwner?
    /// The rules for the response, if the step is the first one of its typed tasks.
    private let rules: ResponseRules

    /// The source of the result. A step contains no custom closure; such a closure belongs to the
    /// handler that sets the result and is released with that handler.
    package enum Step: Sendable {
        /// A handler or the creator of the result provides the value.
        case none
        /// Another result, which is set before the task completes.
        case provided(TypedResult)
        /// The accepted response, from which a closure of the package creates the value.
        case response(@Sendable (Response) throws -> Value)
    }

    package init(_ step: Step = .none, accepting statuses: ResponseRules.Statuses = .success, owner: TaskOwner? = nil) {
        self.step = step
        self.owner = owner
        rules = ResponseRules(statuses)
    }

    /// - Returns: Whether this is the first result.
    @discardableResult
    package func set(_ result: Result<Value, any Error>) -> Bool {
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

    /// The value. Readers run after the result is set, so the result is never missing.
    package var value: Value {
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
package protocol RuledStep: AnyObject, Sendable {
    func changeRules(_ change: (inout ResponseRules.Rules) -> Void)
}

extension TypedResult: RuledStep {
    package func changeRules(_ change: (inout ResponseRules.Rules) -> Void) { rules.set(change) }

    /// Returns the response if the rules accept it.
    func accept(_ input: StepInput) throws -> Response { try rules.accept(input) }
}

/// A result whose type is erased, because each access to a generic class costs several lookups of
/// type metadata.
private final class Settlement: Sendable {
    let result: Result<any Sendable, any Error>

    init(_ result: Result<any Sendable, any Error>) { self.result = result }
}

/// The rules by which a first step, and thus the typed tasks that continue it, accept the response.
package struct ResponseRules: ~Copyable, Sendable {
    package struct Rules: Sendable {
        var statuses = Statuses.success
        var contentTypes: [String]?
        var checks: [@Sendable (Response) throws -> Void] = []
    }

    package enum Statuses: Sendable {
        /// The statuses from 200 to 299.
        case success
        case these(Set<Int>)
        case any

        func contains(_ status: Int) -> Bool {
            switch self {
            case .success: (200...299).contains(status)
            case .these(let statuses): statuses.contains(status)
            case .any: true
            }
        }
    }

    /// The changed rules; most tasks change none.
    private final class Changes: Sendable {
        let rules: Mutex<Rules>
        init(_ rules: Rules) { self.rules = Mutex(rules) }
    }

    private let initial: Rules
    private let changes = AtomicLazyReference<Changes>()

    init(_ statuses: Statuses) {
        initial = Rules(statuses: statuses)
    }

    func set(_ change: (inout Rules) -> Void) {
        let changes = changes.load() ?? changes.storeIfNil(Changes(initial))
        changes.rules.withLock { change(&$0) }
    }

    /// Returns the response if it is acceptable.
    func accept(_ input: StepInput) throws -> Response {
        let rules = changes.load()?.rules.withLock { $0 } ?? initial
        if let failure = input.failure {
            guard case .failure = input.result, let response = (failure as? WebServiceError)?.incompleteResponse,
                !rules.statuses.contains(response.status)
            else { throw failure }
            throw input.mappedError(for: response) ?? failure
        }
        let response = try input.result.get()
        guard rules.statuses.contains(response.status) else {
            throw input.mappedError(for: response)
                ?? input.error(
                    .unacceptableStatus,
                    "the server responded with \(response.statusText)"
                        + (response.status == 407 ? "; set the user name and password of the proxy" : ""),
                    underlying: response.bodyFailure)
        }
        if let contentTypes = rules.contentTypes, response.mayHaveBody {
            let type = response.header(.contentType)
            guard contentTypes.contains(where: { MediaType.matches(type ?? "", pattern: $0) }) else {
                throw input.error(
                    .unexpectedContentType,
                    "the response has \(MediaType.text(type)), which is not acceptable; "
                        + "accept \(type == nil ? "any type with */* in" : "it with") validate(contentTypes:)")
            }
        }
        for check in rules.checks { try check(response) }
        return response
    }
}

extension StepInput {
    /// Returns an error with the request and response of the exchange.
    func error(_ code: WebServiceError.Code, _ message: String, underlying: (any Error)? = nil) -> WebServiceError {
        let response = try? result.get()  // an error of the exchange has no response
        return WebServiceError(code, message, request: request, response: response, underlying: underlying)
    }
}
