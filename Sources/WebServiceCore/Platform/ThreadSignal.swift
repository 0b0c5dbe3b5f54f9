import Dispatch

/// A signal that threads block on. Code that must not block a thread awaits ``Once`` instead.
package struct ThreadSignal: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// Wakes one waiting thread, or lets the next wait return immediately.
    package func signal() {
        semaphore.signal()
    }

    package func wait() {
        semaphore.wait()
    }

    /// Waits for a signal, for at most the given number of milliseconds.
    ///
    /// - Returns: Whether there was a signal within the limit.
    package func wait(milliseconds: Int) -> Bool {
        semaphore.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
    }
}
