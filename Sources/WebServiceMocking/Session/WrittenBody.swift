import Dispatch
import Foundation
import WebServiceCore

/// A body that a thread writes, for a response of a ``MockSession``.
final class WrittenBody: BodyOutput {
    private struct State {
        var isCancelled = false
        /// The error of the task that takes the bytes.
        var failure: (any Error)?
        /// The Swift task on which the thread waits.
        var work: Task<Void, Never>?
        /// The token of the thread's work; `nil` while the thread waits.
        var token: WorkCount.Token?
    }

    private let state = Mutex(State())
    private let take: MockChunks.Take
    private let clock: TaskClock

    init(_ take: @escaping MockChunks.Take, _ clock: TaskClock) {
        self.take = take
        self.clock = clock
    }

    package var isDisconnected: Bool { state.withLock { $0.isCancelled } }

    /// The first error of the task that takes the bytes. The error ends the body.
    var failure: (any Error)? { state.withLock { $0.failure } }

    /// Delivers bytes. Blocks until the reader has room for more.
    ///
    /// - Returns: Whether the bytes were delivered.
    func write(_ data: Data) -> Bool {
        wait { [take] in try await take(data) }
    }

    func pause(for duration: Duration) {
        _ = wait { [clock] in try await clock.sleep(for: duration) }
    }

    /// Ends the current wait and all later waits of the thread.
    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            return state.work
        }?.cancel()
    }

    /// Replaces the token of the thread's work.
    ///
    /// - Returns: The old token, to be released outside the lock.
    @discardableResult
    fileprivate func replaceToken(by token: WorkCount.Token?) -> WorkCount.Token? {
        state.withLock { state in
            defer { state.token = token }
            return state.token
        }
    }

    /// Runs an operation in a Swift task and blocks the thread until it ends.
    ///
    /// - Returns: Whether the body can continue.
    private func wait(_ operation: @escaping @Sendable () async throws -> Void) -> Bool {
        let end = ThreadSignal()
        var token = replaceToken(by: nil)
        let work = Task(executorPreference: clock.executor) { [self] in
            do { try await operation() } catch { state.withLock { $0.failure = $0.failure ?? error } }
            replaceToken(by: clock.beginWork())
            end.signal()
        }
        let isCancelled = state.withLock { state in
            state.work = work
            return state.isCancelled
        }
        withExtendedLifetime(token) {}  // until the task counts
        token = nil
        if isCancelled { work.cancel() }
        end.wait()
        return state.withLock { $0.failure == nil && !$0.isCancelled }
    }
}

extension MockChunks {
    /// Creates the body that a closure writes on a background thread.
    init(writer: @escaping @Sendable (MockResponse.BodyWriter) throws -> Void) {
        self.init(produce: { take, clock in
            let body = WrittenBody(take, clock)
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    body.replaceToken(by: clock.beginWork())
                    DispatchQueue.global().async {
                        let result = Result { try writer(MockResponse.BodyWriter(body)) }
                        continuation.resume(with: body.failure.map { .failure($0) } ?? result)
                        body.replaceToken(by: nil)
                    }
                }
            } onCancel: {
                body.cancel()
            }
        })
    }
}
