import Foundation

/// The wait of a sequence for its next connection, which ``WebService/cancelAll()`` ends.
package final class ReconnectionWait: InFlightWork {
    private struct State {
        var hasBegun = false
        var isCancelled = false
        var end: Once<Bool>?
    }

    private let service: ServiceCore
    private let request: Request
    private let didEnd: @Sendable () -> Void
    private let state = Mutex(State())

    init(_ service: ServiceCore, _ request: Request, didEnd: @escaping @Sendable () -> Void) {
        self.service = service
        self.request = request
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

    /// Waits for a duration, or until the end of the current deadline scope, after which the next
    /// connection is refused.
    ///
    /// - Throws: `URLError.cancelled` once the sequence or the Swift task is cancelled.
    package func sleep(for delay: Duration) async throws {
        let delay = DeadlineScope.current.map { min($0.rest, delay) } ?? delay
        let end = Once<Bool>()
        state.withLock { $0.end = end }
        if state.withLock(\.isCancelled) || Task.isCancelled { end.set(false) }
        let isDue = await withTaskCancellationHandler {
            await service.clock.value(of: end, orAfter: delay, true)
        } onCancel: {
            end.set(false)
        }
        state.withLock { $0.end = nil }
        if !isDue { throw URLError(.cancelled) }
    }

    package func cancel() {
        let end = state.withLock { state in
            state.isCancelled = true
            return state.end
        }
        end?.set(false)
    }

    package var workID: ObjectIdentifier { ObjectIdentifier(self) }

    /// The sequence in flight; `nil` while a connection is open, which is listed as a stream.
    var snapshot: InFlightExchange? {
        state.withLock { $0.end } == nil ? nil : InFlightExchange(self, .reconnection, request)
    }
}
