/// The number of typed requests in flight, for example for a network activity indicator.
///
/// A request counts from the start of its endpoint until it has a result. Requests that share one
/// response (``DuplicateMode/join``) count once. An endpoint can opt out
/// (``ServiceEndpoint/countsAsActivity``).
public final class ActivityCounter: Sendable {
    private struct State {
        var count = 0
        var observers = ChangeObservers<Void>()
    }

    private let state = Mutex(State())

    /// Creates a counter at zero.
    public init() {}

    /// The counter that services use by default.
    public static let shared = ActivityCounter()

    /// The current number of requests in flight.
    public var count: Int { state.withLock { $0.count } }

    /// An asynchronous sequence of the current count and the count after every change.
    ///
    /// A slow reader skips intermediate counts but always receives the latest one. The sequence
    /// ends when the reading Swift task is cancelled.
    public var counts: AsyncStream<Int> {
        let changes = changes
        return AsyncStream {
            for await _ in changes { return self.count }
            return nil
        }
    }

    private var changes: AsyncStream<Void> {
        ChangeObservers.changes { [weak self] body in self?.state.withLock { body(&$0.observers, ()) } }
    }

    func add(_ change: Int) {
        let observers = state.withLock { state in
            state.count += change
            return state.observers.all
        }
        for observer in observers { observer.yield() }
    }
}
