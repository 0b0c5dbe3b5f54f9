/// A deadline for all tasks that are resumed in a scope of Swift code.
package final class DeadlineScope: Sendable {
    /// The scope of the current Swift task; `nil` if there is none.
    @TaskLocal package static var current: DeadlineScope?

    private let clock: TaskClock
    private let end: UInt64

    /// Creates a scope that ends after a duration or when the current scope ends, whichever is
    /// earlier.
    init(_ duration: Duration, _ clock: TaskClock) {
        let rest = Self.current.map { min($0.rest, duration) } ?? duration
        self.clock = clock
        end = clock.now.addingSaturated(rest)
    }

    /// The duration until the end of the scope; zero after the end.
    var rest: Duration {
        let now = clock.now
        return .nanoseconds(Int64(clamping: end - min(end, now)))
    }
}

extension WebService {
    /// Runs a closure whose requests share one deadline.
    ///
    /// ```swift
    /// let (user, orders) = try await service.withDeadline(.seconds(5)) {
    ///     let user = try await service.GET("/user").decode(User.self).value
    ///     return (user, try await service.GET("/orders").decode([Order].self).value)
    /// }
    /// ```
    /// Every task of this or another service that is resumed in the closure fails with
    /// ``WebServiceError/Code/deadline`` when the duration has elapsed. A task that is resumed
    /// later fails immediately and sends nothing. Streams, event streams and downloads that are
    /// started in the closure end with the same error, even after the closure has returned. The
    /// deadline of a WebSocket connection applies only to its handshake.
    ///
    /// - A shorter deadline of a request or of an inner scope applies as well; a longer one does
    ///   not extend this duration.
    /// - Child tasks of the closure, each `Task` that it creates, and the handlers and steps of the
    ///   tasks that it resumes belong to the scope. A `Task.detached` does not.
    /// - A task that was resumed before the call is not affected. Typed requests that share a
    ///   response (`DuplicateMode.join`) keep their own scopes: when one scope ends, the other
    ///   requests are not affected. A refresh of credentials and a ``PassiveTask`` belong to no
    ///   scope.
    /// - The deadline does not interrupt the closure itself: code that is not waiting for a request
    ///   continues.
    ///
    /// - Parameters:
    ///   - duration: The duration, measured from the call on this service's clock. If it is not
    ///     positive, no request is sent.
    ///   - isolation: The isolation of the closure. Defaults to that of the caller.
    ///   - body: The closure.
    public func withDeadline<Value>(
        _ duration: Duration, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async rethrows -> Value {
        try await DeadlineScope.$current.withValue(
            DeadlineScope(duration, core.clock), operation: body, isolation: isolation)
    }
}
