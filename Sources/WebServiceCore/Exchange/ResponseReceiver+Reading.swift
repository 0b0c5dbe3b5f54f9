import Foundation

/// The handle of a streamed body. Deallocating the handle ends the transfer.
final class BodyHandle: Sendable {
    let receiver: ResponseReceiver
    let decoder: (any ContentDecoder)?
    /// The length of the body in bytes; `nil` if it is unknown.
    let length: Int64?
    /// The maximum size of the decoded body in bytes.
    let maximum: Int?
    /// Whether an iteration over the body has begun.
    let isConsumed = OnceFlag()

    init(_ receiver: ResponseReceiver, decoder: (any ContentDecoder)?, length: Int64?, maximum: Int?) {
        self.receiver = receiver
        self.decoder = decoder
        self.length = length
        self.maximum = maximum
    }

    deinit { receiver.cancel() }
}

/// The reading of a streamed body while it arrives.
///
/// While the buffer is full, the receiver returns ``Demand/pause`` to the session and records the
/// pause under its lock (`ResponseReceiver.swift`). The next read empties the buffer and calls
/// ``StreamTask/receiveMore()``, which continues the session. In the meantime, `CurlSession` does
/// not read from the socket (`CurlHandle.receiveBody(_:)`). A session that cannot pause continues
/// to read, and ``BodyDelivery`` buffers the bytes.
extension ResponseReceiver {
    package var mayPause: Bool { options.bufferSize != nil }

    package func didReceive(interim head: ResponseHead) throws {
        options.events?.report(interim: head)
        try options.onInterim?(head)
    }

    typealias Reader = CheckedContinuation<Read, Never>

    struct StreamState {
        /// The instant of the head.
        let start: UInt64
        /// The number of further bytes to report to the observers.
        var unreported: Int
        /// The number of bytes in the last read, an estimate of the size of the next one.
        var lastCount = 0
        /// The instant at which the reader last took bytes.
        var lastRead: UInt64 = 0
        var isPaused = false
        /// The reader that waits for bytes or the end.
        var reader: Reader?
        var end: Result<Headers, any Error>?
        /// Whether the session has completed the exchange.
        var isComplete = false
        var alarm: Alarm?
        /// The tail of the exchange to which the body belongs. That exchange may have adopted the
        /// body.
        var tail: BodyTail?
    }

    /// Begins the body after its head, and its deadline if the request sets one.
    ///
    /// - Parameter hasDeadline: Whether the deadline applies. It does not apply to a connection
    ///   that now uses another protocol.
    /// - Returns: `false` if the body had already begun.
    func beginStream(_ length: Int64?, hasDeadline: Bool) -> Bool {
        let now = clock.now
        let begins = state.withLock { state in
            guard state.stream == nil else { return false }
            state.stream = StreamState(
                start: now, unreported: options.events?.streamedBodyLimit ?? 0, tail: options.tail)
            state.progress.bytesToReceive = length
            return true
        }
        if begins, hasDeadline, let deadline = request?.options.bodyDeadline {
            let start = options.start ?? now
            let rest = deadline - .nanoseconds(Int64(clamping: now - min(start, now)))
            let alarm = clock.schedule(after: max(rest, .zero), self)
            let isNeeded = state.withLock { state in
                if state.stream?.end == nil { state.stream?.alarm = alarm }
                return state.stream?.end == nil
            }
            if !isNeeded { clock.cancel(alarm) }
        }
        return begins
    }

    /// Begins a body that a task delivers without a head, and resumes the task.
    func beginStream(_ length: Int64, of task: any StreamTask) {
        _ = beginStream(length, hasDeadline: true)  // the first call of this receiver
        let hasEnded = state.withLock { state in
            if state.stream?.end == nil { state.task = task }
            return state.stream?.end != nil
        }
        if !hasEnded { task.resume() }
    }

    /// Sets the end of the body, unless the body has already ended.
    ///
    /// - Parameters:
    ///   - isInterrupted: Whether to cancel the task of the session.
    ///   - discardsBytes: Whether to discard the buffered bytes, which otherwise precede the end.
    func endStream(_ end: Result<Headers, any Error>, isInterrupted: Bool = false, discardsBytes: Bool = false) {
        let end = end.mapError { $0.describing(request) }
        let (reader, task, alarm, tail) = state.withLock { state -> (Reader?, (any DataTask)?, Alarm?, BodyTail?) in
            let tail = state.isDiscarded ? nil : state.stream?.tail
            guard state.stream?.end == nil else { return (nil, nil, nil, tail) }
            state.stream?.end = end
            if discardsBytes { state.body.clear() }
            return (state.stream?.reader.take(), state.task.take(), state.stream?.alarm.take(), tail)
        }
        if let alarm { clock.cancel(alarm) }
        if isInterrupted { task?.cancel() }
        withExtendedLifetime(task) {}
        reader?.resume(returning: .again)
        if let tail { tail.service.end(tail.workID) }
    }

    /// Detaches the response from the exchange because the exchange uses another response.
    func discard() { state.withLock { $0.isDiscarded = true } }

    var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

    /// Moves the body to another exchange of the service.
    func moveBody(to tail: BodyTail) {
        let hasEnded = state.withLock { state in
            state.stream?.tail = tail
            return state.stream?.end != nil
        }
        if hasEnded { tail.service.end(tail.workID) }
    }

    /// The progress that was reported last.
    var latestProgress: TransferProgress { state.withLock { $0.progress } }

    /// Ends the body with `URLError.cancelled` and discards the buffered bytes.
    func cancel() { endStream(.failure(URLError(.cancelled)), isInterrupted: true, discardsBytes: true) }

    /// Ends the body successfully and discards the buffered bytes.
    func finish() { endStream(.success([:]), isInterrupted: true, discardsBytes: true) }

    /// The trailer fields; `nil` before the end of the body and after an error.
    var trailers: Headers? {
        state.withLock { state in
            if case .success(let trailers)? = state.stream?.end, state.body.isEmpty { trailers } else { nil }
        }
    }

    // MARK: Batches

    /// The duration after which the buffered bytes count as a batch, whatever their number, in
    /// nanoseconds.
    private static let batchDuration: UInt64 = 50_000_000

    /// Returns whether the buffered bytes fill a batch, are the last ones, or arrive slowly.
    func isReady(_ state: borrowing State, _ now: UInt64) -> Bool {
        guard let stream = state.stream, !state.body.isEmpty else { return false }
        return state.body.count >= min(options.batchSize, options.bufferSize ?? .max) || stream.end != nil
            || now >= stream.lastRead.addingSaturated(.nanoseconds(Int64(Self.batchDuration)))
    }

    /// The current instant; 0 if bytes are not batched and the progress has no receiver.
    var instant: UInt64 {
        options.batchSize > 1 || hasProgressReceivers ? clock.now : 0
    }

    // MARK: Reading

    enum Read {
        case bytes(Data)
        case end(Result<Headers, any Error>)
        /// Bytes or the end have arrived.
        case again
        /// Another reader is waiting.
        case busy
    }

    /// Returns the next bytes, as received; `nil` at the end.
    func next() async throws -> Data? {
        while true {
            let read = await withTaskCancellationHandler {
                await withCheckedContinuation { reader in
                    let now = instant
                    let (read, paused) = state.withLock { self.read(&$0, reader, now) }
                    // A session pauses only if its task is a `StreamTask`.
                    (paused as? any StreamTask)?.receiveMore()
                    if let read { reader.resume(returning: read) }
                }
            } onCancel: {
                cancel()
            }
            switch read {
            case .bytes(let data): return data
            case .end(let end):
                _ = try end.get()
                return nil
            case .again: continue
            case .busy:
                throw WebServiceError(
                    .streamConsumed, "the body is already being read; use one iterator at a time", request: request)
            }
        }
    }

    /// Takes the buffered bytes: at most the size of the buffer plus one chunk of the transport.
    ///
    /// - Returns: The bytes or the end, or `nil` if the reader waits; and the task of the session
    ///   if it is paused and must continue.
    private func read(_ state: inout State, _ reader: Reader, _ now: UInt64) -> (Read?, (any DataTask)?) {
        if state.stream?.reader != nil { return (.busy, nil) }
        if isReady(state, now) {
            let isPaused = state.stream?.isPaused == true
            state.stream?.isPaused = false
            state.stream?.lastRead = now
            state.stream?.lastCount = state.body.count
            return (.bytes(state.body.take()), isPaused ? state.task : nil)
        }
        if let end = state.stream?.end { return (.end(end), nil) }
        state.stream?.reader = reader
        return (nil, nil)
    }

    /// Records an error of the reader. A transport error is recorded as the end of the body
    /// instead.
    func didFailReading(_ error: any Error) {
        let tail = state.withLock { state -> BodyTail? in
            if case .failure? = state.stream?.end { nil } else { state.stream?.tail }
        }
        tail?.record(.failure, ExchangeLog.Attempt.kind(of: error), error: error)
    }

    /// Reports the first bytes to the observers, as the reader takes them.
    func reportRead(_ bytes: Data) {
        guard let events = options.events, events.streamedBodyLimit > 0 else { return }
        let count = state.withLock { state in
            let count = min(state.stream?.unreported ?? 0, bytes.count)
            state.stream?.unreported -= count
            return count
        }
        // A prefix would retain all bytes.
        if count > 0 { events.reportBody(count == bytes.count ? bytes : Data(Array(bytes.prefix(count)))) }
    }
}

extension ResponseReceiver: AlarmTarget {
    /// Ends the body at the deadline, after the bytes that were received.
    package func ring() {
        guard let request else { return }  // unreachable: the deadline is that of the request
        endStream(.failure(WebServiceError.deadline(of: request)), isInterrupted: true)
    }
}
