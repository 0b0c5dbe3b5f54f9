extension WebService {
    /// The account to which the service belongs; `nil` if there is none.
    package var accountScope: AccountScope? { core.configuration.scope }

    /// Returns a clone without storages that belongs to an account.
    package func clone(in scope: AccountScope, _ cookieJar: CookieJar) -> WebService {
        let service = clone()
        service.core.configure { configuration in
            configuration.scope = scope
            configuration.cookieJar = cookieJar
            let typed = configuration.typed
            configuration.typed = TypedConfiguration(
                endpoints: typed.endpoints, storageErrorObserver: typed.storageErrorObserver, activity: typed.activity)
        }
        service.core.enter(scope)
        return service
    }
}

extension ServiceCore: AccountMember {
    /// Adds the core to its account, or invalidates it if the account has ended.
    func enter(_ scope: AccountScope?) {
        if let scope, !scope.add(self) { end() }
    }

    package func leave() async { end() }

    /// Waits until the session sends no further byte of the exchanges that have ended.
    package func settle() async { await (configuration.session as? any SettlingSession)?.settle() }

    /// Cancels and refuses all exchanges, and releases the configuration.
    private func end() {
        invalidate()
        for work in workInFlight.reversed() { work.cancel() }
        let ended = configuration
        for case let authentication as Authentication in ended.interceptors { authentication.clear() }
        ended.cookieJar?.close()
        configure { $0 = Configuration(session: ended.session, scope: ended.scope) }
    }
}
