public import Foundation
public import WebServiceCore

/// A file that contains the tokens of one account, and a token provider for an `Authentication`.
///
/// Use it to keep users logged in after the program has ended. A cipher, for example an
/// `AESGCMCipher` of `WebServiceCrypto`, encrypts the file.
///
/// ```swift
/// let logins = WebService(baseURLString: "https://login.example.com")
/// let tokens = try TokenFile(file) { old in
///     let refresh = logins.POST("/token")
///         .setFormParameters(["grant_type": "refresh_token", "refresh_token": old.refreshToken])
///     let new = try await refresh.decode(Login.self).value
///     return .init(
///         .bearer(new.accessToken, expiresIn: .seconds(new.expiresIn), from: logins.date),
///         refreshToken: new.refreshToken ?? old.refreshToken)
/// }
/// service.interceptors = [.retry(), Authentication(tokens)]
/// ```
/// - The file is replaced atomically: at any time, even if the process is terminated, it contains
///   the tokens of one log-in or one refresh. A store completes after the file has been written to
///   the disk. Only the user can access the file (mode 0600) and the folders that are created for
///   it (0700). A symbolic link in place of the file is refused.
/// - Several objects and several processes may use one file. Only one of them refreshes the tokens
///   at a time. The others wait, and use the tokens that it has stored. For this purpose, there are
///   two empty lock files next to the file, with the suffixes `.lock` and `.refresh`. A process
///   that ends releases its locks.
/// - Tokens from a refresh are discarded if a log-in or a log-out replaced or removed the tokens in
///   the meantime.
/// - If the new tokens cannot be written, for example because the disk is full, this object uses
///   them until the process ends or other tokens are stored.
///
/// To log out, call ``remove()`` and then `Authentication.clear()`. After a log-in, call
/// ``store(_:)`` and then `Authentication.update(_:)`.
///
/// On Apple platforms, prefer the Keychain. All members may be used from any thread. The file is
/// accessed on a queue of the object.
public final class TokenFile: TokenProvider {
    /// A credential and the refresh token that obtains the next credential.
    ///
    /// The descriptions of this type omit both.
    public struct Tokens: Sendable, Hashable {
        /// The credential that authenticates requests.
        public var credential: Credential
        /// The refresh token (RFC 6749, section 1.5); `nil` if there is none.
        public var refreshToken: String?
        /// The granted scopes (RFC 6749, section 3.3); `nil` if they are unknown.
        public var scopes: [String]?

        /// Creates tokens.
        public init(_ credential: Credential, refreshToken: String? = nil, scopes: [String]? = nil) {
            self.credential = credential
            self.refreshToken = refreshToken
            self.scopes = scopes
        }
    }

    private struct State {
        /// The tokens that were read last, and the status of the file at that time.
        var read: (tokens: Tokens, status: FileStatus)?
        /// Tokens from a refresh that could not be written, and the tokens that they replace.
        var unwritten: (tokens: Tokens, old: Tokens)?
        /// Whether the tokens are to be removed, and the file has not been removed yet.
        var isRemoved = false
    }

    /// A lock on a file, which is held until this object is deallocated.
    private final class HeldLock: Sendable {
        private let file: Descriptor

        init(_ file: consuming Descriptor) { self.file = file }
    }

    private static let format = "webservice-tokens 1 "
    private static let context = Data("webservice-tokens".utf8)

    private let path: String
    private let name: String
    private let cipher: (any StorageCipher)?
    private let clock: TaskClock
    private let renew: @Sendable (_ tokens: Tokens) async throws -> Tokens?
    private let queue = BlockingQueue("WebService.TokenFile")
    private let state = Mutex(State())

    /// Creates a provider without accessing the disk.
    ///
    /// - Parameters:
    ///   - file: The URL of the file. The first store creates the file, and its folder if
    ///     necessary.
    ///   - cipher: The cipher that encrypts the file. Defaults to `nil`, which means no encryption.
    ///   - clock: The clock that determines whether stored tokens have expired; see
    ///     `WebService.clock`. Defaults to `nil`, which means the system clock.
    ///   - refresh: Returns new tokens to replace expired or rejected ones, or `nil` if that is
    ///     impossible. There is never more than one call at a time for one file. If it throws an
    ///     error, `TokenProvider.refresh(_:)` throws the same error. Defaults to a closure that
    ///     returns `nil`.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not a local file URL.
    public init(
        _ file: URL, cipher: (any StorageCipher)? = nil, clock: (any Clock<Duration>)? = nil,
        refresh: @escaping @Sendable (_ tokens: Tokens) async throws -> Tokens? = { _ in nil }
    ) throws {
        let path = file.isFileURL ? file.absoluteURL.path : ""
        guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
            throw WebServiceError(
                .storage, "the URL of the token file must be a file URL; use URL(fileURLWithPath:)")
        }
        self.path = (path as NSString).deletingLastPathComponent
        name = (path as NSString).lastPathComponent
        self.cipher = cipher
        self.clock = TaskClock(standard: clock)
        renew = refresh
    }

    /// Returns the stored tokens, or `nil` if there are none.
    ///
    /// The file is read again only if it has changed.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the file cannot be read, is damaged, or was
    ///   encrypted with a different key.
    public func tokens() async throws -> Tokens? {
        try await perform { try self.read() }
    }

    /// Stores the tokens of a log-in, and replaces any others.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the file cannot be written; `CancellationError`;
    ///   or an error of the cipher.
    public func store(_ tokens: Tokens) async throws {
        try await whileLocked { try self.write(tokens) }
    }

    /// Removes the tokens when the user logs out. It is not an error if there is no file.
    ///
    /// After this method has been called, this object no longer returns the removed tokens. If the
    /// file cannot be removed, it returns no tokens until new tokens are stored with it.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the file cannot be removed, or
    ///   `CancellationError`.
    public func remove() async throws {
        state.withLock { $0 = State(isRemoved: true) }
        try await whileLocked {
            guard let folder = try Folder(self.path, followsLink: true) else { return }
            try folder.remove(self.temporaryName)
            try folder.remove(self.name)
            try folder.synchronize()
            self.state.withLock { $0 = State() }
        }
    }

    /// Returns the credential of the stored tokens. Throws the same errors as ``tokens()``.
    public func credential() async throws -> Credential? { try await tokens()?.credential }

    /// Returns a credential other than the rejected one. If another object or process has replaced
    /// the tokens and the new ones have not expired, returns their credential. Otherwise, refreshes
    /// the tokens.
    ///
    /// - Returns: `nil` if there are no tokens, or if no refresh is possible.
    /// - Throws: An error of ``tokens()``, of the refresh or of the cipher, or `CancellationError`.
    public func refresh(_ rejected: Credential?) async throws -> Credential? {
        let turn = try await lock("refresh")
        defer { withExtendedLifetime(turn) {} }
        guard let old = try await tokens() else { return nil }
        let hasExpired = old.credential.expires.map { $0 <= clock.date } ?? false
        if old.credential != rejected, !hasExpired { return old.credential }
        guard let new = try await renew(old) else { return nil }
        return try await whileLocked {
            guard try self.read() == old else { return try self.read()?.credential }
            do { try self.write(new) } catch is SystemFailure {
                self.state.withLock { $0.unwritten = (new, old) }
            }
            return new.credential
        }
    }

    // MARK: - Locks

    private func whileLocked<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        let lock = try await lock("lock")
        defer { withExtendedLifetime(lock) {} }
        return try await perform(work)
    }

    /// Waits for the lock of a file next to this one, without blocking a thread.
    private func lock(_ suffix: String) async throws -> HeldLock {
        while true {
            if let lock = try await perform({ try self.attemptToLock("\(self.name).\(suffix)") }) { return lock }
            try await TaskClock.system.sleep(for: .milliseconds(20))  // other processes do not use an injected clock
        }
    }

    private func attemptToLock(_ lockName: String) throws -> HeldLock? {
        try Folder.create(path, synchronize: true)
        guard let folder = try Folder(path, followsLink: true) else { return nil }
        let file = try folder.openFile(lockName, isNew: false)
        switch try file.lock() {
        case .heldByAnother: return nil
        case .unsupported:
            throw WebServiceError(
                .storage, "the file system of '\(path)' does not support locks; store the tokens in another folder")
        case .taken:
            // The file may have been removed before it was locked.
            return try folder.status(of: lockName)?.inode == file.status().inode ? HeldLock(file) : nil
        }
    }

    private func perform<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        do { return try await queue.result(of: work) } catch let failure as SystemFailure {
            throw failure.error(
                .storage, "the tokens in '\(path)/\(name)' could not be read or stored; check the permissions")
        }
    }

    // MARK: - On the queue

    private var temporaryName: String { "\(name).temporary" }

    private func read() throws -> Tokens? {
        guard !state.withLock(\.isRemoved) else { return nil }
        let stored = try readFile()
        guard let unwritten = state.withLock({ $0.unwritten }) else { return stored }
        return unwritten.old == stored ? unwritten.tokens : stored
    }

    private func readFile() throws -> Tokens? {
        guard let folder = try Folder(path, followsLink: true), let status = try folder.status(of: name) else {
            return nil
        }
        if let read = state.withLock({ $0.read }), read.status == status { return read.tokens }
        guard let (bytes, status) = try folder.content(of: name, isWhole: { _, _ in false }),
            let content = CheckedContent.decode(bytes, mark: Self.format),
            let plain = try? cipher.map({ try $0.open(content, authenticating: Self.context) }) ?? content,
            let tokens = try? JSONDecoder().decode(Stored.self, from: plain).tokens  // the error may quote secrets
        else {
            throw WebServiceError(
                .storage,
                "the tokens in '\(path)/\(name)' are damaged or encrypted with another key; log in again and store "
                    + "the new tokens")
        }
        state.withLock { $0.read = (tokens, status) }
        return tokens
    }

    /// Replaces the file. Called while the file is locked.
    private func write(_ tokens: Tokens) throws {
        let plain = try JSONEncoder().encode(Stored(tokens))
        let content = try cipher?.seal(plain, authenticating: Self.context) ?? plain
        guard let folder = try Folder(path, followsLink: true) else {
            throw SystemFailure(call: "open", number: ENOENT)
        }
        try folder.remove(temporaryName)  // a terminated process may have left it
        try folder.replace(
            name, with: CheckedContent.encode(content, mark: Self.format), through: temporaryName, date: Date(),
            synchronize: true)
        try folder.synchronize()
        state.withLock { $0 = State() }
    }
}

extension TokenFile.Tokens: RedactedReflectable {
    /// The name of the credential's header field, without values.
    public var description: String { credential.description }
}

/// The content of the file.
private struct Stored: Codable {
    let header: String
    let value: String
    let expires: Date?
    let refreshToken: String?
    let scopes: [String]?

    init(_ tokens: TokenFile.Tokens) {
        header = tokens.credential.header.rawValue
        value = tokens.credential.value
        expires = tokens.credential.expires
        refreshToken = tokens.refreshToken
        scopes = tokens.scopes
    }

    var tokens: TokenFile.Tokens {
        .init(
            Credential(header: Headers.Name(header), value: value, expires: expires), refreshToken: refreshToken,
            scopes: scopes)
    }
}
