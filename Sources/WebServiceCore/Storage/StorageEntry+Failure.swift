extension StorageEntry {
    /// A failed operation of a storage.
    public struct Failure: Error, Sendable {
        /// An operation of a storage.
        public enum Operation: Sendable, Hashable {
            /// Reading an entry. The caller receives the same error.
            case read
            /// Storing a response, including its conversion to bytes. Nothing is stored; the
            /// request still succeeds.
            case store
            /// Removing entries. The caller receives the same error.
            case remove
        }

        /// The failed operation.
        public let operation: Operation
        /// The key; `nil` for an operation on all entries.
        public let key: StorageKey?
        /// The storage.
        public let storage: any ResponseStorage
        /// The error of the storage.
        public let error: any Error

        package init(operation: Operation, key: StorageKey?, storage: any ResponseStorage, error: any Error) {
            self.operation = operation
            self.key = key
            self.storage = storage
            self.error = error
        }
    }
}
