import CSQLite
import WebServiceCore
import WebServiceStorage

/// A connection for reading and a connection for writing, so that reads do not wait for writes.
///
/// The pair retries work after failures, and reopens connections if necessary.
final class ConnectionPair: Sendable {
    let reader: ConnectionSlot
    let writer: ConnectionSlot
    private let files: DatabaseFiles
    private let durability: StorageEntry.Durability
    private let clock: TaskClock
    private let patience: Duration
    private let isForked: Bool

    /// - Parameters:
    ///   - patience: The timeout for a busy database.
    ///   - isForked: Whether the process was forked.
    init(
        files: DatabaseFiles, durability: StorageEntry.Durability, clock: TaskClock, patience: Duration,
        isForked: Bool = false
    ) {
        self.files = files
        self.durability = durability
        self.clock = clock
        self.patience = patience
        self.isForked = isForked
        reader = ConnectionSlot("reader", clock: clock, nanosecondsBetweenLooks: 100_000_000)
        writer = ConnectionSlot("writer", clock: clock, nanosecondsBetweenLooks: 0)
    }

    /// Executes work on the caller's thread if the work takes only microseconds.
    ///
    /// - Returns: `nil` if ``later(_:_:_:)`` must execute the work.
    func now<Value: Sendable>(_ slot: ConnectionSlot, _ work: (Connection) throws -> Value?) -> Value? {
        let (value, checkpointIsDue) = slot.useAtOnce(work)
        if checkpointIsDue { checkpoint(slot) }
        return value
    }

    /// Executes work on the queue of the slot. The work may wait for the disk and for other
    /// processes.
    ///
    /// - Parameter name: A verb phrase that describes the work in errors.
    func later<Value: Sendable>(
        _ slot: ConnectionSlot, _ name: String, _ work: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        // The timeout includes the time in the queue, so that the waiting times for the database do
        // not add up.
        let end = clock.now.addingSaturated(patience)
        let token = WorkCount.current?.begin()
        return try await withCheckedThrowingContinuation { continuation in
            let body: @Sendable () -> Void = {
                defer { withExtendedLifetime(token) {} }
                continuation.resume(with: Result { try self.use(slot, name, until: end, work) })
            }
            slot.queue.run(body)
        }
    }

    /// Executes work on the caller's thread. The work may wait for the disk and for other
    /// processes.
    ///
    /// - Parameters:
    ///   - name: A verb phrase that describes the work in errors.
    ///   - end: The instant at which waiting for a busy database ends. Defaults to `nil`, which
    ///     means after the timeout.
    func use<Value>(
        _ slot: ConnectionSlot, _ name: String, until end: UInt64? = nil, _ work: (Connection) throws -> Value
    ) throws -> Value {
        do {
            let (value, checkpointIsDue) = try perform(slot, until: end ?? clock.now.addingSaturated(patience)) {
                (try work($0), $0.takeCheckpointIsDue())
            }
            if checkpointIsDue { checkpoint(slot) }
            return value
        } catch let error as SQLiteError {
            throw WebServiceError(
                error.isTooBig ? .entryTooLarge : .storage,
                "the database '\(files.database)' could not \(name): \(error.message)\(error.remedy)",
                underlying: error)
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the database '\(files.database)' could not be opened")
        }
    }

    func close() {
        reader.close()
        writer.close()
    }

    /// Closes the connections after the changes in progress have been made, and deletes all files.
    func erase() async throws {
        try await writer.queue.result { [self] in
            close()
            do throws(SystemFailure) { try files.delete() } catch {
                throw error.error(.storage, "the database could not be deleted")
            }
        }
    }

    private func checkpoint(_ slot: ConnectionSlot) {
        let end = clock.now.addingSaturated(patience)
        let body: @Sendable () -> Void = {
            try? self.perform(slot, until: end) {  // on failure, the next write tries again
                try $0.checkpoint()
            }
        }
        // The checkpoint of an outbox must not open the database after the outbox was closed.
        if isForked || files.purpose == .outbox { body() } else { slot.queue.run(body) }
    }

    /// Executes work with the connection of a slot.
    ///
    /// Retries while the database is busy. After a failure, retries once with new connections. If
    /// two consecutive attempts report the database as damaged, retries with a new database. A
    /// single report is not sufficient, because SQLite also reports a failed read (`EIO`) as
    /// damage.
    private func perform<Value>(
        _ slot: ConnectionSlot, until end: UInt64, _ work: (Connection) throws -> Value
    ) throws -> Value {
        var pause: Int32 = 1
        var (failures, reportsOfDamage) = (0, 0)
        var before: DatabaseFiles.Snapshot?
        var damaged: FileIdentity?
        while true {
            let (idle, closings) = takeCurrent(slot, &before)
            var used = idle
            do {
                let connection = try idle ?? open(after: before, instead: damaged)
                used = connection
                let value = try work(connection)
                slot.putBack(connection, closings: closings)
                return value
            } catch let error as SQLiteError where error.isTooBig || error.isBusy && clock.now < end {
                if let used { slot.putBack(used, closings: closings) }
                if error.isTooBig { throw error }
                sqlite3_sleep(.random(in: 1...pause))
                pause = min(pause * 2, 16)
            } catch let error as SQLiteError {
                // Closing the connection rolls back unfinished changes.
                close()
                failures += 1
                reportsOfDamage = error.isDamage ? reportsOfDamage + 1 : 0
                let isRepeated = error.isDamage ? reportsOfDamage <= 2 : failures == 1
                guard !error.isBusy, isRepeated else { throw error }
                if reportsOfDamage == 2 { damaged = used?.snapshot.database?.file }
            }
        }
    }

    /// Takes the connection of a slot. If the files have changed, closes all connections.
    private func takeCurrent(
        _ slot: ConnectionSlot, _ before: inout DatabaseFiles.Snapshot?
    ) -> (connection: Connection?, closings: Int) {
        let taken = slot.take()
        guard let connection = taken.connection, !slot.isCurrent(connection) else { return taken }
        before = connection.snapshot
        close()
        return slot.take()
    }

    /// Opens the database, or creates a new one if the database is damaged.
    ///
    /// An unreadable database is moved aside, but never one that another process has created to
    /// replace it.
    private func open(after before: DatabaseFiles.Snapshot?, instead damaged: FileIdentity?) throws -> Connection {
        try files.exclusively(durability) {
            if let before { try files.deleteLog(ifStrangeTo: before) }
            if let damaged, damaged == (try files.snapshot()).database?.file { try files.moveAside() }
            try files.makeDatabase()
            // The second attempt confirms the report of the first attempt.
            for _ in 0..<2 {
                do {
                    return try Connection(files, durability: durability, clock: clock)
                } catch let error as SQLiteError where error.isForeign {}
            }
            try files.moveAside()
            try files.makeDatabase()
            return try Connection(files, durability: durability, clock: clock)
        }
    }
}
