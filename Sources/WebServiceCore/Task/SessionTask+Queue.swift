/// Support for a queue of tasks, such as `TaskQueue` of `WebServiceResilience`.
///
/// A queue also attaches a ``Prelude``, which the task ends when it has a result.
extension SessionTask {
    /// The clock of the task.
    package var clock: TaskClock { context.clock }

    /// Reserves the task for a queue, and ends a suspension.
    ///
    /// - Returns: `false` if the task was already resumed or is already in a queue.
    package func enterQueue() -> Bool {
        shared.withLock { state in
            guard state.enterQueue() else { return false }
            _ = context.grantPermission()  // nothing is held back, because nothing was sent
            return true
        }
    }

    /// Starts the task on the calling thread, unless it is in no queue or has a result.
    ///
    /// - Parameter scope: The scope to which the task belongs.
    package func leaveQueue(in scope: DeadlineScope?) {
        guard let start = shared.withLock({ $0.leaveQueue() }) else { return }
        DeadlineScope.$current.withValue(scope) { self.start(start) }
    }
}
