public import Foundation

/// What a ``ResponseStorage`` keeps under a key.
public struct StorageEntry: Sendable {
    /// What is kept.
    public enum Content: Sendable {
        /// The bytes as the endpoint fetched them; its own processing makes the value again.
        case raw(Data)
        /// The value, turned into bytes by the request.
        case value(Data)
        /// Bytes of which the storage does not know which of these they are; the request does.
        case unlabelled(Data)
        /// The value itself, for storages that keep it in memory.
        case live(any Sendable)
    }

    /// What is kept.
    public var content: Content

    /// When it was written; `nil` where the storage does not know.
    public var date: Date?

    /// Makes an entry.
    public init(_ content: Content, date: Date?) {
        self.content = content
        self.date = date
    }

    /// The bytes that are kept; `nil` for a value that is kept itself.
    public var data: Data? {
        switch content {
        case .raw(let data), .value(let data), .unlabelled(let data): data
        case .live: nil
        }
    }
}
