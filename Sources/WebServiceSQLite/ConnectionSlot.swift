import Dispatch
import WebServiceCore

/// One connection, and the lock of whoever uses it.
///
/// It is used at once, under the lock, which takes some microseconds; or taken out by the queue, for work that waits. That there is I/O under a lock is
/// on purpose: the lock guards nothing but the connection, and who waits for it would have to wait for SQLite's own otherwise.
final class ConnectionSlot: Sendable {
    private struct State {
        /// `nil` before the first use, after closing, and while the queue has it.
        var idle: Connection?
        /// How often it was closed, so that what was taken out before is not put back.
        var closings = 0
    }

    let queue: DispatchQueue
    private let clock: TaskClock
    private let nanosecondsBetweenLooks: UInt64
    private let state = Mutex(State())

    init(_ name: String, clock: TaskClock, nanosecondsBetweenLooks: UInt64) {
        queue = DispatchQueue(label: "WebService.SQLiteStorage.\(name)")
        self.clock = clock
        self.nanosecondsBetweenLooks = nanosecondsBetweenLooks
    }

    /// Does something with the connection; `nil` when it is not there, not up to date, or when that fails: the queue then does it again, thoroughly.
    func useAtOnce<Value: Sendable>(_ body: (Connection) throws -> Value?) -> (value: Value?, checkpointIsDue: Bool) {
        state.withLock { state in
            guard let connection = state.idle, isCurrent(connection) else { return (nil, false) }
            do {
                return (try body(connection), connection.takeCheckpointIsDue())
            } catch {
                return (nil, false)
            }
        }
    }

    func isCurrent(_ connection: Connection) -> Bool {
        connection.isCurrent(clock, lookingEvery: nanosecondsBetweenLooks)
    }

    /// The connection, which nobody else has then, and a number to put it back with.
    func take() -> (connection: Connection?, closings: Int) {
        state.withLock { state in
            let taken = (state.idle, state.closings)
            state = State(idle: nil, closings: taken.1)
            return taken
        }
    }

    /// Puts a connection back, unless the slot was closed since.
    func putBack(_ connection: Connection, closings: Int) {
        let rest = state.withLock { state -> Connection? in
            guard state.closings == closings else { return connection }
            state.idle = connection
            return nil
        }
        withExtendedLifetime(rest) {}
    }

    func close() {
        let closed = state.withLock { state in
            let idle = state.idle
            state = State(idle: nil, closings: state.closings + 1)
            return idle
        }
        withExtendedLifetime(closed) {}
    }
}
