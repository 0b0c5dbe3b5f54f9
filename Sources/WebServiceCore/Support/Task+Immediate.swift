extension Task where Success == Void, Failure == Never {
    /// Starts a Swift task that runs on the calling thread until it first suspends (SE-0472).
    ///
    /// This saves waking another thread. A nonisolated asynchronous function never runs on the main
    /// actor. Earlier systems start the task on the shared thread pool.
    @discardableResult
    static func startingImmediately(
        on executor: (any TaskExecutor)?, _ operation: @escaping @Sendable () async -> Void
    ) -> Task {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            return Task.immediate(executorPreference: executor, operation: operation)
        }
        return Task(executorPreference: executor, operation: operation)
    }
}
