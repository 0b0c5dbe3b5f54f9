/// A queue whose members proceed one at a time, in the order of their arrival.
///
/// This value is part of a state that a lock protects. If ``leave(_:)`` returns a turn, the caller
/// sets it outside the lock.
package struct Turns: Sendable {
    /// The turn of a member, which is set when the member becomes the first one or gives up.
    package typealias Turn = Once<Result<Void, any Error>>

    /// The members. The first one may proceed.
    private var turns: [Turn] = []

    package init() {}

    /// The number of members, including the first one.
    package var count: Int { turns.count }

    /// Appends a member, which must leave in every case.
    package mutating func enter() -> Turn {
        let turn = Turn()
        if turns.isEmpty { turn.set(.success(())) }
        turns.append(turn)
        return turn
    }

    /// Removes a member. Later calls for the same member have no effect.
    ///
    /// - Returns: The turn of the member that is now first, to be set to a success.
    package mutating func leave(_ turn: Turn) -> Turn? {
        turns.removeAll { $0 === turn }
        return turns.first
    }
}
