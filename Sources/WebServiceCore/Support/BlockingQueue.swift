import Dispatch

/// A serial queue for work that waits for the disk or for other processes.
///
/// A forked process does not inherit threads, so its work runs on the calling thread.
package final class BlockingQueue: Sendable {
    private let queue: PerProcess<DispatchQueue>

    package init(_ label: String) {
        queue = PerProcess { _ in DispatchQueue(label: label) }
    }

    /// Runs work after the work added earlier. In a forked process, this method returns after the
    /// work has run, and the work must not call the method.
    package func run(_ work: @escaping @Sendable () -> Void) {
        if Fork.count > 0 { queue.value.sync(execute: work) } else { queue.value.async(execute: work) }
    }

    /// Returns the result of work that runs after the work added earlier.
    package func result<Result: Sendable>(
        of work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        let token = WorkCount.current?.begin()
        return try await withCheckedThrowingContinuation { continuation in
            run {
                defer { withExtendedLifetime(token) {} }
                continuation.resume(with: Swift.Result { try work() })
            }
        }
    }
}
