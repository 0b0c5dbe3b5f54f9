import WebServiceCore

/// The executor of Swift tasks that serve a channel.
///
/// A task that a loop's thread resumes continues on that thread, which saves waking another thread.
/// Any other task continues on the handler pool. A task that prefers this executor must not block
/// or call code of the program.
final class LoopExecutor: TaskExecutor {
    static let shared = LoopExecutor()

    /// Set on the threads of loops, except while they run a job.
    private static let isLoop = ThreadFlag()

    /// Allows the calling thread, which is a loop's thread, to run jobs.
    static func allowJobs() { isLoop.isSet = true }

    /// Calls a closure on the thread of a loop. Jobs that the closure enqueues run on the pool.
    static func suspended(_ body: () -> Void) {
        isLoop.isSet = false
        body()
        isLoop.isSet = true
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard Self.isLoop.isSet else { return HandlerPool.shared.enqueue(job, of: asUnownedTaskExecutor()) }
        // A job that this job enqueues runs on the pool, so that jobs are not nested.
        Self.suspended { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
