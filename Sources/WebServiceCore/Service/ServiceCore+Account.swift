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
    /// Adds the core to its account, or invalidates it if the account has ended.
    func enter(_ scope: AccountScope?) {
        if let scope, !scope.add(self) { end() }
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
}
