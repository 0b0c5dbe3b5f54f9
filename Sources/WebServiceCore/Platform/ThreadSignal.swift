import Dispatch

/// A signal for which threads block. Code that must not block a thread awaits ``Once`` instead.
package struct ThreadSignal: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// Lets one waiting thread continue, or the next one that waits.
    package func signal() {
        semaphore.signal()
    }

    package func wait() {
        semaphore.wait()
    }

    /// - Returns: Whether there was a signal within the limit.
    package func wait(milliseconds: Int) -> Bool {
        semaphore.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
    }
}
