public import Foundation
import WebServiceCore

/// An entry of a ``ResponseStorage``.
public struct StorageEntry: Sendable {
    /// The content of an entry.
    public enum Content: Sendable {
        /// The bytes as the endpoint received them. When they are read, the endpoint converts them
        /// to a value.
        case raw(Data)
        /// The bytes of a value that the request has converted.
        case value(Data)
        /// Bytes whose kind the storage does not record. The request determines the kind.
        case unlabelled(Data)
        /// A value without a byte representation, for storages in memory.
        case live(any Sendable)
    }

    /// A summary of a stored entry, as the lists of a storage contain it.
    public struct Summary: Sendable, Hashable {
        /// The key of the entry.
        public let key: StorageKey
        /// The date at which the entry was stored; `nil` if it is unknown.
        public let date: Date?
        /// The number of stored bytes, excluding the key; `nil` for a value without a byte
        /// representation.
        public let byteCount: Int?

        /// Creates a summary of an entry.
        public init(key: StorageKey, date: Date?, byteCount: Int?) {
            (self.key, self.date, self.byteCount) = (key, date, byteCount)
        }
    }

    /// The bytes or the value, with their kind.
    public var content: Content

    /// The date at which the entry was stored; `nil` if it is unknown.
    public var date: Date?

    /// The `Cache-Groups` field (RFC 9875) of the response that the entry was created from, the URL
    /// of that response, and a date before its request was sent. Storages do not store this
    /// property.
    package var groups: (field: String, url: URL, date: Date)?

    /// Creates an entry.
    public init(_ content: Content, date: Date?) {
        self.content = content
        self.date = date
    }

    /// The stored bytes; `nil` for a value without a byte representation.
    public var data: Data? {
        switch content {
        case .raw(let data), .value(let data), .unlabelled(let data): data
        case .live: nil
        }
    }
}

extension StorageEntry {
    /// A failed operation of a storage.
    public struct Failure: Error, Sendable {
        /// An operation of a storage.
        public enum Operation: Sendable, Hashable {
            /// Reading an entry. A task that only reads the storage fails with the same error.
            case read
            /// Storing a response or converting it to bytes. The response is not stored, but the
            /// request still succeeds.
            case store
            /// Removing entries. A method that removes entries usually throws the same error.
            case remove
        }

        /// The failed operation.
        public let operation: Operation
        /// The key of the entry; `nil` for an operation on several entries.
        public let key: StorageKey?
        /// The storage whose operation failed.
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
