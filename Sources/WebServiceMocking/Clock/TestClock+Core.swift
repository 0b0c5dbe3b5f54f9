public import Foundation
public import WebServiceCore

extension WebService {
    /// Creates a service whose time a test clock measures.
    ///
    /// - Parameters:
    ///   - baseURLString: An absolute http or https URL without user information; empty when every
    ///     path is an absolute URL.
    ///   - passthroughDelegate: See `passthroughDelegate`. Defaults to `nil`.
    ///   - urlBuilder: See `urlBuilder`. Defaults to `nil`.
    ///   - clock: The clock. Pass it to the ``MockSession`` of the service as well.
    public convenience init(
        baseURLString: String, passthroughDelegate: (any ServicePassthroughDelegate)? = nil,
        urlBuilder: URLBuilder? = nil, clock: TestClock
    ) {
        self.init(
            baseURLString: baseURLString, passthroughDelegate: passthroughDelegate, urlBuilder: urlBuilder,
            timekeeper: clock)
    }

    /// Creates a service whose time a test clock measures.
    ///
    /// See ``init(baseURLString:passthroughDelegate:urlBuilder:clock:)``.
    public convenience init(
        baseURL: URL?, passthroughDelegate: (any ServicePassthroughDelegate)? = nil, urlBuilder: URLBuilder? = nil,
        clock: TestClock
    ) {
        self.init(
            baseURLString: baseURL?.absoluteString ?? "", passthroughDelegate: passthroughDelegate,
            urlBuilder: urlBuilder, clock: clock)
    }
}

extension PassiveTask {
    /// Creates a task whose handlers a test clock waits for.
    ///
    /// - Parameters:
    ///   - clock: The clock.
    ///   - onCancel: Called once, on the cancelling thread, if the task is cancelled before it is
    ///     complete. Defaults to `nil`.
    public convenience init(clock: TestClock, onCancel: (@Sendable () -> Void)? = nil) {
        self.init(timekeeper: clock, onCancel: onCancel)
    }
}

extension CookieJar {
    /// Creates an empty jar whose cookies expire by a test clock.
    ///
    /// Any other jar uses the clock of the service for the requests of a service, and the system
    /// clock for `cookies` and for direct calls.
    public convenience init(clock: TestClock) {
        self.init(timekeeper: clock)
    }
}
