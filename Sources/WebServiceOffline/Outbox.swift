public import Foundation
public import WebServiceCore
public import WebServiceEndpoints

/// A queue of requests that are stored on the disk until they have succeeded.
///
/// ```swift
/// let outbox = try service.outbox(in: folder)
/// try await outbox.submit(service.request(.DELETE, path: "/todos/7"), entity: "todo/7")
/// ```
/// A request may be sent more than once. Every attempt has the same `Idempotency-Key`. The requests
/// of one entity are sent one after another, in the order in which they were submitted. Requests of
/// different entities and requests with neither an entity nor a key may be sent concurrently.
///
/// A request is sent again after a temporary failure, such as a transport error or a status in
/// `RetryPolicy.defaultStatuses`. By default, the number of attempts is not limited. After a status
/// from 200 to 299, the request is removed, unless the status is 207 or the response is an HTML
/// page. Most other responses are permanent failures. A redirect that changes the method or leads
/// to another origin is not followed, and is also a permanent failure. The article of this module
/// lists all failures.
///
/// A failure that does not concern only one request pauses the whole outbox. Such failures are a
/// missing connection, status 429 or 503, and temporary failures of 10 entries in succession. After
/// the pause, one request at a time is sent until a response is not a temporary failure.
///
/// If several processes have opened the outbox, only one of them sends requests. If this process
/// ends, another one usually takes over within about a second. After the outbox has been closed or
/// deallocated, this process sends no further requests until it opens the outbox again.
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

    /// Stores a request and returns its identifier. The request is sent in the background.
    ///
    /// When the method returns, the request is on the disk (`fsync`). If the method throws an
    /// error, the request is not sent, unless the folder could be neither flushed nor changed, or
    /// the power fails before it can be flushed. A call that has begun is completed even if its
    /// Swift task is cancelled.
    ///
    /// If the body is or contains a file, the method copies the file without loading it into
    /// memory. Files are copied in the order of the submissions. A file may be changed or removed
    /// after the method has returned. If a file changes while it is copied, the method throws
    /// `encoding`.
    ///
    /// The method, the URL, the header fields and the body are stored. If the URL is below the base
    /// URL, it is stored relative to the base URL. The service's current header fields, options and
    /// interceptors apply when the request is sent. The request's own options are ignored. Add
    /// credentials with an interceptor, such as `Authentication`. Do not put secrets into the URL
    /// or the body.
    ///
    /// - Parameters:
    ///   - request: The request. Its body must be in memory, a file, or a multipart form of both.
    ///   - entity: The identifier of the object that the request changes. Defaults to `nil`, which
    ///     means that the request is independent of all others.
    ///   - key: The key with which this request replaces earlier requests of the same entity. If
    ///     `entity` is `nil`, it replaces earlier requests without an entity. When the method
    ///     returns, the earlier requests with the same key have been removed. If one of them is
    ///     being sent, it is not cancelled: it is not sent again after a failure, and this request
    ///     is sent after it. Defaults to `nil`.
    ///   - expirationDate: The date from which the request is no longer sent, measured by the
    ///     service's clock. `onFailure` then receives the error `entryExpired`. If the request is
    ///     in flight at this date, its result counts. Defaults to `nil`, which means that the
    ///     request does not expire.
    ///   - storesResponse: Whether the response that removes the entry is stored until
    ///     ``removeResponse(of:)`` is called; see ``responses``. Defaults to `false`.
    /// - Throws: `WebServiceError.Code.storage`, with the error of the system or the database, if
    ///   the request cannot be written; `outboxFull` if there are already `Options.maximumCount`
    ///   entries and stored responses; `entryTooLarge` if a body in memory exceeds
    ///   `Options.maximumBodyBytes`, or if a body with files exceeds `Options.maximumFileBytes`;
    ///   `invalidHeader` if the name of a header field resembles that of a credential; `encoding`
    ///   for a stream, a body provider, or a file that cannot be read; `outboxClosed` after the
    ///   outbox was closed; or an error of encoding the request.
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

    /// Copies the body of a request if it contains files. The returned object prevents the removal
    /// of the copy.
    func copyBody(of stored: StoredRequest) async throws -> OutboxCopies.Copy? {
        guard let source = stored.source, let slot = stored.head.file?.slot else { return nil }
        // A log-out waits until the file has been closed.
        let token = service.accountScope?.begin()
        defer { withExtendedLifetime(token) {} }
        if service.accountScope != nil, token == nil { throw closedError }
        do {
            return try await onQueue("the body could not be copied", folder.copies.queue) { [self] in
                try folder.copies.write(source, of: stored.head.id, slot: slot) { !state.withLock(\.isClosed) }
            }
        } catch is CancellationError { throw closedError }
    }

    /// Adds a request and returns its identifier.
    private func add(_ stored: StoredRequest, _ copy: OutboxCopies.Copy?) async throws -> UUID {
        try await onQueue("the entry could not be written") { [self] in
            guard !state.withLock(\.isEnding) else { throw closedError }
            let added = try folder.add(stored, maximumCount: options.maximumCount)
            if let copy {
                copy.unlock()
                // Another process may already have sent and removed the entry. After a failure, the
                // copy is removed later as an orphan, because the entry has been submitted.
                try? folder.removeCopies(ifMissing: added.name)  // see above
            }
            if !added.replaced.isEmpty { change { state in added.replaced.forEach { state.replace($0) } } }
            // The list contains every entry whose submission had returned, because the list was
            // read after this submission began. If the whole list is known, no entry that precedes
            // this one is missing.
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
    /// The response is not decoded. Its status and media type determine whether the request has
    /// succeeded, as for any other request.
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
    /// If this process is sending the request of the entry, the request is cancelled, but the
    /// server may already have received it.
    ///
    /// - Returns: `false` if there is no such entry, for example because its request was already
    ///   sent.
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
    /// process is the one that sends. ``Options/canSend`` is called for each of them before.
    ///
    /// Call this method when the device has a connection again, or after a log-in. A pause of the
    /// whole outbox ends as well. One request at a time is then sent until a response ends the
    /// outage.
    ///
    /// - Parameter id: The identifier of the entry. Defaults to `nil`, which means all entries.
    public func retry(_ id: UUID? = nil) {
        change { state in
            state.outage.endPause()
            for id in id.map({ [$0] }) ?? Array(state.items.keys) { state.resume(id) }
        }
        sendNext()
    }

    /// Calls ``Options/canSend`` again for the entries that are held.
    ///
    /// Call this method when the result of `canSend` may have changed:
    ///
    /// ```swift
    /// for await _ in network.changes { outbox.reevaluate() }
    /// ```
    /// If a call of `canSend` is in progress and returns `false`, it is repeated. Entries that are
    /// blocked or pausing are not affected.
    public func reevaluate() {
        change { $0.reevaluate() }
        sendNext()
    }

    /// The entries, in the order of their submission.
    ///
    /// If another process sends the requests, the state of every entry is usually `waiting` in this
    /// process.
    public var entries: [Entry] {
        get async {
            let look = try? await onQueue("") { [self] in  // the work does not throw
                state.withLock { $0.items.values.sorted { $0.name < $1.name }.map(\.entry) }
            }
            return look ?? []
        }
    }

    /// Returns the request of an entry as it would be sent now, without the changes that
    /// interceptors make.
    ///
    /// If the request was submitted with a file, its body is the copy of the file, which exists
    /// until the entry is removed. Do not change the copy.
    ///
    /// - Returns: `nil` if there is no such entry, for example because it was already sent, or if
    ///   the entry is damaged.
    /// - Throws: `WebServiceError.Code.storage` if the entry cannot be read.
    public func request(of id: UUID) async throws -> Request? {
        try await onQueue("the entry could not be read") { [self] in
            guard let item = state.withLock({ $0.items[id] }),
                case .request(let stored) = try folder.content(of: item.name)
            else { return nil }
            return stored.request(for: service)
        }
    }

    /// The files that were renamed because they are damaged or have an unknown version, including
    /// those that earlier processes renamed. The outbox does not remove these files.
    public var damagedFiles: [URL] {
        get async {
            let names = try? await onQueue("") { [self] in state.withLock { $0.damaged.sorted() } }  // does not throw
            return (names ?? []).map { folder.url.appendingPathComponent($0, isDirectory: false) }
        }
    }

    /// The changes to the entries from now on, in the order in which they took place.
    ///
    /// Each sequence delivers all changes, but if more than 1,000 changes are unread, the oldest
    /// ones are lost. A sequence begins with the files that could not be read, and ends when the
    /// outbox is closed or deallocated.
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
    /// When the method returns, no request is in flight. The method waits for a call of `onFailure`
    /// or `canSend` that is in progress, so do not await this method in those closures.
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

    /// Begins no further requests, waits until the requests in flight have ended, and closes the
    /// outbox. At the limit, cancels the requests that are still in flight.
    ///
    /// Call this method when the program ends, for example in the handler of SIGTERM:
    /// ```swift
    /// if await !outbox.finish(within: .seconds(20)) { logger.warning("requests were cancelled") }
    /// ```
    /// - After the method has been called, `submit` throws `outboxClosed`, and no entry is sent or
    ///   reported as expired. A submission that began earlier is completed or throws the same
    ///   error.
    /// - The requests in flight continue, with the retries and redirects of the service. Their
    ///   results are stored as usual: either the changed entry or its removal is on the disk. After
    ///   a permanent failure, `onFailure` is called, and its decision applies. A replacement is
    ///   stored, and is sent the next time that the outbox is opened.
    /// - At the limit, or if the calling Swift task is cancelled, the requests are cancelled, and
    ///   their entries remain. Calls of `onFailure` and `canSend` are cancelled, and their results
    ///   have no effect. The method does not wait for these calls, so the closures may await this
    ///   method.
    /// - Finally, the method does the same as ``close()``: another process takes over. The
    ///   remaining entries are sent by that process, or when the outbox is opened again.
    ///
    /// Concurrent calls all wait until everything has ended or the earliest of their limits is
    /// reached. ``close()`` cancels the requests that they wait for. After ``close()``, no request
    /// is in flight, and this method returns immediately. The service is not changed.
    ///
    /// - Parameter limit: The maximum duration of the wait, on the service's clock.
    /// - Returns: Whether everything in flight ended; `false` if something was cancelled by this
    ///   call, by a concurrent call, by ``close()`` or by a log-out.
    @discardableResult
    public func finish(within limit: Duration) async -> Bool {
        _ = try? await clock.value(within: limit) { [self] in await finish() }  // a cancelled Swift task
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
                    : "\(complaint) in '\(folder.url.path)'; check its permissions and the free disk space")
        }
    }

    /// Changes the state, and delivers the changes of entries to the sequences. If another thread
    /// is already delivering changes, that thread also delivers these.
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

    /// Closes the outbox and removes the entries from memory.
    package func leave() async {
        await close()
        state.withLock { $0.removeAll() }
    }

    /// Begins no further requests, and waits until the requests in flight have ended.
    package func finish() async {
        for task in state.withLock({ $0.beginEnd() }) { await task.value }
    }

    /// Closes the outbox without waiting for custom closures.
    package func cancelRest() async { await close(waitsForClosures: false) }
}
