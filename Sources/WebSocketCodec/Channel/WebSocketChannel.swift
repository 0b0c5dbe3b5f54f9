package import Foundation
package import WebServiceCore

/// A WebSocket connection: a state machine that is driven over a byte connection.
///
/// One Swift task receives, and one sends while there is output; both retain the channel. The lock
/// is a leaf: while it is held, no other code is called. All members may be used from any thread.
package final class WebSocketChannel: Sendable {
    /// The settings of a connection.
    package struct Settings: Sendable {
        package var protocolOptions = WebSocketOptions()
        /// The interval of the pings; `nil` to send none.
        package var pingInterval: Duration?
        /// The maximum wait for the peer after a Close frame.
        package var closeTimeout = Duration.seconds(5)
        /// The number of bytes of received messages, and of unsent frames, that are buffered.
        package var bufferSize = 256 << 10

        package init() {}
    }

    typealias Waiter = CheckedContinuation<Void, Never>
    /// A closure that is called once, on any thread, after a message has been passed to the byte
    /// connection, or with the error that prevented this.
    package typealias WriteHandler = @Sendable (Result<Void, any Error>) -> Void

    private let connection: any ByteConnection
    let settings: Settings
    let clock: TaskClock
    /// The executor of the tasks that receive and send. Reports are custom code, so the
    /// connection's executor is used only if there are none.
    private let executor: any TaskExecutor
    private let report: (@Sendable (WebSocketMessage, _ isReceived: Bool) -> Void)?
    /// A closure that is called once, with the end of the messages.
    private let didEnd: @Sendable (Result<WebSocketClosure?, any Error>) -> Void
    let state: Mutex<State>

    /// - Parameters:
    ///   - report: A closure that receives each message.
    ///   - didEnd: A closure that is called once, on any thread, when no further message can
    ///     arrive.
    package init(
        _ role: WebSocketRole, over connection: any ByteConnection, _ settings: Settings, _ clock: TaskClock,
        report: (@Sendable (WebSocketMessage, _ isReceived: Bool) -> Void)? = nil,
        didEnd: @escaping @Sendable (Result<WebSocketClosure?, any Error>) -> Void = { _ in }
    ) {
        self.connection = connection
        self.settings = settings
        self.clock = clock
        executor = (report == nil ? connection.executor : nil) ?? clock.executor
        self.report = report
        self.didEnd = didEnd
        state = Mutex(State(machine: WebSocketStateMachine(role, settings.protocolOptions)))
    }

    /// Starts to receive bytes from the peer.
    ///
    /// - Parameter bytes: The bytes that were received after the handshake.
    package func start(with bytes: Data) {
        // Receiving does not run on the calling thread, because a peer that sends endlessly would
        // block that thread.
        Task(executorPreference: executor) { [self] in await receive(startingWith: bytes) }
        if settings.pingInterval != nil { schedulePing() }
    }

    // MARK: Receiving

    private func receive(startingWith first: Data) async {
        var bytes = first
        var canReceive = true
        do {
            while true {
                var offset = bytes.startIndex
                while offset < bytes.endIndex {
                    let isFull: Bool
                    (isFull, canReceive) = process(bytes, from: &offset)
                    if isFull { await room() }
                }
                guard canReceive else { return closeUnlessSending() }
                bytes = try await connection.receive()
                if bytes.isEmpty { return inputDidEnd() }
            }
        } catch {
            connectionDidEnd(error)
        }
    }

    /// Closes the byte connection at the end of the peer's bytes, unless the Close frame is still
    /// being sent.
    private func inputDidEnd() {
        let sendsClose = state.withLock { state in
            state.isInputOver = true
            return state.isSending && state.end != nil
        }
        if !sendsClose { connectionDidEnd(nil) }
    }

    /// Closes the byte connection, unless the Close frame is still being sent.
    private func closeUnlessSending() {
        if !state.withLock({ $0.isSending }) { connection.close() }
    }

    /// Processes bytes up to the end of the next event.
    ///
    /// - Returns: Whether the receiver must wait for a reader, and whether the peer may still send
    ///   bytes. Both are determined while the lock is held, so that the receiver does not compete
    ///   for the lock with the reader, which takes it next.
    private func process(_ bytes: Data, from offset: inout Data.Index) -> (isFull: Bool, canReceive: Bool) {
        let start = offset
        var message: WebSocketMessage?
        let outcome = state.withLock { state in
            state.isAlive = true
            let (event, count) = bytes[start...].withUnsafeBytes { all in
                var rest = all
                let event = state.machine.receive(&rest)
                return (event, all.count - rest.count)
            }
            offset = start + count
            var end: Result<WebSocketClosure?, any Error>?
            var answered: [Ping] = []
            switch event {
            case .message(let received):
                guard !state.isClosing else { break }
                message = received
                state.append(received)
            case .closed(let closure): end = .success(closure)
            case .failed(let violation): end = .failure(violation.error)
            case .pong(let payload): answered = state.takePings(answeredBy: payload)
            case .ping, nil: break
            }
            return Outcome(
                reader: end == nil && message == nil ? nil : state.reader.take(), answered: answered,
                end: end.flatMap { state.end($0, lingers: true) },
                isFull: state.messageBytes >= settings.bufferSize, canReceive: state.canReceive,
                starts: state.startSending())
        }
        // A message is reported before a waiting reader is resumed, which may respond to it.
        if let message { report?(message, true) }
        perform(outcome)
        return (outcome.isFull, outcome.canReceive)
    }

    /// Waits until a reader takes messages.
    private func room() async {
        await withCheckedContinuation { waiter in
            let isFull = state.withLock { state in
                let isFull = state.messageBytes >= settings.bufferSize && !state.isClosing && state.end == nil
                if isFull { state.receiver = waiter }
                return isFull
            }
            if !isFull { waiter.resume() }
        }
    }

    /// Returns the next message; `nil` at the end.
    ///
    /// The end is a Close frame with a code that indicates no error, or a call of
    /// ``close(_:reason:)``.
    package func next() async throws -> WebSocketMessage? {
        while true {
            let (read, receiver) = state.withLock { $0.read(settings.bufferSize) }
            receiver?.resume()
            if let read { return try read.get() }
            try await wait()
        }
    }

    /// The result of a wait for a message.
    package enum Arrival: Sendable, Hashable {
        case message(WebSocketMessage)
        /// No message has arrived in time.
        case timeout
        /// The connection was closed with a code that indicates no error; see ``next()``.
        case end
    }

    /// Waits for the next message for at most a given duration.
    ///
    /// The next call returns a message that arrives later. If the duration is not positive, the
    /// method does not wait.
    package func next(within limit: Duration) async throws -> Arrival {
        let isLate = OnceFlag()
        var alarm: Alarm?
        defer { if let alarm { clock.cancel(alarm) } }
        while true {
            let (read, receiver) = state.withLock { $0.read(settings.bufferSize) }
            receiver?.resume()
            if let read { return try read.get().map { .message($0) } ?? .end }
            if limit <= .zero || isLate.isSet { return .timeout }
            if alarm == nil {
                alarm = clock.schedule(after: limit) { [weak self] in
                    _ = isLate.set()  // before the lock is taken; see `wait(unless:)`
                    self?.state.withLock { $0.reader.take() }?.resume()
                }
            }
            try await wait(unless: isLate)
        }
    }

    /// Waits for a message or the end.
    ///
    /// - Parameter isLate: A flag that ends the wait. After the flag is set, the reader is resumed.
    private func wait(unless isLate: OnceFlag? = nil) async throws {
        var isBusy = false
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let waits = state.withLock { state in
                    isBusy = state.reader != nil
                    let waits =
                        !isBusy && state.messages.isEmpty && state.end == nil && !(isLate?.isSet ?? false)
                    if waits { state.reader = reader }
                    return waits
                }
                if !waits { reader.resume() }
            }
        } onCancel: {
            cancel()
        }
        if isBusy {
            throw WebServiceError(
                .streamConsumed, "the messages are already being read; use one iterator at a time")
        }
    }

    // MARK: Sending

    /// Sends a message. Returns when the message is buffered, and waits while the peer does not
    /// read.
    package func send(_ message: WebSocketMessage) async throws {
        try Task.checkNotCancelled()
        if try enqueue(message) { try await waitForPeer() }
    }

    /// Adds a message to the output.
    ///
    /// - Parameter written: A closure that is called once if this method does not throw.
    /// - Returns: Whether the buffer is full.
    @discardableResult
    package func enqueue(_ message: WebSocketMessage, written: WriteHandler? = nil) throws -> Bool {
        report?(message, false)
        let (starts, isFull) = try state.withLock { state in
            if let end = state.end, case .failure(let error) = end { throw error }
            do { try state.send(message, written) } catch { throw WebSocketEnd.closed(state.end) }
            return (state.startSending(), state.machine.outputCount >= settings.bufferSize)
        }
        if starts { startSending() }
        return isFull
    }

    /// Whether a message can be sent, because no endpoint has closed the connection.
    package var acceptsMessages: Bool { state.withLock { $0.end == nil && $0.machine.phase == .open } }

    /// The number of bytes of the messages that were not written completely.
    package var unwrittenBytes: Int { state.withLock { $0.unwrittenBytes } }

    /// Waits until fewer bytes than the size of the buffer wait to be sent.
    private func waitForPeer() async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { sender in
                let waits = state.withLock { state in
                    let waits = state.machine.outputCount >= settings.bufferSize && state.end == nil
                    if waits { state.senders.append(sender) }
                    return waits
                }
                if !waits { sender.resume() }
            }
        } onCancel: {
            cancel()
        }
        if case .failure(let error)? = state.withLock({ $0.end }) { throw error }
    }

    func startSending() {
        HandlerPool.startImmediately(on: executor) { [self] in await sendOutput() }
    }

    private func sendOutput() async {
        let batchSize = connection.batchSize
        do {
            while true {
                let output = state.withLock { $0.takeOutput(settings.bufferSize, batchSize) }
                for written in output.written { written(.success(())) }
                for sender in output.senders { sender.resume() }
                guard let bytes = output.bytes else {
                    if output.isLast { connection.close() }
                    return
                }
                try await connection.send(bytes)
            }
        } catch {
            connectionDidEnd(error)
            let (unwritten, end) = state.withLock { ($0.failUnwritten(isSendingOver: true), $0.end) }
            for written in unwritten { written(.failure(WebSocketEnd.closed(end))) }
        }
    }

    // MARK: Closing

    /// - Throws: `WebServiceError.Code.encoding` if a Close frame cannot contain the code or the
    ///   reason.
    package static func validate(_ closure: WebSocketClosure) throws {
        do { try closure.validate() } catch {
            throw WebServiceError(.encoding, "\(error); pass another code or reason")
        }
    }

    /// Sends a Close frame, and waits for the Close frame of the peer until the timeout.
    package func close(_ code: WebSocketClosure.Code, reason: String) async throws {
        try beginClosing(code, reason: reason)
        await withTaskCancellationHandler {
            await withCheckedContinuation { closer in
                let waits = state.withLock { state in
                    if state.end == nil { state.closers.append(closer) }
                    return state.end == nil
                }
                if !waits { closer.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Sends a Close frame. The connection ends with the Close frame of the peer, or after the
    /// timeout.
    package func beginClosing(_ code: WebSocketClosure.Code, reason: String) throws {
        try Self.validate(WebSocketClosure(code, reason: reason))
        let outcome = state.withLock { state in
            try? state.machine.close(code, reason: reason)  // it is valid
            state.isClosing = true
            return Outcome(receiver: state.receiver.take(), starts: state.startSending())
        }
        perform(outcome)
        scheduleEnd()
    }

    /// Waits for the end of the connection. A cancellation of the Swift task has no effect.
    ///
    /// - Returns: The error that ``next()`` throws after the last message, or `nil`.
    package func end() async -> (any Error)? {
        await withCheckedContinuation { waiter in
            let waits = state.withLock { state in
                if state.end == nil { state.closers.append(waiter) }
                return state.end == nil
            }
            if !waits { waiter.resume() }
        }
        return state.withLock { $0.endError }
    }

    /// Removes and returns the messages that were not read.
    package func takeMessages() -> [WebSocketMessage] { state.withLock { $0.takeMessages() } }

    /// The number of messages that were read or taken.
    package var readCount: Int { state.withLock { $0.readCount } }

    /// Returns the number of bytes that a message takes in a buffer. The peer determines the number
    /// of messages, so the cost includes the memory that a message needs beyond its content.
    package static func cost(of message: WebSocketMessage) -> Int { message.byteCount + 128 }

    /// The error of a call that requires an open connection.
    package var closedError: any Error { WebSocketEnd.closed(state.withLock { $0.end }) }

    /// Ends the connection immediately.
    package func cancel() {
        connection.close()
        connectionDidEnd(URLError(.cancelled))
    }

    /// Closes the connection without waiting, because no caller uses it any longer.
    package func abandon() {
        guard state.withLock({ $0.end == nil && !$0.isClosing }) else { return }
        try? beginClosing(.goingAway, reason: "")  // the code is valid
    }

    /// The Close frame of the peer; `nil` if it sent none, or one without a code.
    package var closure: WebSocketClosure? {
        state.withLock { state in if case .success(let closure)? = state.end { closure } else { nil } }
    }

    /// The metrics of the connection.
    package var metrics: TransportMetrics { connection.metrics }

    /// - Parameter error: The error of the byte connection; `nil` if it has ended without an error.
    func connectionDidEnd(_ error: (any Error)?) {
        let outcome = state.withLock { state in
            var end = error ?? URLError(.networkConnectionLost)
            if case .failed(let violation)? = state.machine.connectionEnded(), error == nil { end = violation.error }
            return Outcome(end: state.end(.failure(end)))
        }
        perform(outcome)
        connection.close()
    }

    // MARK: Alarms

    private func scheduleEnd() {
        set(clock.schedule(after: settings.closeTimeout) { [weak self] in self?.endAfterTimeout() })
    }

    private func endAfterTimeout() {
        perform(state.withLock { Outcome(end: $0.end(.success(nil))) })
        connection.close()
    }

    func set(_ alarm: Alarm) {
        let (replaced, isNeeded) = state.withLock { state in
            let replaced = state.alarm
            // After a Close frame, the alarm ends the byte connection.
            let isNeeded = state.end == nil || state.machine.phase == .closed || state.machine.phase == .failed
            state.alarm = isNeeded ? alarm : nil
            return (replaced, isNeeded)
        }
        if let replaced { clock.cancel(replaced) }
        if !isNeeded { clock.cancel(alarm) }
    }

    private func perform(_ outcome: Outcome) {
        if outcome.starts { startSending() }
        outcome.receiver?.resume()
        if !outcome.answered.isEmpty { complete(outcome.answered) }
        if let end = outcome.end {
            if let alarm = end.alarm { clock.cancel(alarm) }
            if end.lingers { scheduleEnd() }
            didEnd(end.result)
            for waiter in end.waiters { waiter.resume() }
            if !end.unwritten.isEmpty || !end.pings.isEmpty {
                let error = WebSocketEnd.closed(end.result)
                for written in end.unwritten { written(.failure(error)) }
                for ping in end.pings { ping.pong.set(.failure(error)) }
            }
        }
        outcome.reader?.resume()
    }
}
