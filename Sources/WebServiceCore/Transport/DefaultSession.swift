/// The session of services whose session is not set. It can be set once, before it is used.
final class DefaultSession: Sendable {
    private struct State {
        var session: (any Session)?
        /// A Boolean value that indicates whether the session was set or used.
        var isFixed = false
    }

    /// The session of the process.
    static let shared = DefaultSession()

    private let state = Mutex(State())

    /// The session. After the first access, it can no longer be set.
    var session: any Session {
        let session = state.withLock { state in
            state.isFixed = true
            return state.session
        }
        return session ?? FoundationSession.shared
    }

    /// Sets the session.
    ///
    /// - Throws: ``WebServiceError/Code/defaultSessionInUse`` if the session was set or used
    ///   before.
    func set(_ session: any Session) throws(WebServiceError) {
        let wasFixed = state.withLock { state in
            guard !state.isFixed else { return true }
            state = State(session: session, isFixed: true)
            return false
        }
        guard !wasFixed else {
            throw WebServiceError(
                .defaultSessionInUse,
                "the default session can be set only once, and only before the first service is created")
        }
    }
}

extension WebServiceError.Code {
    /// A default session that cannot be set, because it was set or used before; see
    /// ``WebService/setDefaultSession(_:)``.
    public static let defaultSessionInUse = WebServiceError.Code("defaultSessionInUse")
}
