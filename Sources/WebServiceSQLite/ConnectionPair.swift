import CSQLite
import Dispatch
import WebServiceCore

/// A connection that reads and one that writes, so that reads do not wait for writes, and what is done when one of them cannot go on.
final class ConnectionPair: Sendable {
    let reader: ConnectionSlot
    let writer: ConnectionSlot
    private let files: DatabaseFiles
    private let durability: StorageDurability
    private let clock: TaskClock
    private let patience: Duration
    private let isForked: Bool

    /// - Parameters:
    ///   - patience: How long somebody else may keep the database before it is an error.
    ///   - isForked: Whether the process was forked: there, no thread runs what is left to a queue.
    init(files: DatabaseFiles, durability: StorageDurability, clock: TaskClock, patience: Duration, isForked: Bool = false) {
        self.files = files
        self.durability = durability
        self.clock = clock
        self.patience = patience
        self.isForked = isForked
        reader = ConnectionSlot("reader", clock: clock, nanosecondsBetweenLooks: 100_000_000)
        writer = ConnectionSlot("writer", clock: clock, nanosecondsBetweenLooks: 0)
    }

    /// Does something at once on the thread of the caller, where that takes some microseconds; `nil` when it has to be done ``later(_:_:_:)``.
    func now<Value: Sendable>(_ slot: ConnectionSlot, _ work: (Connection) throws -> Value?) -> Value? {
        let (value, checkpointIsDue) = slot.useAtOnce(work)
        if checkpointIsDue { checkpoint(slot) }
        return value
    }

    /// Does something on the queue of the slot, where it may wait for the disk and for others.
    ///
    /// - Parameter name: What it is, for the error.
    func later<Value: Sendable>(
        _ slot: ConnectionSlot, _ name: String, _ work: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        // What waits on the queue for others that wait for the database does not wait longer for that.
        let end = clock.now.addingSaturated(patience)
        return try await withCheckedThrowingContinuation { continuation in
            let body: @Sendable () -> Void = {
                do {
                    let (value, checkpointIsDue) = try self.perform(slot, until: end) { (try work($0), $0.takeCheckpointIsDue()) }
                    if checkpointIsDue { self.checkpoint(slot) }
                    continuation.resume(returning: value)
                } catch let error as SQLiteError {
                    let code: WebServiceError.Code = error.isTooBig ? .entryTooLarge : .storage
                    continuation.resume(throwing: WebServiceError(code, "\(error.message), in an attempt to \(name)", underlying: error))
                } catch let failure as SystemFailure {
                    continuation.resume(throwing: failure.error("the database could not be opened"))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            if isForked { slot.queue.sync(execute: body) } else { slot.queue.async(execute: body) }
        }
    }

    func close() {
        reader.close()
        writer.close()
    }

    private func checkpoint(_ slot: ConnectionSlot) {
        let end = clock.now.addingSaturated(patience)
        let body: @Sendable () -> Void = {
            try? self.perform(slot, until: end) { try $0.checkpoint() }  // the log grows on, and the next write tries again
        }
        if isForked { body() } else { slot.queue.async(execute: body) }
    }

    /// Does something with the connection of a slot: again while the database is busy, once more with new connections after a failure, and with a new
    /// database when the old one is damaged.
    private func perform<Value>(_ slot: ConnectionSlot, until end: UInt64, _ work: (Connection) throws -> Value) throws -> Value {
        var pause: Int32 = 1
        var failures = 0
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
                // What has failed half-way is rolled back when its connection is closed.
                close()
                failures += 1
                guard !error.isBusy, failures <= (error.isDamage ? 2 : 1) else { throw error }
                if failures == 2 { damaged = used?.snapshot.database?.file }
            }
        }
    }

    /// The connection of a slot. Where the files are not those that it has open, all connections are closed.
    private func takeCurrent(_ slot: ConnectionSlot, _ before: inout DatabaseFiles.Snapshot?) -> (connection: Connection?, closings: Int) {
        let taken = slot.take()
        guard let connection = taken.connection, !slot.isCurrent(connection) else { return taken }
        before = connection.snapshot
        close()
        return slot.take()
    }

    /// Opens the database, or a new one when it is damaged. What cannot be read is moved aside, but never what another has just put in its place.
    private func open(after before: DatabaseFiles.Snapshot?, instead damaged: FileIdentity?) throws -> Connection {
        try files.exclusively(durability) {
            if let before { try files.deleteLog(ifStrangeTo: before) }
            if let damaged, damaged == (try files.snapshot()).database?.file { try files.moveAside() }
            try files.makeDatabase()
            do {
                return try Connection(files, durability: durability, clock: clock)
            } catch let error as SQLiteError where error.isForeign {
                try files.moveAside()
                try files.makeDatabase()
                return try Connection(files, durability: durability, clock: clock)
            }
        }
    }
}
