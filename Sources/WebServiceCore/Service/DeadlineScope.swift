/// The deadline of a scope of Swift code, which applies to the tasks that are resumed in it.
package final class DeadlineScope: Sendable {
    /// The scope of the current Swift task; `nil` for none.
    @TaskLocal package static var current: DeadlineScope?

    private let clock: TaskClock
    private let end: UInt64

    /// Creates a scope that ends after a duration, or at the end of the current one if that is
    /// earlier.
    init(_ duration: Duration, _ clock: TaskClock) {
        let rest = Self.current.map { min($0.rest, duration) } ?? duration
        self.clock = clock
        end = clock.now.addingSaturated(rest)
    }

    /// The duration until the end; zero after it.
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
    /// Every task that is resumed in the closure, of this or another service, fails with
    /// ``WebServiceError/Code/deadline`` when the duration has elapsed on this service's clock. A
    /// task that is resumed after that fails immediately and sends nothing. Streams, event streams
    /// and downloads that are started in the closure end with the same error, even after the
    /// closure has returned. For a WebSocket connection, the deadline ends with the handshake.
    ///
    /// - The deadline of a request and those of inner scopes can only shorten the duration.
    /// - Child tasks of the closure, each `Task` that the closure creates, and the handlers and
    ///   steps of its tasks belong to the scope. A `Task.detached` does not.
    /// - A task that was resumed before the call is not affected. Typed requests that share a
    ///   response (`DuplicateMode.join`) have their own scopes: the end of one does not affect
    ///   the others. A refresh of credentials and a ``PassiveTask`` belong to no scope.
    /// - The closure is not interrupted: other code in it continues.
    ///
    /// - Parameters:
    ///   - duration: The duration from the call. If it is not positive, no request is sent.
    ///   - isolation: The isolation of the closure. Defaults to that of the caller.
    ///   - body: The closure.
    public func withDeadline<Value>(
        _ duration: Duration, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async rethrows -> Value {
        try await DeadlineScope.$current.withValue(
            DeadlineScope(duration, core.clock), operation: body, isolation: isolation)
    }
}
