/// What belongs to one account and ends with it: services with their clones, and other members.
package final class AccountScope: Sendable {
    private struct WeakMember: Sendable {
        weak var member: (any AccountMember)?
    }

    private struct WeakSession: Sendable {
        weak var session: (any SettlingSession)?
    }

    private struct State {
        var members: [WeakMember] = []
        /// The number of members at which those that were deallocated are removed.
        var limit = 16
        /// The sessions over which requests were sent.
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
    /// - Returns: `false` if the account has ended or finishes.
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

    /// Begins work that sends a request or may change files of the account, which lasts until the
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

    /// Refuses further work, except that of the exchanges in flight, and waits until the work of the
    /// members has ended. At the limit, cancels the rest.
    ///
    /// - Parameter completion: Work to wait for after that, within the same limit.
    /// - Returns: Whether everything has ended before the limit, and not because the account ended.
    package func finish(within limit: Duration, _ completion: @escaping @Sendable () async -> Void) async -> Bool {
        let members = state.withLock { state in
            state.isFinishing = true
            return state.members
        }.compactMap(\.member)
        // An error is the cancellation of the Swift task, after which nothing is waited for.
        let hasEnded = try? await TaskClock.system.value(within: limit) {
            await withTaskGroup { group in
                for member in members { group.addTask { await member.finish() } }
            }
            await completion()
            return !Task.isCancelled
        }
        // Only now: a refresh uses a service that may have been idle before.
        await withTaskGroup { group in
            for member in members { group.addTask { await member.cancelRest() } }
        }
        return hasEnded == true && !isEnded
    }

    /// Refuses further work, ends that of the members, and waits for it.
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
    /// Ends the work of the object. Does not block.
    func end()

    /// Waits until the work of the object has ended.
    func leave() async

    /// Refuses further work, and waits until the work in progress has ended.
    func finish() async

    /// Cancels the work in progress, and waits until it sends no further byte.
    func cancelRest() async
}

/// A session whose cancellations take effect later.
package protocol SettlingSession: AnyObject, Session {
    /// Waits until the requests that were cancelled before have ended and send no further byte.
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
    /// Adds the core to its account, and refuses exchanges if the account has ended or finishes.
    func enter(_ scope: AccountScope?) {
        guard let scope, !scope.add(self) else { return }
        if scope.isEnded { end() } else { refuse() }
    }

    /// Cancels and refuses all exchanges, and releases the configuration.
    package func end() {
        invalidate()
        for work in workInFlight.reversed() { work.cancel() }
        let ended = settings
        for case let authentication as Authentication in ended.interceptors { authentication.clear() }
        configure { $0 = Setup.Settings(session: ended.session, scope: ended.scope) }
        for part in parts.values { part.reset() }
    }

    /// Waits until the session sends no further byte of the exchanges that were cancelled.
    package func leave() async { await (settings.session as? any SettlingSession)?.settle() }

    package func cancelRest() async {
        invalidate()
        let work = workInFlight
        for work in work.reversed() { work.cancel() }
        if !work.isEmpty { await leave() }
    }
}
