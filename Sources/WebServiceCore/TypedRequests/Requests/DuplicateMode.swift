/// The handling of a request while an equal request is in flight.
///
/// Requests with a key are equal if their keys are equal. A request without a key is equal to
/// requests of the same type and value, with or without a key.
///
/// Tasks of plain requests are compared after ``SessionTask/setDuplicates(_:key:)``, which defines
/// when they are equal.
///
/// The lookup and the decision are atomic: if two threads start equal requests, one of them is
/// first. A request that is not `Hashable` and has no key is not equal to any other. Requests
/// started for different accounts (``WebService/storageAccount``) are never equal.
public enum DuplicateMode: Sendable, Hashable {
    /// Sends both requests.
    case allow
    /// Fails the new request immediately with ``WebServiceError/Code/duplicateRequest``.
    case reject
    /// Shares the response of the request in flight, or of the one started last if there are
    /// several.
    ///
    /// Each task can be cancelled independently; the shared request is cancelled when no task waits
    /// for it. A request of another type with the same key cannot join and fails as with
    /// ``reject``.
    case join
    /// Cancels the equal requests in flight.
    case replace
    /// Starts the new request after the equal requests in flight have ended.
    case queue
}
