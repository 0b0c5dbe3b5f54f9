/// Holds back the requests of a task while the task is suspended, and refuses them once it is
/// complete.
struct SendGate: ~Copyable, Sendable {
    enum Admission { case granted, held, refused }

    enum State {
        case open
        case closed(held: [@Sendable () -> Void])
        case over
    }

    private let state = Mutex(State.open)

    /// A Boolean value that indicates whether requests are held back.
    var holdsRequests: Bool {
        state.withLock { if case .closed(let held) = $0 { !held.isEmpty } else { false } }
    }

    /// Decides on a request.
    ///
    /// - Parameter sending: Called where the request is held back. It returns the closure that
    ///   sends the request, which is among those that ``open()`` returns.
    func admit(sending: () -> @Sendable () -> Void) -> Admission {
        state.withLock { state in
            switch state {
            case .open: return .granted
            case .closed(let held):
                state = .closed(held: held + [sending()])
                return .held
            case .over: return .refused
            }
        }
    }

    /// Holds back every request from now on.
    func close() {
        state.withLock { if case .open = $0 { $0 = .closed(held: []) } }
    }

    /// Holds back no request from now on.
    ///
    /// - Returns: The closures that send what was held back.
    func open() -> [@Sendable () -> Void] {
        state.withLock { state in
            guard case .closed(let held) = state else { return [] }
            state = .open
            return held
        }
    }

    /// Refuses every request from now on. What was held back is not sent.
    func end() {
        let held = state.withLock { state in
            defer { state = .over }
            return state
        }
        if case .closed(let held) = held { withExtendedLifetime(held) {} }  // released outside the lock
    }
}
