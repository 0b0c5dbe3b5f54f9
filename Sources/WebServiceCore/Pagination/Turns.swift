import Foundation

/// Lets one after another go on, in the order in which they came.
final class Turns: Sendable {
    private struct State {
        /// The first one has its turn.
        var queue: [UInt64] = []
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Takes a place at the end of the queue, to be left by ``leave(_:)`` whatever comes of it.
    func enter() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            state.queue.append(state.lastID)
            return state.lastID
        }
    }

    /// Returns when it is this one's turn; cancelling the Swift task ends the wait at once.
    func wait(_ id: UInt64) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                let isItsTurn = state.withLock { state in
                    if state.queue.first != id { state.waiters[id] = waiter }
                    return state.queue.first == id
                }
                if isItsTurn { waiter.resume() }
                // A cancel that came before has found nobody to tell.
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
