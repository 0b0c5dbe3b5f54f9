import Foundation
import WebServiceCore
import WebSocketCodec

/// The connections of a ``ReconnectingWebSocket``, one after another.
///
/// One Swift task opens the connections and sets the status. A reader reads from the current
/// connection. When a connection ends, the task stores the unread messages.
final class SuccessiveConnections: Sendable {
    typealias Status = ReconnectingWebSocket.State

    /// A message that waits to be sent.
    private final class Outgoing: Sendable {
        let message: WebSocketMessage
        /// The result of the call.
        let sent = Once<Result<Void, any Error>>()

        init(_ message: WebSocketMessage) { self.message = message }
    }

    private struct State {
        var status = Status.connecting
        var observers = ChangeObservers<Status>()
        /// The task that opens the connections; `nil` after its end.
        var task: Task<Void, Never>?
        /// The result of the first call that ends the task; `nil` before that call.
        var requestedEnd: Result<Void, any Error>?
        var end: Result<Void, any Error>?

        /// The current connection, from its handshake until its end.
        var socket: WebSocket?
        /// Whether `onOpen` has returned, and the connection has not ended.
        var isOpen = false
        /// Whether the task is sending the messages of the queue. Further messages are sent after
        /// them.
        var isSendingQueue = false
        /// The messages that wait for a connection, or for earlier messages.
        private(set) var queue = Queue<Outgoing>()
        private(set) var queuedBytes = 0

        /// The unread messages of earlier connections, and the number of bytes that they take.
        private(set) var unread = Queue<WebSocketMessage>()
        private(set) var unreadBytes = 0
        /// Whether a reader may read from the current connection.
        var isReadable = false
        var isReading = false
        /// Set when a reader can continue.
        var change: Once<Bool>?
        /// Set when an unread message was read.
        var room: Once<Bool>?

        mutating func enqueue(_ message: Outgoing) {
            queue.append(message)
            queuedBytes += message.message.byteCount
        }

        /// Removes a message from the queue, if it is there.
        mutating func remove(_ message: Outgoing) {
            let count = queue.count
            if queue.first === message { _ = queue.popFirst() } else { queue.removeAll { $0 === message } }
            if queue.count < count { queuedBytes -= message.message.byteCount }
        }

        /// Removes and returns the latest messages of the queue, so that at most the given number
        /// of messages remains.
        mutating func trimQueue(to maximumCount: Int) -> [Outgoing] {
            var (removed, index) = ([Outgoing](), 0)
            queue.removeAll { message in
                index += 1
                if index > maximumCount { removed.append(message) }
                return index > maximumCount
            }
            for message in removed { queuedBytes -= message.message.byteCount }
            return removed
        }

        mutating func append(_ messages: [WebSocketMessage]) {
            for message in messages {
                unread.append(message)
                unreadBytes += WebSocketChannel.cost(of: message)
            }
        }

        mutating func nextUnread() -> WebSocketMessage? {
            guard let message = unread.popFirst() else { return nil }
            unreadBytes -= WebSocketChannel.cost(of: message)
            return message
        }
    }

    private let clock: TaskClock
    private let reconnections: Reconnections
    /// The number of unread bytes at which no further connection is opened.
    private let maximumUnreadBytes: Int
    private let maximumQueuedMessages: Int
    private let open: @Sendable () async throws -> WebSocket
    private let prepare: @Sendable (WebSocket) async throws -> Void
    private let state = Mutex(State())

    init(
        _ reconnections: Reconnections, clock: TaskClock, maximumUnreadBytes: Int, maximumQueuedMessages: Int,
        open: @escaping @Sendable () async throws -> WebSocket,
        prepare: @escaping @Sendable (WebSocket) async throws -> Void
    ) {
        self.reconnections = reconnections
        self.clock = clock
        self.maximumUnreadBytes = maximumUnreadBytes
        self.maximumQueuedMessages = maximumQueuedMessages
        self.open = open
        self.prepare = prepare
    }

    func start() {
        let task = Task(executorPreference: clock.executor) { [self] in
            do {
                try await connect()
                finish(.success(()))
            } catch {
                finish(.failure(error))
            }
        }
        state.withLock { if $0.end == nil { $0.task = task } }
    }

    // MARK: Status

    var status: Status { state.withLock { $0.status } }

    var statuses: AsyncStream<Status> {
        let statuses = ChangeObservers.changes { [weak self] body in
            self?.state.withLock { body(&$0.observers, $0.status) }
        }
        let ended = state.withLock { $0.end == nil ? [] : $0.observers.all }
        for observer in ended { observer.finish() }
        return statuses
    }

    private func set(_ status: Status) {
        let observers = state.withLock { state in
            state.status = status
            return state.observers.all
        }
        for observer in observers { observer.yield(status) }
    }

    // MARK: The task

    /// Opens connections until the last one has ended.
    private func connect() async throws {
        try reconnections.begin()
        while true {
            let (failure, hasMessage) = await connection()
            guard state.withLock({ $0.requestedEnd == nil }) else { return }
            if hasMessage { reconnections.didDeliver() }
            guard let delay = delay(after: failure) else {
                if let failure { throw failure }
                return
            }
            set(.waiting(until: clock.date.addingTimeInterval(delay.inSeconds), after: failure))
            try await reconnections.sleep(for: delay)
            try await waitForReader()
            set(.connecting)
        }
    }

    /// Returns the delay before the next connection; `nil` if no further connection is opened.
    private func delay(after failure: (any Error)?) -> Duration? {
        // The predicate is not called for a cancellation.
        guard (failure as? URLError)?.code != .cancelled, !(failure is CancellationError) else { return nil }
        return reconnections.delay(after: failure, isTransient: Self.isTransient(failure))
    }

    private static func isTransient(_ error: (any Error)?) -> Bool {
        switch error {
        case nil: true
        case let error as WebServiceError: error.code == .webSocketClosed || error.transientStatus != nil
        default: error is URLError
        }
    }

    /// Opens a connection, sends the queued messages, and waits for the connection to end.
    ///
    /// - Returns: The error of the connection, and whether the connection had a message that
    ///   `onOpen` did not read.
    private func connection() async -> ((any Error)?, hasMessage: Bool) {
        let socket: WebSocket
        do { socket = try await open() } catch { return (error, false) }
        defer { socket.channel.abandon() }  // unless it has ended
        let isNeeded = state.withLock { state in
            if state.requestedEnd == nil { state.socket = socket }
            return state.requestedEnd == nil
        }
        guard isNeeded else { return (nil, false) }
        do {
            // A cancellation before the handshake has begun has not reached the connection.
            try reconnections.checkNotCancelled()
            try await prepare(socket)
            socket.handOver()
        } catch {
            detach(nil)
            return (error, false)
        }
        let readCount = socket.channel.readCount
        didOpen()
        await sendQueue(over: socket)
        let failure = await withTaskCancellationHandler {
            await socket.channel.end()
        } onCancel: {
            socket.channel.abandon()
        }
        detach(socket.channel.takeMessages())
        return (failure, socket.channel.readCount > readCount)
    }

    private func didOpen() {
        let change = state.withLock { state in
            state.isReadable = true
            if state.requestedEnd == nil { (state.isOpen, state.isSendingQueue) = (true, true) }
            return state.change.take()
        }
        change?.set(true)
        if state.withLock({ $0.isOpen }) { set(.open) }
    }

    /// Removes the connection, and stores its unread messages.
    private func detach(_ unread: [WebSocketMessage]?) {
        let (socket, removed, change) = state.withLock { state in
            (state.isReadable, state.isOpen, state.isSendingQueue) = (false, false, false)
            state.append(unread ?? [])
            return (state.socket.take(), state.trimQueue(to: maximumQueuedMessages), state.change.take())
        }
        withExtendedLifetime(socket) {}
        for message in removed { message.sent.set(.failure(notOpen())) }
        change?.set(true)
    }

    /// Sends the messages of the queue one after another, so that the loss of the connection
    /// interrupts only one of them.
    private func sendQueue(over socket: WebSocket) async {
        while true {
            let next = state.withLock { state -> Outgoing? in
                guard state.isOpen, let first = state.queue.first else {
                    state.isSendingQueue = false
                    return nil
                }
                return first
            }
            guard let next else { return }
            let isWritten = Once<Bool>()
            let isAccepted = pass(next, to: socket) { isWritten.set(true) }
            guard isAccepted else { continue }
            state.withLock { $0.remove(next) }
            _ = await isWritten.value
        }
    }

    /// Passes a message to a connection, and sets the message's result when it has been written.
    ///
    /// - Returns: Whether the connection has accepted the message. Otherwise, the connection is no
    ///   longer open.
    private func pass(
        _ message: Outgoing, to socket: WebSocket, written: @escaping @Sendable () -> Void = {}
    ) -> Bool {
        do {
            // The observers do not receive a message that was not sent.
            guard socket.channel.acceptsMessages else { throw socket.channel.closedError }
            try socket.channel.enqueue(message.message) { result in
                message.sent.set(result)
                written()
            }
            return true
        } catch {
            state.withLock { state in
                if state.socket === socket { state.isOpen = false }
            }
            return false
        }
    }

    /// Waits until a reader has read the messages that exceed the limit.
    private func waitForReader() async throws {
        while let room = state.withLock({ state -> Once<Bool>? in
            guard state.unreadBytes >= maximumUnreadBytes, state.requestedEnd == nil else { return nil }
            let room = Once<Bool>()
            state.room = room
            return room
        }) {
            try await reconnections.wait(for: room)
        }
    }

    private func finish(_ end: Result<Void, any Error>) {
        let (status, observers, messages, change) = state.withLock { state in
            let end = state.requestedEnd ?? end
            (state.end, state.task) = (end, nil)
            if case .failure(let error) = end { state.status = .closed(error) } else { state.status = .closed(nil) }
            return (state.status, state.observers.all, state.trimQueue(to: 0), state.change.take())
        }
        for message in messages { message.sent.set(.failure(Self.error(after: end))) }
        change?.set(true)
        for observer in observers {
            observer.yield(status)
            observer.finish()
        }
    }

    /// Returns the error of a call after the end.
    private static func error(after end: Result<Void, any Error>) -> any Error {
        if case .failure(let error) = end { error } else { WebSocketEnd.closed(nil) }
    }

    // MARK: Reading

    func next() async throws -> WebSocketMessage? {
        if case .message(let message) = try await read(nil) { message } else { nil }
    }

    func next(within limit: Duration) async throws -> WebSocketChannel.Arrival { try await read(limit) }

    /// The next step of a reader.
    private enum Step {
        case message(WebSocketMessage, room: Once<Bool>?)
        case read(WebSocket)
        case end(Result<Void, any Error>)
        case wait(Once<Bool>)
    }

    private func read(_ limit: Duration?) async throws -> WebSocketChannel.Arrival {
        let isFirst = state.withLock { state in
            defer { state.isReading = true }
            return !state.isReading
        }
        guard isFirst else {
            throw WebServiceError(.streamConsumed, "the messages are already being read; use one iterator at a time")
        }
        defer { state.withLock { $0.isReading = false } }
        let deadline = limit.map { clock.now.addingSaturated($0) }
        while true {
            switch state.withLock({ step(&$0) }) {
            case .message(let message, let room):
                room?.set(true)
                return .message(message)
            case .read(let socket):
                let arrival = try await read(from: socket, rest(until: deadline))
                guard case .end = arrival else { return arrival }
                // The task stores the unread messages, and continues with the next connection.
                state.withLock { state in
                    if state.socket === socket { state.isReadable = false }
                }
            case .end(let end):
                try end.get()
                return .end
            case .wait(let change):
                if try await !wait(for: change, rest(until: deadline)) { return .timeout }
            }
        }
    }

    private func step(_ state: inout State) -> Step {
        if let message = state.nextUnread() { return .message(message, room: state.room.take()) }
        if state.isReadable, let socket = state.socket { return .read(socket) }
        if let end = state.end { return .end(end) }
        let change = Once<Bool>()
        state.change = change
        return .wait(change)
    }

    private func rest(until deadline: UInt64?) -> Duration? {
        guard let deadline else { return nil }
        let now = clock.now
        return .nanoseconds(Int64(clamping: deadline - min(deadline, now)))
    }

    /// - Returns: The message, `timeout`, or `end` if the connection has ended in any way.
    private func read(from socket: WebSocket, _ limit: Duration?) async throws -> WebSocketChannel.Arrival {
        do {
            if let limit { return try await socket.channel.next(within: limit) }
            return try await socket.channel.next().map { .message($0) } ?? .end
        } catch let error as WebServiceError where error.code == .streamConsumed {
            throw error  // `onOpen` has passed the socket to another reader
        } catch {
            return .end
        }
    }

    /// Waits for a change.
    ///
    /// - Returns: `false` after a timeout.
    private func wait(for change: Once<Bool>, _ limit: Duration?) async throws -> Bool {
        if let limit, limit <= .zero { return false }
        let isChanged = await withTaskCancellationHandler {
            if let limit { await clock.value(of: change, orAfter: limit, false) } else { await change.value }
        } onCancel: {
            cancel()
        }
        if Task.isCancelled { throw URLError(.cancelled) }
        return isChanged
    }

    // MARK: Sending

    func send(_ message: WebSocketMessage) async throws {
        if Task.isCancelled { throw URLError(.cancelled) }
        let message = Outgoing(message)
        while let socket = try admit(message), !pass(message, to: socket) {}
        try await withTaskCancellationHandler {
            try await message.sent.value.get()
        } onCancel: {
            message.sent.set(.failure(URLError(.cancelled)))
            state.withLock { $0.remove(message) }
        }
    }

    /// Decides whether a message is sent or queued.
    ///
    /// - Returns: The connection to send it over, or `nil` if it is queued.
    private func admit(_ message: Outgoing) throws -> WebSocket? {
        let (socket, error) = state.withLock { state -> (WebSocket?, (any Error)?) in
            if let end = state.end ?? state.requestedEnd { return (nil, Self.error(after: end)) }
            if state.isOpen, !state.isSendingQueue { return (state.socket, nil) }
            guard state.isOpen || state.queue.count < maximumQueuedMessages else {
                return (nil, notOpen(state.status))
            }
            state.enqueue(message)
            return (nil, nil)
        }
        if let error { throw error }
        return socket
    }

    var bufferedByteCount: Int {
        let (queued, socket) = state.withLock { ($0.queuedBytes, $0.socket) }
        return queued + (socket?.bufferedByteCount ?? 0)
    }

    /// Returns the current connection.
    func openSocket() throws -> WebSocket {
        let (socket, error) = state.withLock { state -> (WebSocket?, (any Error)?) in
            if let end = state.end ?? state.requestedEnd { return (nil, Self.error(after: end)) }
            return state.isOpen ? (state.socket, nil) : (nil, notOpen(state.status))
        }
        guard let socket else { throw error ?? notOpen() }
        return socket
    }

    private func notOpen(_ status: Status? = nil) -> WebServiceError {
        let cause = if case .waiting(_, let error)? = status { error } else { nil as (any Error)? }
        let text =
            maximumQueuedMessages == 0
            ? "the connection is not open, and messages are not queued; wait for the state open, "
                + "or set maximumQueuedMessages"
            : "the connection is not open, and \(maximumQueuedMessages) messages are queued; "
                + "wait for the state open, or increase maximumQueuedMessages"
        return WebServiceError(.webSocketNotOpen, text, underlying: cause)
    }

    // MARK: Closing

    func close(_ code: WebSocketClosure.Code, reason: String) async throws {
        try WebSocketChannel.validate(WebSocketClosure(code, reason: reason))
        let (socket, task) = requestEnd(.success(()))
        if let socket { try await socket.close(code, reason: reason) }
        task?.cancel()
        await task?.value
    }

    /// Ends the connection immediately.
    private func cancel() {
        let (socket, task) = requestEnd(.failure(URLError(.cancelled)))
        socket?.channel.cancel()
        task?.cancel()
    }

    /// Closes the connection without waiting.
    func abandon() {
        let (socket, task) = requestEnd(.success(()))
        socket?.channel.abandon()
        task?.cancel()
    }

    /// Requests the end of the task, unless it was already requested, and fails the queued
    /// messages.
    private func requestEnd(_ end: Result<Void, any Error>) -> (WebSocket?, Task<Void, Never>?) {
        let (socket, task, messages) = state.withLock { state in
            state.requestedEnd = state.requestedEnd ?? end
            (state.isOpen, state.isSendingQueue) = (false, false)
            return (state.socket, state.task, state.trimQueue(to: 0))
        }
        for message in messages { message.sent.set(.failure(Self.error(after: end))) }
        return (socket, task)
    }
}
