public import Foundation
public import WebServiceCore
public import WebServiceStorage

/// Everything that belongs to one user: services, cookies, stored responses, outboxes, and a folder
/// that contains the files of all of them.
///
/// ```swift
/// let account = try Account(in: folder)
/// let service = account.service(like: api)
/// service.interceptors.append(Authentication(tokens))
/// service.storages = [account.storage(try SQLiteStorage(file: account.file("responses.sqlite")))]
/// let outbox = try service.outbox(in: account.file("outbox"))
/// // …
/// try await account.logOut()
/// ```
/// After ``logOut()`` has returned, no request of the account is sent, no response is stored, and
/// the account's data has been removed from memory and from the disk.
///
/// Several accounts with different folders can be used at the same time. They share nothing unless
/// you pass the same object, such as a session, to both. To switch users, log out and create
/// another account, or keep both accounts.
///
/// All members may be used from any thread.
public final class Account: Sendable {
    /// The folder that only this account uses.
    public let folder: URL
    /// The cookies of the account. They are read from the folder when the account is created, and
    /// written by ``writeCookies(includingSessionCookies:)``.
    public let cookieJar: CookieJar

    private static let cookieFile = "cookies.json"

    private struct State {
        var storages: [AccountStorage] = []
        var logOut: Task<Void, any Error>?
    }

    let ownFolder: AccountFolder
    private let limit: Duration
    private let scope = AccountScope()
    private let state = Mutex(State())
    private let queue = BlockingQueue("WebService.Account")

    /// Opens the folder of an account. If an earlier process began a log-out in the folder but did
    /// not complete it, the log-out is completed first.
    ///
    /// The folder belongs to one account until that account logs out, even if the folder is opened
    /// again. After that, it belongs to the next account. Open the folder only once: several
    /// objects with the same folder represent the same account, and when one of them logs out, the
    /// data of all of them is removed.
    ///
    /// - Parameters:
    ///   - folder: A folder that only this account uses, in one process at a time. It must be empty
    ///     or belong to an account, which the file `.account` identifies. If the folder does not
    ///     exist, it is created with access only for its owner.
    ///   - logOutLimit: The maximum duration for which ``logOut()`` waits for the account's work.
    ///     Defaults to 5 seconds.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not a local file URL, if an account
    ///   in the folder is logging out, if the folder contains other files, if the folder cannot be
    ///   created or emptied, or if the cookies in it cannot be read.
    public init(in folder: URL, logOutLimit: Duration = .seconds(5)) throws {
        let folder = folder.standardizedFileURL.resolvingSymlinksInPath()  // otherwise only the link would be removed
        guard folder.isFileURL, !folder.path.utf8.contains(0), folder.pathComponents.count > 1 else {
            throw WebServiceError(
                .storage, "the folder of an account must be a local file URL; use URL(fileURLWithPath:)")
        }
        self.folder = folder
        limit = logOutLimit
        try Self.checkLogOuts(in: folder)
        ownFolder = try AccountFolder(opening: folder)
        try Self.checkLogOuts(in: folder)  // a log-out may have begun in the meantime
        cookieJar = try CookieJar(contentsOf: folder.appendingPathComponent(Self.cookieFile, isDirectory: false))
    }

    private static func checkLogOuts(in folder: URL) throws {
        guard AccountFolder.logOuts.withLock({ $0[folder.path] }) == nil else {
            throw WebServiceError(
                .storage,
                "an account in the folder '\(folder.path)' is logging out; wait until its logOut() has returned")
        }
    }

    /// Removes the folders of accounts whose log-out was not completed because the process ended.
    /// Call this method when the program starts, before it opens an account. Storage entries
    /// outside these folders are not removed. Folders that belong to other users or to no account
    /// are ignored.
    ///
    /// - Parameter parent: The folder that contains the folders of the accounts.
    /// - Throws: `WebServiceError.Code.storage` if the parent cannot be read, or if the folder of
    ///   an account cannot be emptied. The other folders are still removed.
    public static func finishLogOuts(in parent: URL) throws { try AccountFolder.finishLogOuts(in: parent) }

    /// Whether a log-out has begun.
    public var isLoggedOut: Bool { scope.isEnded }

    /// Whether ``finish(within:)`` was called.
    var isFinishing: Bool { scope.isFinishing }

    /// Returns the URL of a file or folder in the account's folder.
    public func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// Returns a service of the account with the configuration of another service.
    ///
    /// The new service uses the account's ``cookieJar`` and has no storages. Its clones also belong
    /// to the account. Interceptors that contain data of a user, such as `Authentication` and
    /// `ResponseCache`, must not be shared between accounts. Add them to the service that this
    /// method returns.
    ///
    /// After a log-out has begun, the method returns a service that sends no requests
    /// (`WebServiceError.Code.serviceInvalidated`).
    public func service(like template: WebService) -> WebService { template.clone(in: scope, cookieJar) }

    /// Returns a storage of the account, for `WebService.storages` or for a `ResponseCache`.
    ///
    /// When the account logs out, all data of the original storage is removed. A database is
    /// deleted together with its log. From then on, the returned storage has no entries, and
    /// storing fails with `WebServiceError.Code.loggedOut`.
    ///
    /// - Parameter storage: The original storage, which only this account uses. Its files may be
    ///   outside ``folder``.
    public func storage(_ storage: any ResponseStorage) -> any ResponseStorage {
        let storage = AccountStorage(storage, scope)
        state.withLock { $0.storages.append(storage) }
        guard scope.isEnded else { return storage }
        beginChanges()
        Task { [self] in
            try? await eraseStorages(isRepeated: true)  // the log-out reports its own errors
            endChanges()
        }
        return storage
    }

    /// Writes the cookies to a file in the folder and flushes the file to the disk.
    ///
    /// - Parameter includingSessionCookies: Whether cookies without an expiration date are also
    ///   written. Defaults to `false`.
    /// - Throws: `WebServiceError.Code.loggedOut` after a log-out has begun;
    ///   `WebServiceError.Code.storage` if the file cannot be written, or if the folder no longer
    ///   belongs to the account.
    public func writeCookies(includingSessionCookies: Bool = false) throws {
        guard let token = scope.begin() else { throw WebServiceError.loggedOut }
        defer { withExtendedLifetime(token) {} }
        guard try ownFolder.isCurrent() else {
            throw WebServiceError(
                .storage,
                "the folder '\(folder.path)' was removed or belongs to another account; create another Account")
        }
        try cookieJar.write(to: file(Self.cookieFile), includingSessionCookies: includingSessionCookies)
    }

    /// Refuses further requests, and waits until the requests in flight and their handlers have
    /// ended, including those of outboxes. At the limit, cancels the requests that are still in
    /// flight. The account is not logged out, and no data is removed.
    ///
    /// Call this method when the program ends, for example in the handler of SIGTERM:
    /// ```swift
    /// if await !account.finish(within: .seconds(20)) { logger.warning("requests were cancelled") }
    /// try account.writeCookies()
    /// ```
    /// - All services and outboxes of the account finish at the same time, as with
    ///   `WebService.finish(within:)` and ``Outbox/finish(within:)``. If an exchange in flight
    ///   waits for credentials to be refreshed, the refresh may use any service of the account.
    ///   Services and clones that are created afterwards refuse requests with `serviceInvalidated`,
    ///   and `outbox(in:)` throws this error.
    /// - The method then waits until the operations of the storages have ended, so all received
    ///   responses are stored. At the limit, these operations continue. The storages remain usable.
    /// - The cookies are not written. Call ``writeCookies(includingSessionCookies:)`` afterwards.
    ///
    /// After this call, the account can be opened again in the same folder, even by the same
    /// process. The services and outboxes of the new account object send the remaining requests.
    /// Concurrent calls all wait. ``logOut()`` can be called at any time and removes the data as
    /// usual. If it is called while this method waits, it cancels the requests in flight. If a
    /// log-out has already begun, this method returns `false`, and the log-out continues.
    ///
    /// - Parameter limit: The maximum duration of the wait, measured by the system clock.
    /// - Returns: Whether everything ended before the limit and no log-out began.
    @discardableResult
    public func finish(within limit: Duration) async -> Bool {
        await scope.finish(within: limit) { [self] in
            for storage in state.withLock(\.storages) { await storage.settle() }
        }
    }

    /// Ends everything that belongs to the account, and removes its data.
    ///
    /// 1. The services of the account refuse requests. All exchanges in flight are cancelled,
    ///    including streams, event streams, WebSocket connections, downloads and uploads. Their
    ///    tasks end with `URLError.cancelled`. Refreshes are cancelled, and the services'
    ///    credentials, cookies and configuration are released. Outboxes are closed.
    /// 2. Each storage is emptied after its operations in progress have ended.
    /// 3. The folder is removed with everything in it, such as databases, partial files of
    ///    downloads, and the entries of an outbox. If the folder itself cannot be removed, for
    ///    example because it is a mount point, an empty folder remains. Links are not followed, and
    ///    a mount point inside the folder is an error.
    ///
    /// The method waits for the work in progress for at most the account's limit (by default 5
    /// seconds), and then until the folder has been removed. Interceptors do not delay the method,
    /// because a cancelled task does not wait for its interceptors, and requests that interceptors
    /// send later are refused. If a storage or a closure of an outbox does not respond within the
    /// limit, the method throws an error. The data of that storage is removed when the storage
    /// responds. A task that already has a result may still call its handlers.
    ///
    /// A service that uses a service of the account as its session does not belong to the account.
    /// Its requests in flight continue, and its later requests are refused.
    ///
    /// The server may still process requests that it has already received. `CurlSession` sends no
    /// further bytes, while `URLSession` may still send bytes that it has already accepted. Other
    /// copies of the data are not removed, such as tokens in a keychain or files that your code has
    /// stored outside ``folder``.
    ///
    /// The method can be called again after an error. If another ``Account`` was opened in the
    /// folder in the meantime, the data of that account is not removed. If the calling Swift task
    /// is cancelled, the log-out continues. Concurrent calls wait for the same result. If the
    /// process ends during a log-out, call ``finishLogOuts(in:)`` when the program starts again.
    /// The next ``Account`` in the folder also starts without the old data.
    ///
    /// - Throws: `WebServiceError.Code.storage` if data could not be removed, or if the removal did
    ///   not complete within the limit; or the error of a custom storage. The account is logged out
    ///   in all cases.
    public func logOut() async throws {
        let task = state.withLock { state in
            let task = state.logOut ?? Task { [self] in try await end() }
            state.logOut = task
            return task
        }
        do { try await task.value } catch {
            state.withLock { if $0.logOut == task { $0.logOut = nil } }
            throw error
        }
    }

    private func end() async throws {
        beginChanges()
        let isRepeated = scope.isEnded
        scope.refuse()
        cookieJar.close()
        let ending = Task { [self] in
            async let marking: Void? = try? queue.result { [ownFolder] in  // the removal reports the error
                try ownFolder.beginLogOut()
            }
            async let members: Void = scope.end()
            // If the process is killed, an account that lacks data must count as logged out.
            _ = await marking
            let erasure = await Result.catching { try await eraseStorages(isRepeated: isRepeated) }
            await members
            try erasure.get()
        }
        let hasEnded = Once<Result<Bool, any Error>>()
        Task { hasEnded.set(await ending.result.map { true }) }
        let result = await TaskClock.system.value(of: hasEnded, orAfter: limit, .success(false))
        let removal = await Result.catching { try await removeFolder() }
        if case .success(false) = result {
            Task { [self] in
                _ = await ending.result
                try? await removeFolder()  // the caller has already received an error
                endChanges()
            }
        } else {
            endChanges()
        }
        try removal.get()
        guard try result.get() else {
            throw WebServiceError(
                .storage,
                "the account is logged out, but its work did not end within \(limit), so some of its data may remain; "
                    + "call logOut() again")
        }
    }

    /// Prevents another account from being opened in the folder until ``endChanges()`` is called.
    private func beginChanges() { AccountFolder.logOuts.withLock { $0[folder.path, default: 0] += 1 } }

    private func endChanges() {
        AccountFolder.logOuts.withLock { $0[folder.path] = $0[folder.path].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }

    /// Empties all storages, and then throws the first error if there was one.
    ///
    /// The storages of a newer account may use the same files. No account can be opened in the
    /// folder while the storages are being emptied. If a newer account was opened earlier, this
    /// account's data has already been removed, and the method removes nothing.
    ///
    /// - Parameter isRepeated: Whether an earlier call may have ended, after which a newer account
    ///   may have been opened. If so, a folder that cannot be read is an error.
    private func eraseStorages(isRepeated: Bool) async throws {
        var isReplaced = false
        do {
            isReplaced = try await queue.result { [ownFolder] in try ownFolder.isReplaced() }
        } catch {
            if isRepeated { throw error }
        }
        if isReplaced {
            guard state.withLock(\.storages.isEmpty) else {
                throw WebServiceError(
                    .storage,
                    "a storage could not be emptied before a newer account was opened in the folder "
                        + "'\(folder.path)'; remove the storage's entries manually")
            }
            return
        }
        while case let storages = state.withLock(\.storages), !storages.isEmpty {
            let failure = await withTaskGroup(of: (any Error)?.self) { group in
                for storage in storages {
                    group.addTask {
                        do { try await storage.erase() } catch { return error }
                        return nil
                    }
                }
                return await group.reduce(nil) { $0 ?? $1 }
            }
            if let failure { throw failure }
            state.withLock { state in state.storages.removeAll { erased in storages.contains { $0 === erased } } }
        }
    }

    /// Removes the folder on the queue.
    private func removeFolder() async throws {
        try await queue.result { [ownFolder] in try ownFolder.remove() }
    }
}

extension WebServiceError.Code {
    /// An operation tried to store data of an ``Account``, or to open an outbox, after the log-out
    /// had begun.
    public static let loggedOut = WebServiceError.Code("loggedOut")
}
