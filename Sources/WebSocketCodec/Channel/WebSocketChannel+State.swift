import Foundation
import WebServiceCore

extension WebSocketChannel {
    struct State: ~Copyable {
        var machine: WebSocketStateMachine

        // Receiving
        var messages = Queue<WebSocketMessage>()
        /// The cost of the messages, in bytes.
        private(set) var messageBytes = 0
        /// The caller of ``next()``.
        var reader: Waiter?
        /// The task that receives, while it waits for a reader.
        var receiver: Waiter?
        /// A Boolean value that indicates whether bytes were received after the last ping.
        var isAlive = true
        /// A Boolean value that indicates whether the peer sends no further bytes.
        var isInputOver = false

        // Sending
        var isSending = false
        /// The callers of ``send(_:)`` that wait until the peer reads.
        var senders: [Waiter] = []

        // End
        /// A Boolean value that indicates whether this endpoint closes the connection. Further
        /// messages are discarded.
        var isClosing = false
        /// The end of the messages; `nil` while the connection is open.
        var end: Result<WebSocketClosure?, any Error>?
        /// The callers of ``close(_:reason:)``.
        var closers: [Waiter] = []
        var alarm: Alarm?
    }

    /// What the caller of a transition does outside the lock.
    struct Outcome {
        var reader: Waiter?
        var receiver: Waiter?
        var end: Ending?
        var isFull = false
        var canReceive = true
        var starts = false
    }

    /// What the end of the messages requires.
    struct Ending {
        let result: Result<WebSocketClosure?, any Error>
        let waiters: [Waiter]
        let alarm: Alarm?
        /// A Boolean value that indicates whether the byte connection is still open.
        let lingers: Bool
    }
}

extension WebSocketChannel.State {
    /// Adds a received message.
    mutating func append(_ message: WebSocketMessage) {
        messages.append(message)
        messageBytes += Self.cost(of: message)
    }

    /// The number of bytes that a message takes in the buffer. Its peer determines the number of
    /// messages, so the memory that each of them needs in addition to its content counts.
    private static func cost(of message: WebSocketMessage) -> Int { message.byteCount + 128 }

    /// - Returns: The next message, `nil` at the end, or no result if the reader must wait; and the
    ///   receiver that continues.
    mutating func read(_ bufferSize: Int) -> (Result<WebSocketMessage?, any Error>?, WebSocketChannel.Waiter?) {
        if let message = messages.popFirst() {
            messageBytes -= Self.cost(of: message)
            return (.success(message), messageBytes < bufferSize ? receiver.take() : nil)
        }
        let result = end.map { [isClosing] end in
            end.flatMap { isClosing ? .success(nil) : WebSocketEnd.result(of: $0) }
        }
        return (result, nil)
    }

    /// A Boolean value that indicates whether the peer may still send bytes.
    var canReceive: Bool {
        switch machine.phase {
        case .open, .closing: true
        // A client waits until the server ends the connection. A connection that is closed while
        // received bytes are unread is reset, and the server would lose the Close frame.
        case .closed, .failed: machine.role == .client
        }
    }

    /// - Returns: Whether the caller must start to send.
    mutating func startSending() -> Bool {
        guard !isSending, machine.outputCount > 0 else { return false }
        isSending = true
        return true
    }

    /// - Returns: The bytes to send, the senders that continue, and, if there are no bytes, whether
    ///   the byte connection is closed.
    mutating func takeOutput(_ bufferSize: Int) -> (Data?, [WebSocketChannel.Waiter], Bool) {
        let bytes = machine.takeOutput()
        isSending = bytes != nil
        var resumed: [WebSocketChannel.Waiter] = []
        if machine.outputCount < bufferSize { swap(&resumed, &senders) }
        let isLast =
            switch machine.phase {
            case .open, .closing: false
            case .closed, .failed: machine.role == .server || isInputOver
            }
        return (bytes, resumed, isLast)
    }

    /// Sets the end of the messages, unless there is one.
    ///
    /// - Parameter lingers: Whether the byte connection is still open, for the Close frame.
    mutating func end(
        _ result: Result<WebSocketClosure?, any Error>, lingers: Bool = false
    ) -> WebSocketChannel.Ending? {
        guard end == nil else { return nil }
        end = result
        let waiters = [reader.take(), receiver.take()].compactMap(\.self) + senders + closers
        (senders, closers) = ([], [])
        defer { alarm = nil }
        return WebSocketChannel.Ending(result: result, waiters: waiters, alarm: alarm, lingers: lingers)
    }
}
