import Synchronization

/// A flag that can be set once.
final class OnceFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    /// - Returns: Whether this call set the flag.
    func set() -> Bool {
        !value.exchange(true, ordering: .acquiringAndReleasing)
    }
}
