package import Foundation
package import WebServiceCore

/// The last messages of a WebSocket connection. Their number and their size are limited.
package struct RecordedMessages: Sendable {
    /// The beginning of a message.
    package struct Message: Sendable {
        package let isReceived: Bool
        package let isText: Bool
        package let date: Date
        /// The first bytes of the message.
        package let content: Data
        /// The number of bytes of the whole message.
        package let size: Int

        /// The media type that determines how secrets in the content are recognized; `nil` for
        /// binary data.
        package var contentType: String? { isText ? "text/plain" : nil }

        /// Creates a message with the first bytes of its content.
        ///
        /// - Parameter limit: The maximum number of bytes to retain.
        package init(_ message: WebSocketMessage, isReceived: Bool, at date: Date, limit: Int) {
            (self.isReceived, self.date, size) = (isReceived, date, message.byteCount)
            let limit = max(0, limit)
            switch message {
            case .text(let text): (isText, content) = (true, Data(text.utf8.prefix(limit)))
            // A prefix of the data would retain the whole message, so it is copied.
            case .data(let data):
                (isText, content) = (false, data.count <= limit ? data : Data(Array(data.prefix(limit))))
            }
        }
    }

    /// The maximum number of messages to retain.
    private static let maximumCount = 1_000

    /// The messages, with the oldest first.
    package private(set) var messages: [Message] = []
    /// The number of older messages that were dropped.
    package private(set) var dropped = 0
    /// The total number of bytes of all received messages.
    package private(set) var bytesReceived: Int64 = 0
    private var contentSize = 0

    package init() {}

    /// The approximate number of retained bytes.
    package var size: Int { contentSize + messages.count * 96 }

    /// Adds a message, and drops the oldest messages beyond the limits.
    ///
    /// - Parameter limit: The maximum size of all contents together, in bytes. It must not be less
    ///   than the size of the message's content.
    package mutating func add(_ message: Message, limit: Int) {
        if message.isReceived { bytesReceived += Int64(message.size) }
        contentSize += message.content.count
        messages.append(message)
        var excess = 0
        for oldest in messages {
            guard messages.count - excess > Self.maximumCount || contentSize > max(0, limit) else { break }
            contentSize -= oldest.content.count
            excess += 1
        }
        if excess > 0 { messages.removeSubrange(..<excess) }
        dropped += excess
    }
}
