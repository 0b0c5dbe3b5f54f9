public import WebServiceCore

extension PassiveTask {
    /// Creates a task whose handlers a test clock waits for.
    ///
    /// - Parameters:
    ///   - clock: The clock.
    ///   - onCancel: A closure that is called once, on the cancelling thread, if the task is
    ///     cancelled before it is complete. Defaults to `nil`.
    public convenience init(clock: TestClock, onCancel: (@Sendable () -> Void)? = nil) {
        self.init(timekeeper: clock, onCancel: onCancel)
    }
}

extension CookieJar {
    /// Creates an empty jar whose cookies expire by a test clock.
    ///
    /// Any other jar uses the service's clock for the requests of a service, and the system clock
    /// for `cookies` and direct calls.
    public convenience init(clock: TestClock) {
        self.init(timekeeper: clock)
    }
}
