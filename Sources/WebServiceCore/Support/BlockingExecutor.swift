import Dispatch

/// Runs Swift tasks on threads that may block, for example for file access.
///
/// The threads of the Swift concurrency pool must not block, because there are only as many as
/// processors.
final class BlockingExecutor: TaskExecutor {
    static let shared = BlockingExecutor()

    private let queue = DispatchQueue(label: "WebService.BlockingExecutor", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
