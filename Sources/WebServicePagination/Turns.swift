import Foundation
import WebServiceCore

/// A queue whose members proceed one at a time, in the order of their arrival.
final class Turns: Sendable {
    /// The turn of a member: set when the member is first or gives up.
    typealias Turn = Once<Result<Void, any Error>>

    /// The members. The first one may proceed.
    private let queue = Mutex<[Turn]>([])

    /// Appends a member to the queue. The caller must call `leave(_:)` in every case.
    func enter() -> Turn {
        let turn = Turn()
        let isFirst = queue.withLock { queue in
            queue.append(turn)
            return queue.count == 1
        }
        if isFirst { turn.set(.success(())) }
        return turn
    }

    /// Waits until the member is first. Cancelling the Swift task ends the wait immediately.
    func wait(_ turn: Turn) async throws {
        try await turn.value(orIfCancelled: .failure(URLError(.cancelled))).get()
    }

    func leave(_ turn: Turn) {
        let next = queue.withLock { queue in
            queue.removeAll { $0 === turn }
            return queue.first
        }
        next?.set(.success(()))
    }
}
