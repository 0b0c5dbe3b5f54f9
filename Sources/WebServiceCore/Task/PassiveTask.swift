import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A typed task that its owner completes, for values that do not come from a request.
///
/// ```swift
/// let login = PassiveTask<Token>()
/// show(login.task)          // observers, await and cancel as with every task
/// login.complete(token)     // or login.fail(error)
/// ```
/// Only the first call to ``complete(_:)`` or ``fail(_:)`` has an effect. Observers may be added
/// before or after that call. If the `PassiveTask` is deallocated before any such call, the task
/// fails with `URLError.cancelled`, so that no caller waits forever.
///
/// All members may be used from any thread.
public final class PassiveTask<Value: Sendable>: Sendable {
    /// The task that callers observe and await.
    public let task: TypedTask<Value>

    private let outcome: TypedResult<Value>

    /// Creates a passive task that is not complete.
    ///
    /// - Parameter onCancel: A closure that is called once, on the cancelling thread, if the task
    ///   is cancelled before it completes. Defaults to `nil`.
    public convenience init(onCancel: (@Sendable () -> Void)? = nil) {
        self.init(timekeeper: nil, onCancel: onCancel)
    }

    /// - Parameter timekeeper: The clock of the task's timeline; `nil` for the system clock.
    package init(timekeeper: (any Timekeeper)?, onCancel: (@Sendable () -> Void)? = nil) {
        let outcome = TypedResult<Value>()
        let service = timekeeper.map { ServiceCore(TaskClock($0)) } ?? .passive
        self.outcome = outcome
        task = TypedTask(service, providing: outcome, isListed: false) { _ in }
        task.task.attach(CancelHook(onCancel: onCancel ?? {}))
    }

    deinit {
        task.task.complete(.failure(URLError(.cancelled)))
    }

    /// Completes the task with a value.
    ///
    /// - Returns: `true` if this call completed the task; `false` if it was already complete or
    ///   cancelled.
    @discardableResult
    public func complete(_ value: Value) -> Bool {
        outcome.set(.success(value))
            && task.task.complete(.success(Response(body: nil, source: .owner, attempts: 0)))
    }

    /// Completes the task with an error.
    ///
    /// - Returns: `true` if this call completed the task; `false` if it was already complete or
    ///   cancelled.
    @discardableResult
    public func fail(_ error: any Error) -> Bool {
        outcome.set(.failure(error)) && task.task.complete(.failure(error))
    }
}

extension ServiceCore {
    /// The service of passive tasks. It sends no requests.
    fileprivate static let passive = ServiceCore(.system)
}

extension Response.Source {
    /// The owner of a ``PassiveTask``.
    public static let owner = Response.Source("owner")
}

/// An object that calls a closure when the task to which it is attached is cancelled.
private struct CancelHook: Cancellable {
    let onCancel: @Sendable () -> Void

    func cancel() { onCancel() }
}
