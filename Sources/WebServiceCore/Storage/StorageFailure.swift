/// What a storage could not do.
public struct StorageFailure: Error, Sendable {
    /// What was to be done.
    public enum Operation: Sendable, Hashable {
        /// To read an entry; whoever asked for it gets the same error.
        case read
        /// To store an answer, or to make bytes of it. Nothing is stored, the request has its answer all the same.
        case store
        /// To remove entries; whoever asked for it gets the same error.
        case remove
    }

    /// What was to be done.
    public let operation: Operation
    /// The key; `nil` where all entries were meant.
    public let key: StorageKey?
    /// The storage.
    public let storage: any ResponseStorage
    /// What it threw.
    public let error: any Error
}
