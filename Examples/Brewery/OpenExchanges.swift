import Synchronization
import WebServiceCore

/// Counts the exchanges whose end was not observed yet.
///
/// Observers receive events in the background, so the program waits for the last ones.
final class OpenExchanges: Observer {
    private let count = Synchronization.Mutex(0)

    func observe(_ event: ExchangeEvent) {
        switch event.kind {
        case .created: count.withLock { $0 += 1 }
        case .ended: count.withLock { $0 -= 1 }
        default: break
        }
    }

    /// Waits until every exchange has ended, at most one second.
    func finish() async {
        for _ in 0..<100 where count.withLock({ $0 }) > 0 {
            try? await Task.sleep(for: .milliseconds(10))  // no code cancels this task
        }
    }
}
