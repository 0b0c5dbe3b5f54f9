import Foundation
import WebServiceCore

extension WebSocketChannel {
    struct State: ~Copyable {
        var machine: WebSocketStateMachine

        // Receiving
        var messages = Queue<WebSocketMessage>()
        /// The cost of the messages, in bytes.
        private(set) var messageBytes = 0
        /// The number of messages that were read.
        private(set) var readCount = 0
        /// The caller of ``next()``.
        var reader: Waiter?
        /// The task that receives, while it waits for a reader.
        var receiver: Waiter?
        /// Whether bytes were received after the last ping.
        var isAlive = true
        /// Whether the peer sends no further bytes.
        var isInputOver = false

        // Sending
        var isSending = false
        /// The callers of ``send(_:)`` that wait until the peer reads.
        var senders: [Waiter] = []
        /// The messages that the byte connection has not accepted completely.
        private(set) var unwritten = Queue<Unwritten>()
        /// The number of bytes of these messages.
        private(set) var unwrittenBytes = 0

        // Pings
        /// The pings of callers that wait for their pongs, in the order in which they were sent.
        var pings: [Ping] = []
        /// The number of the last ping of a caller.
        var lastPing: UInt64 = 0

        // End
        /// Whether this endpoint closes the connection. Further messages are discarded.
        var isClosing = false
        /// The end of the messages; `nil` while the connection is open.
        var end: Result<WebSocketClosure?, any Error>?
        /// The callers of ``close(_:reason:)`` and ``end()``.
        var closers: [Waiter] = []
        var alarm: Alarm?
    }

    /// A message that was accepted but has not been written completely.
    struct Unwritten {
        /// The end of its frames, as counted by ``WebSocketStateMachine/addedCount``.
        let end: Int
        let byteCount: Int
        /// The handler, which is called once, outside the lock; `nil` if the sender does not wait.
        let written: WriteHandler?
    }

    /// The next step of a sender.
    struct Output {
        /// The bytes to send; `nil` for none.
        var bytes: Data?
        /// The waiting callers of ``send(_:)`` to resume.
        var senders: [Waiter] = []
        /// The handlers of the messages that were written.
        var written: [WriteHandler] = []
        /// Whether the sender must close the byte connection if there are no bytes.
        var isLast = false
    }

    /// The work that the caller of a transition does outside the lock.
    struct Outcome {
        var reader: Waiter?
        /// The pings that a pong completes.
        var answered: [Ping] = []
        var receiver: Waiter?
        var end: Ending?
        var isFull = false
        var canReceive = true
        var starts = false
    }

    /// The work that the end of the messages requires.
    struct Ending {
        let result: Result<WebSocketClosure?, any Error>
        let waiters: [Waiter]
        let unwritten: [WriteHandler]
        let pings: [Ping]
        let alarm: Alarm?
        /// Whether the byte connection is still open.
        let lingers: Bool
    }
}

extension WebSocketChannel.State {
    /// Adds a received message.
    mutating func append(_ message: WebSocketMessage) {
        messages.append(message)
        messageBytes += WebSocketChannel.cost(of: message)
    }

    /// Removes and returns the messages that were not read. They count as read.
    mutating func takeMessages() -> [WebSocketMessage] {
        var taken: [WebSocketMessage] = []
        while let message = messages.popFirst() { taken.append(message) }
        messageBytes = 0
        readCount += taken.count
        return taken
    }

    /// - Returns: The next message, `nil` at the end, or no result if the reader must wait; and the
    ///   receiver that continues.
    mutating func read(_ bufferSize: Int) -> (Result<WebSocketMessage?, any Error>?, WebSocketChannel.Waiter?) {
        if let message = messages.popFirst() {
            messageBytes -= WebSocketChannel.cost(of: message)
            readCount += 1
            return (.success(message), messageBytes < bufferSize ? receiver.take() : nil)
        }
        return (endResult, nil)
    }

    /// The result of reading after the last message; no result while the connection is open.
    private var endResult: Result<WebSocketMessage?, any Error>? {
        end.map { end in end.flatMap { isClosing ? .success(nil) : WebSocketEnd.result(of: $0) } }
    }

    /// The error of reading after the last message; `nil` for none.
    var endError: (any Error)? {
        if case .failure(let error)? = endResult { error } else { nil }
    }

    /// Whether the peer may still send bytes.
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

    /// Adds a message to the output.
    mutating func send(
        _ message: WebSocketMessage, _ written: WebSocketChannel.WriteHandler?
    ) throws(WebSocketSendError) {
        try machine.send(message)
        unwritten.append(
            WebSocketChannel.Unwritten(end: machine.addedCount, byteCount: message.byteCount, written: written))
        unwrittenBytes += message.byteCount
    }

    /// Returns the output to send next. All bytes that were returned earlier have been written.
    ///
    /// - Parameter batchSize: The number of bytes after which no more frames are added.
    mutating func takeOutput(_ bufferSize: Int, _ batchSize: Int) -> WebSocketChannel.Output {
        var output = WebSocketChannel.Output(written: takeWritten())
        output.bytes = machine.takeOutput(minimumCount: batchSize)
        isSending = output.bytes != nil
        if machine.outputCount < bufferSize { swap(&output.senders, &senders) }
        output.isLast =
            switch machine.phase {
            case .open, .closing: false
            case .closed, .failed: machine.role == .server || isInputOver
            }
        return output
    }

    /// Removes the messages that were written, and returns their handlers.
    private mutating func takeWritten() -> [WebSocketChannel.WriteHandler] {
        var handlers: [WebSocketChannel.WriteHandler] = []
        while let first = unwritten.first, first.end <= machine.takenCount {
            _ = unwritten.popFirst()
            unwrittenBytes -= first.byteCount
            if let written = first.written { handlers.append(written) }
        }
        return handlers
    }

    /// Removes messages that are not going to be written, and returns their handlers. Their bytes
    /// remain in the count.
    ///
    /// - Parameter isSendingOver: Whether the byte connection has also rejected the bytes that were
    ///   taken. Otherwise, the result of sending these bytes determines the result of their
    ///   messages.
    mutating func failUnwritten(isSendingOver: Bool) -> [WebSocketChannel.WriteHandler] {
        let takenCount = isSendingOver ? -1 : machine.takenCount
        var handlers: [WebSocketChannel.WriteHandler] = []
        unwritten.removeAll { message in
            guard message.end > takenCount else { return false }
            if let written = message.written { handlers.append(written) }
            return true
        }
        return handlers
    }

    /// Removes and returns the pings that a pong completes. These are the ping with the pong's
    /// payload and all earlier pings, because a peer may respond only to the latest ping (RFC 6455,
    /// section 5.5.3).
    mutating func takePings(answeredBy payload: Data) -> [WebSocketChannel.Ping] {
        guard let number = WebSocketChannel.Ping.number(of: payload), number <= lastPing else { return [] }
        let count = pings.prefix { $0.number <= number }.count
        defer { pings.removeFirst(count) }
        return Array(pings.prefix(count))
    }

    /// Sets the end of the messages, unless it is already set.
    ///
    /// - Parameter lingers: Whether the byte connection remains open for the Close frame, at most
    ///   for `closeTimeout`.
    mutating func end(
        _ result: Result<WebSocketClosure?, any Error>, lingers: Bool = false
    ) -> WebSocketChannel.Ending? {
        guard end == nil else { return nil }
        end = result
        let waiters = [reader.take(), receiver.take()].compactMap(\.self) + senders + closers
        let handlers = failUnwritten(isSendingOver: false)
        defer { (senders, closers, pings, alarm) = ([], [], [], nil) }
        return WebSocketChannel.Ending(
            result: result, waiters: waiters, unwritten: handlers, pings: pings, alarm: alarm, lingers: lingers)
    }
}
