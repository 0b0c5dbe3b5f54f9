public import Foundation
public import WebServiceCore

extension WebService {
    /// Opens an outbox, whose requests are still sent after a restart of the process, and starts to
    /// send them.
    ///
    /// ```swift
    /// let outbox = try service.outbox(in: folder)
    /// try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
    /// ```
    /// The method opens the folder. The entries are read in the background.
    ///
    /// - Parameters:
    ///   - folder: A folder that only outboxes use. It is created if necessary. Several processes
    ///     may open it at the same time.
    ///   - options: The settings. Defaults to those of ``Outbox/Options/init()``.
    ///   - onFailure: Decides what happens after a permanent failure. Called in the background; the
    ///     later entries of the same entity wait for it. Defaults to ``Outbox/Decision/keep``.
    /// - Throws: `WebServiceError.Code.storage` if the folder cannot be opened or its file system
    ///   does not support locks; `loggedOut`; `serviceInvalidated` after `Account.finish(within:)`.
    public func outbox(
        in folder: URL, options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) throws -> Outbox {
        try outbox(options, onFailure) { try OutboxFolder(folder) }
    }

    /// Opens an outbox that stores its entries in a certain place, unless the account of the
    /// service has ended.
    package func outbox(
        _ options: Outbox.Options,
        _ onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision,
        in open: () throws -> any OutboxStore
    ) throws -> Outbox {
        let token = accountScope?.begin()
        defer { withExtendedLifetime(token) {} }
        if accountScope != nil, token == nil { throw WebServiceError.loggedOut }
        if accountScope?.isFinishing == true {
            throw WebServiceError(
                .serviceInvalidated, "the account has finished, and opens no outbox; create another Account")
        }
        let store = try open()
        let outbox = Outbox(store, of: self, options: options, decide: onFailure)
        store.queue.run {
            outbox.findDamagedFiles()
            outbox.removeOrphans()
        }
        outbox.begin()
        return outbox
    }
}
