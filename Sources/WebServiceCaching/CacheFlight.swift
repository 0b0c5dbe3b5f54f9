import WebServiceCore
import WebServiceStorage

/// A request that is in flight until this object is deallocated. Its response must not restore an
/// entry that was removed in the meantime.
final class CacheFlight: Sendable {
    private let key: StorageKey
    /// The number of removals before the request started.
    private let start: UInt64
    private let cache: ResponseCache

    fileprivate init(_ key: StorageKey, _ start: UInt64, _ cache: ResponseCache) {
        self.key = key
        self.start = start
        self.cache = cache
    }

    /// Whether the responses under the key have been removed since the request started.
    var isOvertaken: Bool { cache.isOvertaken(key, since: start) }

    deinit { cache.endFlight(key) }
}

/// Requests and validations in flight.
extension ResponseCache {
    func beginFlight(_ key: StorageKey, _ clock: TaskClock) -> CacheFlight {
        let start = state.withLock { state in
            state.clock = clock
            state.flights[key, default: (0, 0)].count += 1
            return state.removals
        }
        return CacheFlight(key, start, self)
    }

    fileprivate func endFlight(_ key: StorageKey) {
        state.withLock { state in
            guard let flight = state.flights[key] else { return }
            state.flights[key] = flight.count > 1 ? (flight.count - 1, flight.removal) : nil
        }
    }

    fileprivate func isOvertaken(_ key: StorageKey, since start: UInt64) -> Bool {
        state.withLock { $0.flights[key].map { $0.removal > start } ?? false }
    }

    /// - Parameter key: The key whose responses were removed, or `nil` for all keys.
    func overtake(_ key: StorageKey?) {
        state.withLock { state in
            state.removals += 1
            for flight in key.map({ [$0] }) ?? Array(state.flights.keys) {
                state.flights[flight]?.removal = state.removals
            }
        }
    }

    /// - Returns: Whether the validation may begin. It may not if one is already in progress for
    ///   the key.
    func beginValidation(_ key: StorageKey) -> Bool {
        state.withLock { $0.validations.insert(key).inserted }
    }

    func endValidation(_ key: StorageKey) {
        state.withLock { _ = $0.validations.remove(key) }
    }
}
