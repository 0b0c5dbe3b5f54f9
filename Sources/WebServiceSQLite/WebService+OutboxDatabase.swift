public import Foundation
public import WebServiceCore
public import WebServiceOffline

extension WebService {
    /// Opens an outbox that stores its requests in an SQLite database, and starts to send them.
    ///
    /// ```swift
    /// let outbox = try service.outbox(inDatabase: folder.appendingPathComponent("outbox.sqlite"))
    /// try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
    /// ```
    /// An outbox in a database has the same guarantees as one in a folder, and is suitable for many
    /// requests. When `submit` returns, the entry is in the log of the database
    /// and flushed to the disk. The database is opened in the background. A damaged database, or
    /// one that does not belong to an outbox, is renamed with the suffix `.damaged` and reported by
    /// `Outbox.damagedFiles`. A damaged entry becomes a file with this suffix.
    ///
    /// - Parameters:
    ///   - file: The URL of the database, which only outboxes use. It is created if necessary,
    ///     together with its folder. Several processes may open it at the same time.
    ///   - options: The settings. Defaults to those of `Outbox.Options`.
    ///   - onFailure: Decides what happens after a permanent failure. Called in the background; the
    ///     later entries of the same entity wait for it. Defaults to `Outbox.Decision.keep`.
    /// - Throws: `WebServiceError.Code.storage` if the folder cannot be opened or its file system
    ///   does not support locks.
    public func outbox(
        inDatabase file: URL, options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) throws -> Outbox {
        try outbox(options, onFailure) { try OutboxDatabase(file) }
    }
}
