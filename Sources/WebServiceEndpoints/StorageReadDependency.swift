public import WebServiceCore

/// A request without parameters, which providers create automatically.
public protocol EmptyServiceRequest: ServiceRequest {
    /// Creates the request.
    init()
}

/// The dependency of a read on a task, whose response makes the stored one obsolete.
public struct StorageReadDependency: Sendable {
    /// Returns whether the read is obsolete; `nil` if it never becomes obsolete.
    let isOver: (@Sendable () -> Bool)?
    /// Registers a closure to call when the task has ended and the read is obsolete. The task
    /// retains the closure, so the closure must not retain the task.
    let observe: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// The absence of a dependency: the read never becomes obsolete.
    public static let independent = StorageReadDependency(isOver: nil, observe: nil)

    /// Returns a dependency that cancels the read if the task has a value first.
    public static func untilSuccess<Value>(of task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .data = $0 { true } else { false } }
    }

    /// Returns a dependency that cancels the read if the task ends first without an error.
    ///
    /// The task may have a value, be cancelled, or be refused as a duplicate. If it fails, the read
    /// continues, because the stored response is the only one.
    public static func untilFinished<Value>(_ task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .error = $0 { false } else { true } }
    }

    private static func until<Value>(
        _ task: TypedTask<Value>, _ ends: @escaping @Sendable (ServiceResponse<Value>) -> Bool
    ) -> StorageReadDependency {
        StorageReadDependency {
            task.settled.map { ends(ServiceResponse($0)) } ?? false
        } observe: { ended in
            _ = task.observe { if ends(ServiceResponse($0)) { ended() } }
        }
    }
}
