import Foundation

/// A queue whose members proceed one at a time, in the order of their arrival.
final class Turns: Sendable {
    private struct State {
        /// The first member may proceed.
        var queue: [UInt64] = []
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Appends a member to the queue. The caller must call ``leave(_:)`` in every case.
    func enter() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            state.queue.append(state.lastID)
            return state.lastID
        }
    }

    /// Waits until the member is first. Cancelling the Swift task ends the wait immediately.
    func wait(_ id: UInt64) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                let isItsTurn = state.withLock { state in
                    if state.queue.first != id { state.waiters[id] = waiter }
                    return state.queue.first == id
                }
                if isItsTurn { waiter.resume() }
                // A cancellation before this line found no waiter.
                if Task.isCancelled { giveUp(id) }
            }
        } onCancel: {
            giveUp(id)
        }
    }

    func leave(_ id: UInt64) {
        let next = state.withLock { state in
            state.queue.removeAll { $0 == id }
            return state.queue.first.flatMap { state.waiters.removeValue(forKey: $0) }
        }
        next?.resume()
    }

    private func giveUp(_ id: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: URLError(.cancelled))
    }
}
