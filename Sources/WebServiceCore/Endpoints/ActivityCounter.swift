/// How many typed requests are under way: what a network indicator shows.
///
/// Counts from the moment an endpoint begins until the request has its answer, everybody who waits for one answer together as one. Endpoints may opt out
/// (``ServiceEndpoint/countsAsActivity``).
public final class ActivityCounter: Sendable {
    private struct State {
        var count = 0
        var observers: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var nextObserver: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Makes a counter at zero.
    public init() {}

    /// What services count with that were given nothing else.
    public static let shared = ActivityCounter()

    /// How many requests are under way now.
    public var count: Int { state.withLock { $0.count } }

    /// The count now, and after every change. A reader that is slow misses counts in between, never the last one. It ends when its reader does.
    public var counts: AsyncStream<Int> {
        let changes = changes
        return AsyncStream {
            for await _ in changes { return self.count }
            return nil
        }
    }

    private var changes: AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = state.withLock { state in
                state.nextObserver += 1
                state.observers[state.nextObserver] = continuation
                return state.nextObserver
            }
            continuation.onTermination = { [weak self] _ in
                let observer = self?.state.withLock { $0.observers.removeValue(forKey: id) }
                withExtendedLifetime(observer) {}
            }
            continuation.yield()
        }
    }

    func add(_ change: Int) {
        let observers = state.withLock { state in
            state.count += change
            return Array(state.observers.values)
        }
        for observer in observers { observer.yield() }
    }
}
