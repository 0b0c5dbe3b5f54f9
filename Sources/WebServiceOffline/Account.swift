public import Foundation
public import WebServiceCore

/// What belongs to one user: services, cookies, stored responses, an outbox, and a folder with the
/// files of all of them.
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
/// the data of the account is removed from memory and from the disk.
///
/// Several accounts with different folders can be used at the same time. They share nothing unless
/// you pass the same object to both, such as a session. To switch users, log out and create another
/// account, or keep both.
///
/// All members may be used from any thread.
public final class Account: Sendable {
    /// The folder, which belongs to the account alone.
    public let folder: URL
    /// The cookies of the account. They are read from the folder, and written by
    /// ``writeCookies(includingSessionCookies:)``.
    public let cookieJar: CookieJar

    private static let cookieFile = "cookies.json"

    private struct State {
        var storages: [any ResponseStorage] = []
        var logOut: Task<Void, any Error>?
    }

    private let limit: Duration
    private let scope = AccountScope()
    private let state = Mutex(State())
    private let queue = BlockingQueue("WebService.Account")

    /// Opens the folder of an account. If a log-out of the account has begun and the process ended
    /// before it was complete, the folder is removed first, and the account is empty.
    ///
    /// - Parameters:
    ///   - folder: A folder that this account alone uses, in one process at a time. It is created
    ///     if necessary, so that only its owner can read it.
    ///   - logOutLimit: The maximum duration for which ``logOut()`` waits for work of the account.
    ///     Defaults to 5 seconds.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not a local file URL, or the folder
    ///   or the cookies in it cannot be read.
    public init(in folder: URL, logOutLimit: Duration = .seconds(5)) throws {
        let folder = folder.standardizedFileURL
        guard folder.isFileURL, !folder.path.utf8.contains(0), folder.pathComponents.count > 1 else {
            throw WebServiceError(
                .storage, "the folder of an account must be a local file URL; use URL(fileURLWithPath:)")
        }
        self.folder = folder
        limit = logOutLimit
        do {
            try AccountFolder(folder).finishLogOut()
            try Folder.create(folder.path, synchronize: true)
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the folder of the account could not be created")
        }
        cookieJar = try CookieJar(contentsOf: folder.appendingPathComponent(Self.cookieFile, isDirectory: false))
    }

    /// Removes the accounts in a folder whose log-out has begun and was not completed because the
    /// process ended. Call it when the program starts, before it opens an account in the folder.
    ///
    /// - Parameter parent: The parent folder of the folders of accounts.
    /// - Throws: `WebServiceError.Code.storage` if data cannot be read or removed.
    public static func finishLogOuts(in parent: URL) throws { try AccountFolder.finishLogOuts(in: parent) }

    /// A Boolean value that indicates whether a log-out has begun.
    public var isLoggedOut: Bool { scope.isEnded }

    /// Returns the URL of a file or folder in the folder of the account.
    public func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// Returns a service of the account, with the configuration of another service.
    ///
    /// The new service uses the ``cookieJar`` of the account, and has no storages. Its clones
    /// belong to the account as well. Interceptors with data of a user, such as `Authentication`
    /// and `ResponseCache`, must not be shared: add them to the service that this method returns.
    ///
    /// After a log-out has begun, the method returns a service that sends no requests
    /// (`WebServiceError.Code.serviceInvalidated`).
    public func service(like template: WebService) -> WebService { template.clone(in: scope, cookieJar) }

    /// Returns a storage of the account: for `WebService.storages` or a `ResponseCache`.
    ///
    /// When the account logs out, all data of the other storage is removed; a database is deleted
    /// with its log. From then on, the storage has no entries, and storing fails with
    /// ``WebServiceError/Code/loggedOut``.
    ///
    /// - Parameter storage: A storage that this account alone uses. Its files may be outside of
    ///   ``folder``.
    public func storage(_ storage: any ResponseStorage) -> any ResponseStorage {
        state.withLock { $0.storages.append(storage) }
        return AccountStorage(storage: storage, scope: scope)
    }

    /// Writes the cookies to the folder, durably.
    ///
    /// - Parameter includingSessionCookies: Whether to write the cookies without an expiry date.
    ///   Defaults to `false`.
    /// - Throws: ``WebServiceError/Code/loggedOut``; `WebServiceError.Code.storage` if the file
    ///   cannot be written.
    public func writeCookies(includingSessionCookies: Bool = false) throws {
        guard let token = scope.begin() else { throw WebServiceError.loggedOut }
        defer { withExtendedLifetime(token) {} }
        try cookieJar.write(to: file(Self.cookieFile), includingSessionCookies: includingSessionCookies)
    }

    /// Ends everything that belongs to the account, and removes its data.
    ///
    /// 1. The services of the account refuse requests. All exchanges in flight are cancelled, with
    ///    their streams, event streams, WebSocket connections, downloads and uploads; their tasks
    ///    end with `URLError.cancelled`. Refreshes are cancelled, and credentials, cookies and the
    ///    configuration of the services are released. Outboxes are closed.
    /// 2. When the work in progress has ended, the storages are emptied.
    /// 3. The folder is removed, with everything in it, such as databases, partial files of
    ///    downloads and the entries of an outbox.
    ///
    /// The method waits for the work in progress, at most for the limit of the account, by default
    /// 5 seconds, and then until the folder is removed. Interceptors do not delay it: a cancelled
    /// task does not wait for them, and what they send later is refused. If a storage or a closure
    /// of an outbox does not respond within the limit, the method throws an error, and the data of
    /// that storage is removed when it responds. A task that already has a result may still call
    /// its handlers.
    ///
    /// Requests that the server has already received are processed there. `CurlSession` sends no
    /// further byte, while `URLSession` may still send bytes that it has already accepted. Copies
    /// elsewhere, such as tokens in a keychain or files outside of ``folder``, are not removed.
    ///
    /// The method can be called again after an error, and continues in a cancelled Swift task.
    /// Concurrent calls wait for the same result. If the process ends during a log-out, the next
    /// ``Account`` in the folder, or ``finishLogOuts(in:)``, completes it.
    ///
    /// - Throws: `WebServiceError.Code.storage` if data could not be removed, or not within the
    ///   limit. The account is logged out nevertheless.
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
        let ending = Task { [self] in
            async let marking: Void? = try? queue.result { [folder] in  // a full disk must not prevent a log-out
                try AccountFolder(folder).beginLogOut()
            }
            await scope.end()
            _ = await marking
            try await eraseStorages()
        }
        let hasEnded = Once<Result<Bool, any Error>>()
        Task { hasEnded.set(await ending.result.map { true }) }
        let result = await TaskClock.system.value(of: hasEnded, orAfter: limit, .success(false))
        try await removeFolder()
        guard try result.get() else {
            Task { [self] in
                _ = await ending.result
                try? await removeFolder()  // the caller knows that the data was not removed in time
            }
            throw WebServiceError(
                .storage,
                "the account is logged out, but its work did not end within \(limit); its data is removed when it does")
        }
    }

    /// Empties all storages, and throws the first error afterwards.
    private func eraseStorages() async throws {
        var failure: (any Error)?
        for storage in state.withLock(\.storages) {
            do { try await storage.eraseAll() } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
        state.withLock { $0.storages = [] }
    }

    /// Removes the folder on a queue.
    private func removeFolder() async throws {
        try await queue.result { [folder] in try AccountFolder(folder).remove() }
    }
}

extension WebServiceError.Code {
    /// An operation that stores data of an ``Account`` after its log-out has begun.
    public static let loggedOut = WebServiceError.Code("loggedOut")
}
