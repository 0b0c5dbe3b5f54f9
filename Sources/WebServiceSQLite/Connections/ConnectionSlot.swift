import WebServiceCore

/// A connection and its lock.
///
/// The connection is used either under the lock, for microseconds, or after the queue has taken it,
/// for work that may wait. I/O under the lock is intentional: the lock guards only the connection,
/// and the waiting threads would otherwise wait for SQLite's own lock.
final class ConnectionSlot: Sendable {
    private struct State {
        /// The connection. It is `nil` before the first use, after closing, and while the queue
        /// uses the connection.
        var idle: Connection?
        /// The number of times that the slot was closed.
        ///
        /// It prevents a connection that was taken before the slot was closed from being put back.
        var closings = 0
    }

    let queue: BlockingQueue
    private let clock: TaskClock
    private let nanosecondsBetweenLooks: UInt64
    private let state = Mutex(State())

    init(_ name: String, clock: TaskClock, nanosecondsBetweenLooks: UInt64) {
        queue = BlockingQueue("WebService.SQLiteStorage.\(name)")
        self.clock = clock
        self.nanosecondsBetweenLooks = nanosecondsBetweenLooks
    }

    /// Executes work with the connection under the lock.
    ///
    /// - Returns: A `nil` value if there is no current connection or if the work fails. The queue
    ///   then executes the work again, with retries.
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

    /// Takes the connection for exclusive use. Also returns the number to pass to
    /// ``putBack(_:closings:)``.
    func take() -> (connection: Connection?, closings: Int) {
        state.withLock { state in
            let taken = (state.idle, state.closings)
            state = State(idle: nil, closings: taken.1)
            return taken
        }
    }

    /// Puts a connection back, unless the slot was closed in the meantime.
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
