public import WebServiceCore

/// One run of the explored code, for the checks of an exploration.
public struct FaultRun<Model: Sendable, Output: Sendable>: Sendable {
    /// The exchanges, and how the run ended.
    public let trace: FaultTrace
    /// The model of the server that the explorer's closure returned for this run.
    public let model: Model
    let outcome: Result<Output, any Error>?

    /// The value that the explored code returned; `nil` if it threw an error or did not end.
    public var output: Output? { if case .success(let output) = outcome { output } else { nil } }
    /// The error that the explored code threw; `nil` if it returned a value or did not end.
    public var error: (any Error)? { if case .failure(let error) = outcome { error } else { nil } }
    /// The plan of the run.
    public var plan: FaultPlan { trace.plan }
    /// How the explored code ended.
    public var end: FaultTrace.End { trace.end }
    /// The exchanges in the order in which the server received them or a fault affected them.
    public var requests: [FaultTrace.Exchange] { trace.exchanges }

    /// Returns the number of effects of the requests with the given method and path; see
    /// ``FaultTrace/effects(_:_:honoursKeys:)``.
    public func effects(_ method: Request.Method, _ path: String, honoursKeys: Bool = true) -> Int {
        trace.effects(method, path, honoursKeys: honoursKeys)
    }

    /// Checks a condition that must hold after each run.
    ///
    /// - Parameters:
    ///   - condition: The condition.
    ///   - message: What is wrong if the condition does not hold. Failures with equal messages are
    ///     reported together.
    /// - Throws: ``FaultViolation`` if the condition does not hold.
    public func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw FaultViolation(message()) }
    }

    /// Verifies that an invariant holds after the run.
    ///
    /// - Throws: ``FaultViolation`` if the invariant does not hold.
    public func require(_ invariant: FaultInvariant) throws {
        if let message = invariant.violation(trace) { throw FaultViolation(message) }
    }
}

/// A condition that did not hold after a run.
public struct FaultViolation: Error, Sendable, Hashable, CustomStringConvertible {
    /// The description of the violated condition.
    public let description: String

    /// What violations that are reported together have in common.
    let key: String

    /// Creates a violation with a description.
    public init(_ description: String) { self.init(description, key: description) }

    package init(_ description: String, key: String) { (self.description, self.key) = (description, key) }
}
