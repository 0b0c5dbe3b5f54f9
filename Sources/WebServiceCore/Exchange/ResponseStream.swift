import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A receiver that completes with the head and buffers the body until it is read.
///
/// A response whose status is not 200 to 299 is collected instead, and completes as a whole.
///
/// While the buffer is full, the stream returns ``Demand/pause`` to the session. The next read
/// empties the buffer and calls ``StreamTask/receiveMore()``, which continues the session. In the
/// meantime, `CurlSession` does not read from the socket (`CurlHandle.receiveBody(_:)`). A session
/// that cannot pause continues to read, and ``BodyDelivery`` buffers the bytes.
final class ResponseStream: BodyReceiver {
    typealias Completion = BodyCollector.Completion
    typealias Reader = CheckedContinuation<Void, Never>

    struct State: ~Copyable {
        var completion: Completion?
        /// The receiver of a response that is not streamed.
        var collector: BodyCollector?
        /// The bytes buffered for the reader, as received.
        var buffer = BodyBuffer()
        /// The number of bytes in the last read, an estimate of the size of the next one.
        var lastCount = 0
        /// The instant at which the reader last took bytes.
        var lastRead: UInt64 = 0
        var isPaused = false
        var progress = TransferProgress()
        /// The reader that waits for bytes or the end.
        var reader: Reader?
        var result: Result<Headers, any Error>?
        var task: (any StreamTask)?
        var alarm: Alarm?
        var headInstant: UInt64 = 0
    }

    /// The maximum size of the body of a response that is not streamed, in bytes.
    private static let maximumErrorBytes = 1 << 20

    let mayPause = true
    private let state: Mutex<State>
    private let request: EncodedRequest
    private let source: Response.Source
    private let bufferSize: Int
    private let batchSize: Int
    private let context: ExchangeContext
    private let isObserved: Bool
    private let streamedBodyLimit: Int

    init(
        _ request: EncodedRequest, _ source: Response.Source, bufferSize: Int, _ context: ExchangeContext,
        _ permit: ExchangeLog.Permit, _ completion: @escaping Completion
    ) {
        self.request = request
        self.source = source
        self.bufferSize = bufferSize
        batchSize = permit.batchSize
        self.context = context
        (isObserved, streamedBodyLimit) = (permit.isObserved, permit.streamedBodyLimit)
        state = Mutex(State(completion: completion, progress: TransferProgress(beginning: request)))
    }

    /// Attaches the task of the session.
    func attach(_ task: any StreamTask) {
        state.withLock { $0.task = task }
    }

    // MARK: Reception

    func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
        if isObserved { context.report(head) }
        guard (200..<300).contains(head.status) else {
            let collector = BodyCollector(
                request, source: source, maximum: Self.maximumErrorBytes, progress: context.report,
                partObserver: isObserved ? context.reportBody : nil
            ) { [self] result, metrics in
                state.withLock { $0.completion.take() }?(result, metrics)
            }
            state.withLock { $0.collector = collector }
            return try collector.didReceive(head, length: length, decoder: decoder)
        }
        let now = context.clock.now
        let completion = state.withLock { state in
            state.headInstant = now
            state.progress.bytesToReceive = decoder == nil ? length : nil
            return state.completion.take()
        }
        guard let completion else { return }
        context.accept(self)
        limitDuration(now)
        var response = Response(data: Data(), head: head, source: source)
        response.stream = BodyHandle(
            self, decoder: decoder, length: decoder == nil ? length : nil, maximum: maximum,
            recorder: streamedBodyLimit > 0 ? BodyRecorder(context, limit: streamedBodyLimit) : nil)
        completion(.success(response), nil)
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        enum Outcome {
            case collect(BodyCollector)
            case pause
            case taken(Reader?, TransferProgress)
            case noMemory
            case over
        }
        let now = instant
        let outcome = state.withLock { state -> Outcome in
            if let collector = state.collector { return .collect(collector) }
            // After a cancellation has discarded the buffered bytes, later ones would leave a gap.
            guard state.result == nil else { return .over }
            guard state.buffer.count < bufferSize else {
                state.isPaused = true
                return .pause
            }
            if state.buffer.isEmpty { state.buffer.reserve(Int64(state.lastCount)) }
            guard state.buffer.append(bytes) else { return .noMemory }
            state.progress.bytesReceived += Int64(bytes.count)
            return .taken(isReady(state, now) ? state.reader.take() : nil, state.progress)
        }
        switch outcome {
        case .collect(let collector): return try collector.didReceive(bytes)
        case .pause: return .pause
        case .noMemory: throw URLError(.dataLengthExceedsMaximum)
        case .over: throw URLError(.cancelled)
        case .taken(let reader, let news):
            reader?.resume()
            context.report(news)
            return .more
        }
    }

    func didSend(_ byteCount: Int64, of length: Int64?) {
        let news = state.withLock { state in
            (state.progress.bytesSent, state.progress.bytesToSend) = (byteCount, length)
            return state.progress
        }
        context.report(news)
    }

    func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        let result = result.mapError { error -> any Error in URLError(transport: error) ?? error }
        let collector = state.withLock { $0.collector.take() }
        if let collector {
            end(result)
            return collector.didComplete(result, metrics: metrics)
        }
        if let completion = state.withLock({ $0.completion.take() }) {
            end(result)
            return completion(result.flatMap { _ in .failure(URLError(.badServerResponse)) }, metrics)
        }
        let (start, count) = state.withLock { ($0.headInstant, $0.progress.bytesReceived) }
        context.reportEnd(result, byteCount: count, metrics, from: start)
        end(result)
        context.progress?.end()
    }

    /// Sets the result, unless there already is one.
    private func end(_ result: Result<Headers, any Error>) {
        let (reader, task, alarm) = state.withLock { state in
            if state.result == nil { state.result = result }
            return (state.reader.take(), state.task.take(), state.alarm.take())
        }
        withExtendedLifetime(task) {}
        if let alarm { context.clock.cancel(alarm) }
        reader?.resume()
    }

    // MARK: Limits

    var original: Request { request.source }

    /// The maximum size of the decoded body, which ``ResponseBody`` enforces; `nil` unless the
    /// request sets one.
    private var maximum: Int? { original.options.maximumResponseBytes }

    /// Applies the deadline to the body if the request sets one.
    private func limitDuration(_ now: UInt64) {
        guard let deadline = original.options.deadline else { return }
        let start = context.record.metrics.origin?.instant ?? now
        let rest = deadline - .nanoseconds(Int64(clamping: now - min(start, now)))
        let alarm = context.clock.schedule(after: max(rest, .zero), self)
        let isNeeded = state.withLock { state in
            if state.result == nil { state.alarm = alarm }
            return state.result == nil
        }
        if !isNeeded { context.clock.cancel(alarm) }
    }

    // MARK: Reading

    /// The duration after which any number of bytes is a batch, in nanoseconds.
    private static let batchDuration: UInt64 = 50_000_000

    /// Returns whether enough bytes are buffered, or the last ones, or if they arrive slowly.
    private func isReady(_ state: borrowing State, _ now: UInt64) -> Bool {
        guard !state.buffer.isEmpty else { return false }
        return state.buffer.count >= min(batchSize, bufferSize) || state.result != nil
            || now >= state.lastRead.addingSaturated(.nanoseconds(Int64(Self.batchDuration)))
    }

    /// The current instant; 0 if bytes are not batched.
    private var instant: UInt64 { batchSize > 1 ? context.clock.now : 0 }

    enum Read {
        case bytes(Data)
        case end
        case failure(any Error)
        case wait
        /// Another reader is waiting.
        case busy
    }

    /// Returns the buffered bytes: at most the size of the buffer plus one chunk of the transport.
    private func read() -> Read {
        let now = instant
        let (read, task) = state.withLock { state -> (Read, (any StreamTask)?) in
            if state.reader != nil { return (.busy, nil) }
            if isReady(state, now) {
                state.lastRead = now
                state.lastCount = state.buffer.count
                defer {
                    state.isPaused = false
                    // A stream may be idle for a long time.
                    state.buffer.releaseMemory()
                }
                return (.bytes(state.buffer.take()), state.isPaused ? state.task : nil)
            }
            switch state.result {
            case .success?: return (.end, nil)
            case .failure(let error)?: return (.failure(error), nil)
            case nil: return (.wait, nil)
            }
        }
        task?.receiveMore()
        return read
    }

    /// Returns the next bytes, as received; `nil` at the end.
    func next() async throws -> Data? {
        while true {
            switch read() {
            case .bytes(let data): return data
            case .end: return nil
            case .failure(let error): throw error
            case .wait: await wait()
            case .busy: throw WebServiceError(.streamConsumed, "the body is already being read", request: original)
            }
        }
    }

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = instant
                let mustWait = state.withLock { state in
                    guard !isReady(state, now), state.result == nil, state.reader == nil else { return false }
                    state.reader = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Records an error of the reader. One of the transport is part of the end of the body.
    func didFailReading(_ error: any Error) {
        let isReported = state.withLock { if case .failure? = $0.result { true } else { false } }
        if !isReported { context.record(failure: error) }
    }

    /// The trailer fields; `nil` before the end of the body.
    var trailers: Headers? {
        state.withLock { if case .success(let trailers)? = $0.result, $0.buffer.isEmpty { trailers } else { nil } }
    }

    /// Ends the exchange with `URLError.cancelled` and discards the buffered bytes.
    func cancel() { fail(URLError(.cancelled), discardsBytes: true) }

    /// Ends the exchange with an error, which follows the buffered bytes unless they are discarded.
    func fail(_ error: any Error, discardsBytes: Bool) {
        let (reader, task, alarm) = state.withLock { state in
            guard state.result == nil else { return (nil, nil, nil) as (Reader?, (any StreamTask)?, Alarm?) }
            state.result = .failure(error)
            if discardsBytes { state.buffer.clear() }
            return (state.reader.take(), state.task.take(), state.alarm.take())
        }
        if let alarm { context.clock.cancel(alarm) }
        task?.cancel()
        reader?.resume()
    }
}
