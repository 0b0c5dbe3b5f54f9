public import Foundation

/// An answer that a storage kept.
public struct StoredValue<Value: Sendable>: Sendable {
    /// The value.
    public let value: Value
    /// When it was stored; `nil` where the storage does not know, and for a time that has not come yet: the clock was wrong then or is now.
    public let date: Date?
    /// How old it was in seconds when it was read; `nil` without a date.
    public let age: TimeInterval?
}

/// On what a read depends: a task that asks for the same, so that what is stored is of no use once there is an answer.
public struct StorageReadDependency: Sendable {
    /// Whether the read is of no use any more; `nil` where it always is.
    let isOver: (@Sendable () -> Bool)?
    /// Has the closure called when the task has ended and the read is of no use any more. The task holds the closure, which must not hold the task.
    let observe: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// On nothing.
    public static let independent = StorageReadDependency(isOver: nil, observe: nil)

    /// The read is cancelled when the task has a value first.
    public static func untilSuccess<Value>(of task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .data = $0 { true } else { false } }
    }

    /// The read is cancelled when the task has a value first, or is cancelled, or turns out to be a duplicate. An error of the task leaves the read: what is
    /// stored is all there is then.
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
