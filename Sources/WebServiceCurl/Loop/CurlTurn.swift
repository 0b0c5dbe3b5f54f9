import Synchronization
import WebServiceCore

/// The turn to use the engine of a loop.
///
/// The loop's thread has the turn, except while it waits for events. If nothing is in flight then,
/// a caller may take the turn to send a request, which saves waking the loop's thread.
final class CurlTurn: Sendable {
    private let lock = Lock(())
    /// The engine of the loop; `nil` after the end of the loop.
    ///
    /// nonisolated(unsafe): only the thread that has the turn accesses it.
    nonisolated(unsafe) private var engine: CurlEngine?
    /// Whether a caller may take the turn.
    ///
    /// A caller reads this flag before it tries to take the turn, because reading costs less, and
    /// again once it has the turn.
    private let isOpen = Atomic(false)

    init(_ engine: sending CurlEngine) {
        self.engine = engine
    }

    /// Whether a caller may take the turn.
    var isOpenToCallers: Bool { isOpen.load(ordering: .relaxed) }

    /// Allows callers to take the turn until ``closeToCallers()``.
    func openToCallers() { isOpen.store(true, ordering: .relaxed) }

    /// Refuses later callers. A caller may still have the turn.
    func closeToCallers() { isOpen.store(false, ordering: .relaxed) }

    /// Takes the turn and calls a closure. The loop's thread waits until no caller has the turn.
    func take<Value>(_ body: () -> Value) -> Value {
        lock.withLock { _ in body() }
    }

    /// Sends a request on the calling thread, if the loop has nothing in flight and has an idle
    /// connection to the host. The method never waits for another thread.
    ///
    /// - Returns: Whether the loop must be woken; `nil` if the exchange has not begun. The loop's
    ///   thread completes an exchange that has begun.
    func send(_ transfer: CurlTransfer, to host: Substring) -> Bool? {
        lock.withLockIfAvailable { _ -> Bool? in
            guard isOpenToCallers, let needsWaking = engine?.send(transfer, to: host) else { return nil }
            closeToCallers()
            return needsWaking
        } ?? nil
    }

    /// Runs the loop on the calling thread until its end.
    func run(_ loop: CurlLoop) {
        take { engine }?.run(for: loop)
        take { engine = nil }
    }

    /// Takes the turn and calls a closure with the engine.
    func inspect<Value>(_ body: (CurlEngine?) -> Value) -> Value {
        take { body(engine) }
    }
}
