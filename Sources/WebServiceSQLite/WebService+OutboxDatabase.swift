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
    /// An outbox in a database has the same guarantees as an outbox in a folder, and is suitable
    /// for many requests. When `submit` returns, the entry is in the log of the database and has
    /// been flushed to the disk. The database is opened in the background. If the database is
    /// damaged or does not belong to an outbox, it is renamed with the suffix `.damaged` and
    /// reported by `Outbox.damagedFiles`. A damaged entry becomes a file with this suffix.
    ///
    /// - Parameters:
    ///   - file: The URL of the database file, which only outboxes use. The file and its folder are
    ///     created if necessary. Several processes may open the database at the same time.
    ///   - options: The settings of the outbox. Defaults to those of `Outbox.Options`.
    ///   - onFailure: Decides what happens after a permanent failure. It is called in the
    ///     background, and the later entries of the same entity wait for it. Defaults to a closure
    ///     that returns `Outbox.Decision.keep`.
    /// - Throws: `WebServiceError.Code.storage` if the folder cannot be opened or its file system
    ///   does not support locks; `loggedOut` if the account of the service is logged out; or
    ///   `serviceInvalidated` after `Account.finish(within:)`.
    public func outbox(
        inDatabase file: URL, options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) throws -> Outbox {
        try outbox(options, onFailure) { try OutboxDatabase(file) }
    }
}
