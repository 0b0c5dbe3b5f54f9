/// A boxed weak reference to a delegate. A state with an inline weak reference cannot be moved as
/// plain memory.
final class DelegateReference: Sendable {
    private struct Reference: Sendable {
        weak var delegate: (any ServicePassthroughDelegate)?
    }

    private let reference: Mutex<Reference>

    init(_ delegate: any ServicePassthroughDelegate) {
        reference = Mutex(Reference(delegate: delegate))
    }

    var delegate: (any ServicePassthroughDelegate)? { reference.withLock { $0.delegate } }
}
