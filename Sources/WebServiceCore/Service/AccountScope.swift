/// The members of one account, which end with it: services, their clones, and other objects.
package final class AccountScope: Sendable {
    private struct WeakMember: Sendable {
        weak var member: (any AccountMember)?
    }

    private struct WeakSession: Sendable {
        weak var session: (any SettlingSession)?
    }

    private struct State {
        var members: [WeakMember] = []
        /// The number of members at which deallocated members are removed.
        var limit = 16
        /// The sessions over which requests were sent, if they conform to ``SettlingSession``.
        var sessions: [ObjectIdentifier: WeakSession] = [:]
        var isEnded = false
        var isFinishing = false
    }

    private let state = Mutex(State())
    private let work = WorkCount()

    package init() {}

    package var isEnded: Bool { state.withLock { $0.isEnded } }

    /// Whether ``finish(within:_:)`` was called.
    package var isFinishing: Bool { state.withLock { $0.isFinishing } }

    /// Adds a member, without retaining it.
    ///
    /// - Returns: `false` if the account has ended or is finishing.
    @discardableResult
    package func add(_ member: any AccountMember) -> Bool {
        state.withLock { state in
            if state.members.count >= state.limit {
                state.members.removeAll { $0.member == nil }
                state.limit = max(16, state.members.count * 2)
            }
            state.members.append(WeakMember(member: member))
            return !state.isEnded && !state.isFinishing
        }
    }

    /// Begins work that sends a request or may change the account's files. The work lasts until the
    /// returned token is deallocated.
    ///
    /// - Parameter session: The session that sends the request. Defaults to `nil`.
    /// - Returns: `nil` if the account has ended.
    package func begin(over session: (any Session)? = nil) -> WorkCount.Token? {
        let session = session as? any SettlingSession
        return state.withLock { state in
            guard !state.isEnded else { return nil }
            if let session { state.sessions[ObjectIdentifier(session)] = WeakSession(session: session) }
            return work.begin()
        }
    }

    /// Refuses further work.
    package func refuse() { state.withLock { $0.isEnded = true } }

    /// Refuses further work, except that of exchanges in flight, and waits until the members' work
    /// has ended. When the limit is reached, cancels the remaining work.
    ///
    /// - Parameter completion: Work that is awaited afterwards, within the same limit.
    /// - Returns: Whether all work ended before the limit, and ``end()`` was not called in the
    ///   meantime.
    package func finish(within limit: Duration, _ completion: @escaping @Sendable () async -> Void) async -> Bool {
        let members = state.withLock { state in
            state.isFinishing = true
            return state.members
        }.compactMap(\.member)
        // The call throws only if the Swift task is cancelled, in which case the method stops
        // waiting.
        let hasEnded = try? await TaskClock.system.value(within: limit) {
            await withTaskGroup { group in
                for member in members { group.addTask { await member.finish() } }
            }
            await completion()
            return !Task.isCancelled
        }
        // Members are invalidated only now, because a refresh may use a service that had been idle.
        await withTaskGroup { group in
            for member in members { group.addTask { await member.cancelRest() } }
        }
        return hasEnded == true && !isEnded
    }

    /// Refuses further work, ends the members' work, and waits until it has ended.
    package func end() async {
        refuse()
        let members = state.withLock { $0.members }.compactMap(\.member)
        for member in members { member.end() }
        await withTaskGroup { group in
            for member in members { group.addTask { await member.leave() } }
            group.addTask { [self] in
                while await !work.finish(within: .seconds(3_600)), !Task.isCancelled {}
                for session in state.withLock({ $0.sessions.values.map(\.session) }) { await session?.settle() }
            }
        }
    }
}

/// An object that belongs to an account.
package protocol AccountMember: AnyObject, Sendable {
    /// Ends the object's work without blocking.
    func end()

    /// Waits until the object's work has ended.
    func leave() async

    /// Refuses further work, and waits until the work in progress has ended.
    func finish() async

    /// Cancels the work in progress, and waits until the work sends no more bytes.
    func cancelRest() async
}

/// A session whose cancelled requests may still send bytes for a short time.
package protocol SettlingSession: AnyObject, Session {
    /// Waits until all requests cancelled so far have ended and send no more bytes.
    func settle() async
}

extension WebService {
    /// The account to which the service belongs; `nil` if there is none.
    package var accountScope: AccountScope? { core.settings.scope }

    /// Returns a clone that belongs to an account and has no storages.
    package func clone(in scope: AccountScope, _ cookieJar: CookieJar) -> WebService {
        clone { settings in
            settings.scope = scope
            settings.cookieJar = cookieJar
        }
    }
}

extension ServiceCore: AccountMember {
    /// Adds the core to its account, and refuses exchanges if the account has ended or is
    /// finishing.
    func enter(_ scope: AccountScope?) {
        guard let scope, !scope.add(self) else { return }
        if scope.isEnded { end() } else { refuse() }
    }

    /// Cancels all exchanges, refuses further ones, and releases the configuration.
    package func end() {
        invalidate()
        for work in workInFlight.reversed() { work.cancel() }
        let ended = settings
        for case let authentication as Authentication in ended.interceptors { authentication.clear() }
        configure { $0 = Setup.Settings(session: ended.session, scope: ended.scope) }
        for part in parts.values { part.reset() }
    }

    /// Waits until the session sends no more bytes for the cancelled exchanges.
    package func leave() async { await (settings.session as? any SettlingSession)?.settle() }

    package func cancelRest() async {
        invalidate()
        let work = workInFlight
        for work in work.reversed() { work.cancel() }
        if !work.isEmpty { await leave() }
    }
}
