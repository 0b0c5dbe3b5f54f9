public import WebServiceCore

/// A protocol for requests without parameters, which providers can create themselves.
public protocol EmptyServiceRequest: ServiceRequest {
    /// Creates the request.
    init()
}

/// The dependency of a storage read on a task whose response makes the stored response obsolete.
public struct StorageReadDependency: Sendable {
    /// Returns whether the read is obsolete; `nil` if it never becomes obsolete.
    let isOver: (@Sendable () -> Bool)?
    /// Registers a closure that is called when the task has ended and the read is obsolete. The
    /// task retains the closure, so the closure must not retain the task.
    let observe: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// No dependency. The read never becomes obsolete.
    public static let independent = StorageReadDependency(isOver: nil, observe: nil)

    /// Returns a dependency that cancels the read if the task succeeds before the read completes.
    public static func untilSuccess<Value>(of task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .data = $0 { true } else { false } }
    }

    /// Returns a dependency that cancels the read if the task ends without an error before the read
    /// completes.
    ///
    /// A task ends without an error if it succeeds, is cancelled, or is rejected as a duplicate. If
    /// the task fails, the read continues, because the stored response is then the only one.
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
