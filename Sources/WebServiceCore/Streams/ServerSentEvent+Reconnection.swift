import Foundation
import Synchronization

extension ServerSentEvent {
    /// A policy for reconnecting an event stream after its connection has ended.
    public struct Reconnection: Sendable {
        /// The delays before reconnections; `nil` for streams that do not reconnect.
        let delays: Delays?

        struct Delays: Sendable {
            /// The minimum of ``base``, because zero cannot be doubled.
            private static let minimumBase = Duration.milliseconds(1)

            let base: Duration
            let maximum: Duration
            let attempts: Int
            /// A closure that returns a number from 0 to 1; `nil` to use the clock's generator.
            var random: (@Sendable () -> Double)?
            /// A closure that replaces the rules for errors; `nil` to apply the rules.
            var predicate: (@Sendable (_ error: (any Error)?, _ isTransient: Bool) -> Bool)?

            init(base: Duration, maximum: Duration, attempts: Int?, random: (@Sendable () -> Double)? = nil) {
                self.base = max(base, Self.minimumBase)
                self.maximum = max(maximum, self.base)
                self.attempts = max(attempts ?? .max, 1)
                self.random = random
            }

            /// Returns the delay before a connection.
            ///
            /// - Parameters:
            ///   - failures: The number of consecutive connections that ended without an event.
            ///   - time: The reconnection time of the stream; `nil` if it has not set one.
            ///   - clock: The clock of the service.
            func delay(after failures: Int, _ time: Duration?, _ clock: TaskClock) -> Duration {
                max(time ?? base, base).doubled(failures - 1, upTo: max(maximum, time ?? .zero))
                    * (1 + (random?() ?? clock.random()) / 2)
            }
        }

        /// A policy without reconnections: the end of the connection ends the sequence.
        public static let never = Reconnection(delays: nil)

        /// Returns a policy that reconnects after a transport error, after some statuses, and after
        /// the server has closed the connection.
        ///
        /// The next request contains the ID of the last event as `Last-Event-ID`, and its
        /// credentials are obtained again. Status 204 ends the sequence. After the statuses
        /// 408, 425, 429, 500, 502, 503 and 504, the sequence reconnects, but not before the time
        /// specified by `Retry-After`. Any other status outside 200 to 299, and any media type
        /// other than `text/event-stream`, is an error.
        ///
        /// A header field cannot contain an ID that has more than
        /// ``Request/maximumHeaderValueLength`` bytes, contains control characters, or begins or
        /// ends with a space or a tab. The last ID that a header field can contain is sent instead,
        /// so events may be delivered twice, but no event is lost.
        ///
        /// A request whose body can be read only once fails with
        /// ``WebServiceError/Code/bodyNotReplayable`` before it is sent.
        ///
        /// The delay is the reconnection time of the stream (at most one hour), or `baseDelay` if
        /// `baseDelay` is longer or the stream has not set a reconnection time. The delay is
        /// doubled, up to `maximumDelay`, for each further consecutive connection that ends without
        /// an event, and is then increased at random by up to half. A longer `Retry-After` replaces
        /// the result. The delay is therefore never shorter than `baseDelay` or the reconnection
        /// time, and its minimum grows while the server sends no events.
        ///
        /// - Parameters:
        ///   - baseDelay: The minimum delay, and the delay if the server sets none. Values below 1
        ///     millisecond count as 1 millisecond. Defaults to 1 second.
        ///   - maximumDelay: The maximum of the doubled delay, before the random increase. A longer
        ///     reconnection time of the stream is not reduced. Values below `baseDelay` count as
        ///     `baseDelay`. Defaults to 30 seconds.
        ///   - maximumAttempts: The number of consecutive connections without an event after which
        ///     the sequence ends, with the error of the last connection if there is one. Values
        ///     below 1 count as 1. Defaults to `nil`: no limit.
        ///   - predicate: A closure that returns whether to reconnect after a connection has ended,
        ///     within `maximumAttempts`. It receives the error, or `nil` if the server closed the
        ///     connection, and a Boolean that indicates whether the rules above would reconnect.
        ///     The closure is also called for errors of an ``ErrorMapper`` and errors with codes
        ///     ``WebServiceError/Code/unacceptableStatus`` and
        ///     ``WebServiceError/Code/unexpectedContentType`` after which the rules do not
        ///     reconnect. The reader of the events calls the closure. Defaults to `nil`: the rules
        ///     apply.
        public static func reconnecting(
            baseDelay: Duration = .seconds(1), maximumDelay: Duration = .seconds(30), maximumAttempts: Int? = nil,
            when predicate: (@Sendable (_ error: (any Error)?, _ isTransient: Bool) -> Bool)? = nil
        ) -> Reconnection {
            var delays = Delays(base: baseDelay, maximum: maximumDelay, attempts: maximumAttempts)
            delays.predicate = predicate
            return Reconnection(delays: delays)
        }
    }
}

/// The reconnections of a sequence: the decision after each connection, and the wait for the next
/// one, which ``WebService/cancelAll()`` ends.
package final class Reconnections: InFlightWork {
    private struct State {
        var hasBegun = false
        var isCancelled = false
        var end: Once<Bool>?
    }

    private let service: ServiceCore
    private let request: Request
    private let policy: ServerSentEvent.Reconnection
    private let didEnd: @Sendable () -> Void
    private let state = Mutex(State())
    /// The number of consecutive connections that ended without an element; -1 while the current
    /// one has delivered an element.
    private let failures = Atomic(0)

    init(
        _ service: ServiceCore, _ request: Request, _ policy: ServerSentEvent.Reconnection,
        didEnd: @escaping @Sendable () -> Void
    ) {
        self.service = service
        self.request = request
        self.policy = policy
        self.didEnd = didEnd
    }

    deinit {
        didEnd()
        if state.withLock(\.hasBegun) { service.end(workID) }
    }

    /// Lists the sequence as in flight. Later calls have no effect.
    package func begin() throws(WebServiceError) {
        let isFirst = state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        if isFirst { _ = try service.begin(self, isRetained: false) }
    }

    /// Records that the current connection has delivered an element.
    package func didDeliver() { failures.store(-1, ordering: .relaxed) }

    /// Ends the current connection, and returns the delay before the next one; `nil` if there is no
    /// next one. The reader of the sequence calls this method.
    ///
    /// - Parameters:
    ///   - error: The error of the connection; `nil` if the server closed it.
    ///   - isTransient: Whether to reconnect if there is no predicate.
    ///   - refusal: The response of the connection if an error mapper has mapped it. Defaults to
    ///     `nil`, which means the response of the error.
    ///   - time: The reconnection time that the stream has set. Defaults to `nil`.
    package func delay(
        after error: (any Error)?, isTransient: Bool, refusal: Response? = nil, _ time: Duration? = nil
    ) -> Duration? {
        let failures = failures.wrappingAdd(1, ordering: .relaxed).newValue
        guard let delays = policy.delays, failures < delays.attempts,
            delays.predicate?(error, isTransient) ?? isTransient
        else { return nil }
        let response = refusal ?? (error as? WebServiceError)?.response
        let retryAfter = response?.retryAfter(now: service.clock.date) ?? .zero
        return max(delays.delay(after: failures, time, service.clock), retryAfter)
    }

    /// Waits for a duration, or until the end of the current deadline scope, after which the next
    /// connection is refused.
    ///
    /// - Throws: `URLError.cancelled` once the sequence or the Swift task is cancelled.
    package func sleep(for delay: Duration) async throws {
        let delay = DeadlineScope.current.map { min($0.rest, delay) } ?? delay
        let end = Once<Bool>()
        try await wait(for: end) { await service.clock.value(of: end, orAfter: delay, true, orIfCancelled: false) }
    }

    /// Waits until a value is set to `true`. A cancellation sets the value to `false`.
    ///
    /// - Throws: `URLError.cancelled` once the sequence or the Swift task is cancelled.
    package func wait(for end: Once<Bool>) async throws {
        try await wait(for: end) { await end.value(orIfCancelled: false) }
    }

    private func wait(for end: Once<Bool>, _ value: () async -> Bool) async throws {
        state.withLock { $0.end = end }
        if state.withLock(\.isCancelled) || Task.isCancelled { end.set(false) }
        let isDue = await value()
        state.withLock { $0.end = nil }
        if !isDue { throw URLError(.cancelled) }
    }

    /// - Throws: `URLError.cancelled` once the sequence is cancelled.
    package func checkNotCancelled() throws {
        if state.withLock(\.isCancelled) { throw URLError(.cancelled) }
    }

    package func cancel() {
        let end = state.withLock { state in
            state.isCancelled = true
            return state.end
        }
        end?.set(false)
    }

    package var workID: ObjectIdentifier { ObjectIdentifier(self) }

    /// The sequence in flight; `nil` unless it waits, because each connection is listed separately.
    var snapshot: InFlightExchange? {
        state.withLock { $0.end } == nil ? nil : InFlightExchange(self, .reconnection, request)
    }
}
