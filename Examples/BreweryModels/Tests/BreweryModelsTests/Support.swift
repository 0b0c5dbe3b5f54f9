import Observation
import WebServiceCore

/// Waits until a condition of observable models holds, without a limit of its own: the suites have
/// one.
@MainActor
func until(_ condition: () -> Bool) async {
    while !condition() {
        await withCheckedContinuation { continuation in
            withObservationTracking {
                _ = condition()
            } onChange: {
                continuation.resume()
            }
        }
    }
}

extension WebService {
    /// Waits until a request is in flight.
    func requestInFlight() async {
        for await exchanges in exchangeUpdates where !exchanges.isEmpty { return }
    }
}
