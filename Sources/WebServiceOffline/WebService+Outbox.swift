public import Foundation
public import WebServiceCore

extension WebService {
    /// Opens an outbox and starts to send its requests. Requests that were stored before a restart
    /// of the process are included.
    ///
    /// ```swift
    /// let outbox = try service.outbox(in: folder)
    /// try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
    /// ```
    /// The method only opens the folder. The entries are read in the background.
    ///
    /// - Parameters:
    ///   - folder: A folder that only outboxes use. It is created if necessary. Several processes
    ///     may open it at the same time.
    ///   - options: The settings of the outbox. Defaults to ``Outbox/Options/init()``.
    ///   - onFailure: Decides what happens after a permanent failure. It is called in the
    ///     background, and the later entries of the same entity wait for it. Defaults to a closure
    ///     that returns ``Outbox/Decision/keep``.
    /// - Throws: `WebServiceError.Code.storage` if the folder cannot be opened or its file system
    ///   does not support locks; `loggedOut` if the account of the service is logged out; or
    ///   `serviceInvalidated` after `Account.finish(within:)`.
    public func outbox(
        in folder: URL, options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) throws -> Outbox {
        try outbox(options, onFailure) { try OutboxFolder(folder) }
    }

    /// Opens an outbox with a custom store, unless the account of the service has ended.
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
                .serviceInvalidated, "the account has finished and cannot open an outbox; create another Account")
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
