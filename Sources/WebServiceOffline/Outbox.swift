public import Foundation
public import WebServiceCore
public import WebServiceEndpoints

/// Requests that are stored on the disk until they have succeeded.
///
/// ```swift
/// let outbox = try service.outbox(in: folder)
/// try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
/// ```
/// Each request is sent at least once. Every attempt has the same `Idempotency-Key`. The requests
/// of one entity are sent one after another in the order in which they were submitted. Those of
/// different entities, and those without an entity, are sent concurrently. A request is sent again
/// after a temporary failure, such as a transport error or a status of
/// `RetryPolicy.defaultStatuses`. By default, the number of attempts is not limited. After a status
/// from 200 to 299, the request is removed, unless the response is an HTML page or has status 207.
/// A redirect that changes the method or leads to another origin is not followed: it is a permanent
/// failure, as most other responses are. The article of the module lists all of them.
///
/// A failure that does not concern one request alone pauses the whole outbox: no connection, a
/// status of 429 or 503, or temporary failures of 10 entries in succession. After the pause, one
/// request at a time is sent until a response is not a temporary failure.
///
/// Only one of the processes that have opened the outbox sends. If it ends, another one takes over
/// within about a second. After the outbox is closed or deallocated, this process sends no further
/// request until it opens the outbox again.
///
/// All members may be used from any thread.
public final class Outbox: Sendable {
    let service: WebService
    let options: Options
    let folder: any OutboxStore
    let decide: @Sendable (Failure) async -> Decision
    let clock: TaskClock
    let state = Mutex(OutboxState())
    let watch = Mutex<FileWatch?>(nil)

    init(
        _ folder: any OutboxStore, of service: WebService, options: Options,
        decide: @escaping @Sendable (Failure) async -> Decision
    ) {
        self.folder = folder
        self.service = service
        self.options = options
        self.decide = decide
        clock = service.taskClock
        let date = clock.date
        folder.queue.run { folder.removeTemporaryFiles(before: date.addingTimeInterval(-3600)) }
        state.withLock { $0.hasCondition = options.canSend != nil }
        if service.accountScope?.add(self) == false { state.withLock { _ = $0.close() } }
    }

    deinit {
        let (observers, readers) = state.withLock { ($0.observers.values, $0.readers.values) }
        for observer in observers { observer.finish() }
        for reader in readers { reader.finish() }
    }

    /// Stores a request and returns its identifier. It is sent in the background.
    ///
    /// When the method returns, the request is on the disk (`fsync`). If the method throws an
    /// error, the request is not sent, unless the folder could be neither flushed nor changed. A
    /// call that has begun is completed even if its task is cancelled.
    ///
    /// A file is copied, in the order of the submissions and without loading it into memory, so it
    /// may be changed or removed when the method has returned. If it changes while it is copied, the
    /// method throws `encoding`.
    ///
    /// The method, the URL, the header fields and the body are stored. If the URL is below the base
    /// URL, it is stored relative to it. The service's current header fields, options and
    /// interceptors apply when the request is sent; the request's own options are ignored. Add
    /// credentials with an interceptor, such as `Authentication`. Do not put secrets into the URL
    /// or the body.
    ///
    /// - Parameters:
    ///   - request: The request. Its body is in memory, a file, or a multipart form of both.
    ///   - entity: The identifier of the object that the request changes. Defaults to `nil`: the
    ///     request is independent of all others.
    ///   - key: The key with which the request replaces earlier ones of the same entity, or of
    ///     none, that were submitted with the same key: when the method returns, they are removed,
    ///     except one that is being sent, after which this request is sent. Defaults to `nil`.
    ///   - expirationDate: The date from which the request is not sent, by the clock of the device.
    ///     `onFailure` then receives the error `entryExpired`. If a request is in flight at this
    ///     date, its result counts. Defaults to `nil`: none.
    ///   - storesResponse: Whether the response that removes the entry is stored until
    ///     ``removeResponse(of:)`` is called; see ``responses``. Defaults to `false`.
    /// - Throws: `WebServiceError.Code.storage`, with the error of the system or the database, if
    ///   the request cannot be written; `outboxFull` with `Options.maximumCount` entries;
    ///   `entryTooLarge` for a body in memory of more than `Options.maximumBodyBytes`, and one with
    ///   files of more than `Options.maximumFileBytes`; `invalidHeader` for a field whose name looks
    ///   like that of a credential; `encoding` for a stream, a provider, or a file that cannot be
    ///   read; `outboxClosed`; and the errors of encoding a request.
    @discardableResult
    public func submit(
        _ request: Request, entity: String? = nil, replacing key: String? = nil, expires expirationDate: Date? = nil,
        storesResponse: Bool = false
    ) async throws -> UUID {
        let entry = Entry(
            id: UUID(), entity: entity, date: clock.date, key: key, expirationDate: expirationDate,
            storesResponse: storesResponse)
        let stored = try StoredRequest(request, of: entry, service, options)
        let copy = try await copyBody(of: stored)
        do { return try await add(stored, copy) } catch {
            if let copy {
                copy.unlock()
                folder.queue.run { [self] in removeOrphans() }
            }
            throw error
        }
    }

    /// Copies the body of a request, if it is a file. The object prevents the removal of the copy.
    func copyBody(of stored: StoredRequest) async throws -> OutboxCopies.Copy? {
        guard let source = stored.source, let slot = stored.head.file?.slot else { return nil }
        // A log-out waits until the file is closed.
        let token = service.accountScope?.begin()
        defer { withExtendedLifetime(token) {} }
        if service.accountScope != nil, token == nil { throw closedError }
        do {
            return try await onQueue("the body could not be copied", folder.copies.queue) { [self] in
                try folder.copies.write(source, of: stored.head.id, slot: slot) { !state.withLock(\.isClosed) }
            }
        } catch is CancellationError { throw closedError }
    }

    /// Adds a request, and returns its identifier.
    private func add(_ stored: StoredRequest, _ copy: OutboxCopies.Copy?) async throws -> UUID {
        try await onQueue("the entry could not be written") { [self] in
            guard !state.withLock(\.isEnding) else { throw closedError }
            let added = try folder.add(stored, maximumCount: options.maximumCount)
            if let copy {
                copy.unlock()
                // Another process may have sent and removed the entry.
                if try !folder.contains(added.name) { folder.copies.remove(added.name) }
            }
            if !added.replaced.isEmpty { change { state in added.replaced.forEach { state.replace($0) } } }
            // An entry whose submission had returned is in the list, which was read after this
            // submission began. So if the whole list is known, no entry that precedes this one is
            // missing.
            if state.withLock({ state in added.earlier.allSatisfy { state.isKnown($0) } }) {
                insert(stored, named: added.name)
                sendNext()
            } else {
                read(upTo: added.name)
            }
            return stored.head.id
        }
    }

    /// Stores the request of a typed request; see
    /// ``submit(_:entity:replacing:expires:storesResponse:)-(Request,_,_,_,_)``.
    ///
    /// The response is not decoded. Whether it is a success depends on its status and media type,
    /// as for any other request.
    @discardableResult
    public func submit(
        _ request: some HTTPServiceRequest, entity: String? = nil, replacing key: String? = nil,
        expires expirationDate: Date? = nil, storesResponse: Bool = false
    ) async throws -> UUID {
        try await submit(
            try request.request(for: service), entity: entity, replacing: key, expires: expirationDate,
            storesResponse: storesResponse)
    }

    /// Removes an entry durably.
    ///
    /// A request in flight is cancelled if this process sends it; the server may have received it.
    ///
    /// - Returns: `false` if there is no such entry, for example because it was sent.
    /// - Throws: `WebServiceError.Code.storage` if the entry cannot be removed.
    @discardableResult
    public func remove(_ id: UUID) async throws -> Bool {
        try await onQueue("the entry could not be removed") { [self] in
            guard let item = state.withLock({ $0.items[id] }) else { return false }
            try folder.remove(item.name)
            change { $0.remove(id, as: .removed) }?.task?.cancel()
            sendNext()
            return true
        }
    }

    /// Immediately sends entries that are blocked, held, or pausing after a failure, if this
    /// process sends.
    ///
    /// Call this method when the device has a connection again, or after a log-in. A pause of the
    /// whole outbox ends as well; one request at a time is sent until a response ends the outage.
    ///
    /// - Parameter id: The entry. Defaults to `nil`: all entries.
    public func retry(_ id: UUID? = nil) {
        change { state in
            state.outage.endPause()
            for id in id.map({ [$0] }) ?? Array(state.items.keys) { state.resume(id) }
        }
        sendNext()
    }

    /// Calls ``Options/canSend`` again for the entries that are held.
    ///
    /// Call this method when the result may have changed:
    ///
    /// ```swift
    /// for await _ in network.changes { outbox.reevaluate() }
    /// ```
    /// A call of `canSend` that is in progress is repeated if it returns `false`. Other entries are
    /// not affected: those that are blocked or pausing remain so.
    public func reevaluate() {
        change { $0.reevaluate() }
        sendNext()
    }

    /// The entries, in the order of their submission.
    ///
    /// If another process sends, the state of all entries is `waiting` in this process.
    public var entries: [Entry] {
        get async {
            let look = try? await onQueue("") { [self] in  // the work does not throw
                state.withLock { $0.items.values.sorted { $0.name < $1.name }.map(\.entry) }
            }
            return look ?? []
        }
    }

    /// Returns the request of an entry as it would be sent now, without the changes by
    /// interceptors.
    ///
    /// If the request was submitted with a file, its body is the copy, which exists until the entry
    /// is removed. Do not change it.
    ///
    /// - Returns: `nil` if there is no such entry, for example because it was sent, or if it is
    ///   damaged.
    /// - Throws: `WebServiceError.Code.storage` if the entry cannot be read.
    public func request(of id: UUID) async throws -> Request? {
        try await onQueue("the entry could not be read") { [self] in
            guard let item = state.withLock({ $0.items[id] }),
                case .request(let stored) = try folder.content(of: item.name)
            else { return nil }
            return stored.request(for: service)
        }
    }

    /// The files that were renamed because they are damaged or of another version, including those
    /// that earlier processes renamed. The outbox does not remove these files.
    public var damagedFiles: [URL] {
        get async {
            let names = try? await onQueue("") { [self] in state.withLock { $0.damaged.sorted() } }  // does not throw
            return (names ?? []).map { folder.url.appendingPathComponent($0, isDirectory: false) }
        }
    }

    /// The changes from now on, in the order in which they took place.
    ///
    /// Each sequence delivers all of them; if more than 1,000 are unread, the oldest are lost. It
    /// begins with the files that could not be read. The sequence ends when the outbox is closed or
    /// deallocated.
    public var updates: AsyncStream<Update> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1_000)) { continuation in
            let id = UUID()
            let isClosed = state.withLock { state in
                guard !state.isClosed else { return true }
                state.observers[id] = continuation
                for name in state.unreadNames { continuation.yield(.unreadable(folder.file(of: name))) }
                if state.isUnreadable { continuation.yield(.unreadable(folder.place)) }
                return false
            }
            if isClosed { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in
                let removed = self?.state.withLock { $0.observers.removeValue(forKey: id) }
                withExtendedLifetime(removed) {}
            }
        }
    }

    /// Cancels the requests in flight, and lets another process send. The entries remain.
    ///
    /// When the method returns, nothing is in flight. The method waits for a call of `onFailure`
    /// that is in progress, so do not await it in that closure.
    public func close() async { await close(waitsForClosures: true) }

    private func close(waitsForClosures: Bool) async {
        let tasks = state.withLock { $0.close() }
        for task in tasks { task.cancel() }
        for task in waitsForClosures ? tasks : state.withLock(\.sendingTasks) { await task.value }
        if !tasks.isEmpty { await (service.session as? any SettlingSession)?.settle() }
        _ = try? await onQueue("") { [self] in  // does not throw
            change { state in
                state.release()
                state.endUpdates()
            }
            folder.unlock()
            watch.withLock { $0 = nil }
        }
    }

    /// Begins no further request, waits until those in flight have ended, and closes the outbox. At
    /// the limit, cancels what is still in flight.
    ///
    /// Call it when the program ends, for example in the handler of SIGTERM:
    /// ```swift
    /// if await !outbox.finish(within: .seconds(20)) { logger.warning("requests were cancelled") }
    /// ```
    /// - From the call on, `submit` throws `outboxClosed`, and no entry is sent or reported as
    ///   expired. A submission that has begun before is completed or throws the same error.
    /// - The requests in flight continue, with the retries and redirects of the service. Their
    ///   results are stored as usual: the entry or its removal is on the disk. After a permanent
    ///   failure, `onFailure` is called, and its decision counts. A replacement is stored and sent
    ///   the next time.
    /// - At the limit, or if the calling Swift task is cancelled, requests are cancelled, and their
    ///   entries remain. A call of `onFailure` or `canSend` is cancelled and not waited for, so it
    ///   may await this method. Its result then has no effect.
    /// - The method then does what ``close()`` does: another process takes over, and the entries
    ///   that remain are sent by it, or when the outbox is opened again.
    ///
    /// Concurrent calls all wait until everything has ended, or until the first of their limits.
    /// ``close()`` cancels what they wait for. After ``close()``, nothing is in flight, and the
    /// method returns at once. The service is not changed.
    ///
    /// - Parameter limit: The maximum duration of the wait, on the service's clock.
    /// - Returns: Whether everything in flight has ended; `false` if something was cancelled by
    ///   this call, another one, ``close()`` or a log-out.
    @discardableResult
    public func finish(within limit: Duration) async -> Bool {
        _ = try? await clock.value(within: limit) { [self] in await finish() }  // the cancellation of the Swift task
        await cancelRest()
        return !state.withLock(\.isCut)
    }

    private var closedError: WebServiceError {
        let scope = service.accountScope
        let remedy =
            switch (scope?.isEnded, scope?.isFinishing) {
            case (true?, _): " because its account is logged out; create another Account, and open its outbox"
            case (_, true?): " because its account has finished; create another Account, and open its outbox"
            default: "; open it again"
            }
        return WebServiceError(.outboxClosed, "the outbox in '\(folder.place.path)' is closed\(remedy)")
    }

    func onQueue<Result: Sendable>(
        _ complaint: String, _ queue: BlockingQueue? = nil, _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        do { return try await (queue ?? folder.queue).result(of: work) } catch let failure as SystemFailure {
            throw failure.error(
                .storage,
                failure.number == ENOENT
                    ? "the folder '\(folder.url.path)' of the outbox was removed; close the outbox and open it again"
                    : "\(complaint) in '\(folder.url.path)'; check its permissions and the space on the disk")
        }
    }

    /// Changes the state, and delivers the changes of entries to the sequences. If another thread
    /// delivers at this time, it also delivers these changes.
    @discardableResult
    func change<Result: Sendable>(_ body: (inout OutboxState) -> Result) -> Result {
        let (result, delivers) = state.withLock { state in (body(&state), state.delivery.begin()) }
        guard delivers else { return result }
        while let delivery = state.withLock({ $0.delivery.next() }) {
            switch delivery.change {
            case .update(let update): for observer in delivery.observers.values { observer.yield(update) }
            case .response(let name): for reader in delivery.readers.values { reader.yield(name) }
            case .end:
                for observer in delivery.observers.values { observer.finish() }
                for reader in delivery.readers.values { reader.finish() }
            }
        }
        return result
    }
}

extension Outbox: AccountMember {
    package func end() {}

    /// Closes the outbox, and releases the entries.
    package func leave() async {
        await close()
        state.withLock { $0.removeAll() }
    }

    /// Begins no further request, and waits until those in flight have ended.
    package func finish() async {
        for task in state.withLock({ $0.beginEnd() }) { await task.value }
    }

    /// Closes the outbox without waiting for custom closures.
    package func cancelRest() async { await close(waitsForClosures: false) }
}
