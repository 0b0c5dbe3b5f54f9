public import Foundation
import WebServiceCore

/// An entry of a ``ResponseStorage``.
public struct StorageEntry: Sendable {
    /// The content of an entry.
    public enum Content: Sendable {
        /// The bytes as received by the endpoint, which processes them into a value when they are
        /// read.
        case raw(Data)
        /// The bytes of a value, converted by the request.
        case value(Data)
        /// Bytes whose kind the storage does not record; the request determines it.
        case unlabelled(Data)
        /// A value without a byte representation, for storages in memory.
        case live(any Sendable)
    }

    /// A summary of a stored entry, as an element of a list.
    public struct Summary: Sendable, Hashable {
        /// The key.
        public let key: StorageKey
        /// The date at which the entry was stored; `nil` if it is unknown.
        public let date: Date?
        /// The number of stored bytes without the key; `nil` for a value without a byte
        /// representation.
        public let byteCount: Int?

        /// Creates a summary of an entry.
        public init(key: StorageKey, date: Date?, byteCount: Int?) {
            (self.key, self.date, self.byteCount) = (key, date, byteCount)
        }
    }

    /// The content.
    public var content: Content

    /// The date at which the entry was stored; `nil` if it is unknown.
    public var date: Date?

    /// The field `Cache-Groups` (RFC 9875) of the response that the entry was created from, the URL
    /// of that response, and a date before its request was sent. Storages do not store it.
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
