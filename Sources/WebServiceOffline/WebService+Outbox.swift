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
    ///   does not support locks.
    public func outbox(
        in folder: URL, options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) throws -> Outbox {
        outbox(try OutboxFolder(folder), options, onFailure)
    }

    /// Opens an outbox that stores its entries in a certain place.
    package func outbox(
        _ store: any OutboxStore, _ options: Outbox.Options,
        _ onFailure: @escaping @Sendable (_ failure: Outbox.Failure) async -> Outbox.Decision
    ) -> Outbox {
        let outbox = Outbox(store, of: self, options: options, decide: onFailure)
        store.queue.run { outbox.findDamagedFiles() }
        outbox.poll()
        return outbox
    }
}
