/// What happens to a request when the same one is under way: one with an equal key where a key is given, else one that is equal itself.
///
/// To look and to decide is one step: of two threads that perform the same request, one is first. A request that is neither `Hashable` nor has a key is
/// like no other, and requests that were begun for different accounts
/// (``WebService/storageAccount``) are different.
public enum DuplicateMode: Sendable, Hashable {
    /// Both are performed.
    case allow
    /// The new one fails at once with ``WebServiceError/Code/duplicateRequest``.
    case reject
    /// The new one waits for the answer of the one under way, of several the one begun last. Each may be cancelled by itself; what is under way is cancelled
    /// when nobody waits for it any more. A request of another type under the same key cannot be joined and fails like one that is rejected.
    case join
    /// Those under way are cancelled.
    case replace
    /// The new one begins when those under way have ended.
    case queue
}
