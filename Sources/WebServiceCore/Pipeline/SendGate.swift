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
    /// - Parameter sending: Called if the request is held back. Returns the closure that sends the
    ///   request; ``open()`` returns that closure later.
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

    /// Holds back all further requests.
    func close() {
        state.withLock { if case .open = $0 { $0 = .closed(held: []) } }
    }

    /// Stops holding back requests.
    ///
    /// - Returns: The closures that send the held-back requests.
    func open() -> [@Sendable () -> Void] {
        state.withLock { state in
            guard case .closed(let held) = state else { return [] }
            state = .open
            return held
        }
    }

    /// Refuses all further requests. Held-back requests are not sent.
    func end() {
        let held = state.withLock { state in
            defer { state = .over }
            return state
        }
        if case .closed(let held) = held { withExtendedLifetime(held) {} }  // released outside the lock
    }
}
