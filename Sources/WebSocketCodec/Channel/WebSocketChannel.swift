package import Foundation
package import WebServiceCore

/// A WebSocket connection: a state machine that is driven over a byte connection.
///
/// One Swift task receives and one sends; both retain the channel until the byte connection has
/// ended. The lock is a leaf: nothing else is called while it is held. All members may be used from
/// any thread.
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

    private let connection: any ByteConnection
    private let settings: Settings
    private let clock: TaskClock
    /// The executor of the tasks that receive and send. Reports are custom code, so it may be the
    /// connection's only without them.
    private let executor: any TaskExecutor
    private let report: (@Sendable (WebSocketMessage, _ isReceived: Bool) -> Void)?
    /// Called once, with the end of the messages.
    private let didEnd: @Sendable (Result<WebSocketClosure?, any Error>) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - report: Receives each message.
    ///   - didEnd: Called once, on any thread, when no further message can arrive.
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

    /// Starts to receive.
    ///
    /// - Parameter bytes: The bytes that were received after the handshake.
    package func start(with bytes: Data) {
        // Not on the calling thread: a peer that sends without end would hold it.
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
    ///   bytes. The lock is not taken again for them, because the reader is about to take it.
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
            switch event {
            case .message(let received):
                guard !state.isClosing else { break }
                message = received
                state.append(received)
            case .closed(let closure): end = .success(closure)
            case .failed(let violation): end = .failure(violation.error)
            case .ping, .pong, nil: break
            }
            return Outcome(
                reader: end == nil && message == nil ? nil : state.reader.take(),
                end: end.flatMap { state.end($0, lingers: true) },
                isFull: state.messageBytes >= settings.bufferSize, canReceive: state.canReceive,
                starts: state.startSending())
        }
        // Before the reader can respond to it.
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

    /// Waits for a message or the end.
    private func wait() async throws {
        var isBusy = false
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let waits = state.withLock { state in
                    isBusy = state.reader != nil
                    let waits = !isBusy && state.messages.isEmpty && state.end == nil
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

    /// Sends a message. Returns when it is buffered, and waits while the peer does not read.
    package func send(_ message: WebSocketMessage) async throws {
        try Task.checkNotCancelled()
        report?(message, false)
        let (starts, isFull) = try state.withLock { state in
            if let end = state.end, case .failure(let error) = end { throw error }
            do { try state.machine.send(message) } catch { throw WebSocketEnd.closed(state.end) }
            return (state.startSending(), state.machine.outputCount >= settings.bufferSize)
        }
        if starts { startSending() }
        if isFull { try await waitForPeer() }
    }

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

    private func startSending() {
        HandlerPool.startImmediately(on: executor) { [self] in await sendOutput() }
    }

    private func sendOutput() async {
        do {
            while true {
                let (bytes, senders, isLast) = state.withLock { $0.takeOutput(settings.bufferSize) }
                for sender in senders { sender.resume() }
                guard let bytes else {
                    if isLast { connection.close() }
                    return
                }
                try await connection.send(bytes)
            }
        } catch {
            connectionDidEnd(error)
        }
    }

    // MARK: Closing

    /// Sends a Close frame, and waits for that of the peer or until the timeout.
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

    /// Sends a Close frame. The connection ends with that of the peer, or after the timeout.
    package func beginClosing(_ code: WebSocketClosure.Code, reason: String) throws {
        let outcome = try state.withLock { state in
            do { try state.machine.close(code, reason: reason) } catch {
                throw WebServiceError(.encoding, "\(error); pass another code or reason")
            }
            state.isClosing = true
            return Outcome(receiver: state.receiver.take(), starts: state.startSending())
        }
        perform(outcome)
        scheduleEnd()
    }

    /// Ends the connection immediately.
    package func cancel() {
        connection.close()
        connectionDidEnd(URLError(.cancelled))
    }

    /// Closes the connection without waiting. Called when no caller uses it any longer.
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

    /// - Parameter error: The error of the byte connection; `nil` at its end.
    private func connectionDidEnd(_ error: (any Error)?) {
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

    private func schedulePing() {
        guard let interval = settings.pingInterval else { return }
        set(clock.schedule(after: interval) { [weak self] in self?.ping() })
    }

    /// Sends a ping, or ends a connection whose peer has not sent anything since the last one.
    private func ping() {
        let (isDead, starts, continues) = state.withLock { state -> (Bool, Bool, Bool) in
            guard state.end == nil, !state.isClosing else { return (false, false, false) }
            // The buffer is full, and the bytes that wait for it may include the pong.
            if state.receiver != nil { return (false, false, true) }
            guard state.isAlive else { return (true, false, false) }
            state.isAlive = false
            try? state.machine.ping()  // fails only if the connection is closing
            return (false, state.startSending(), true)
        }
        if isDead {
            let message = "the peer did not respond to a ping within pingInterval"
            return connectionDidEnd(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: message]))
        }
        if starts { startSending() }
        if continues { schedulePing() }
    }

    private func set(_ alarm: Alarm) {
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
        if let end = outcome.end {
            if let alarm = end.alarm { clock.cancel(alarm) }
            if end.lingers { scheduleEnd() }
            didEnd(end.result)
            for waiter in end.waiters { waiter.resume() }
        }
        outcome.reader?.resume()
    }
}
