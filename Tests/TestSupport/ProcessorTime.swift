import Foundation

/// What the processor time is that of.
package enum ProcessorTimeScope {
    /// The calling thread. Other threads do not affect the result.
    case thread
    /// The process. For suites that are `.exclusive`.
    case process
}

/// Returns the processor time until now, in seconds.
package func processorTime(of scope: ProcessorTimeScope = .thread) -> Double {
    var time = timespec()
    clock_gettime(scope == .thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Returns the processor time of the calling thread for a closure, in seconds.
package func processorTime(_ body: () throws -> Void) rethrows -> Double {
    let start = processorTime()
    try body()
    return processorTime() - start
}
