public import Foundation
import Synchronization

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The receiver of the response to one request, and the reply that the exchange waits for.
///
/// The reply is set at the end of a whole body, whose size is limited, or at the head of a streamed
/// body, which is then read in parts, with back-pressure (`ResponseReceiver+Reading.swift`). Only a
/// response with a status from 200 to 299, or 101 (`WebService.upgrade`), is streamed. Only the
/// first reply has an effect. If no reply arrives, ``abandon()`` ends the wait.
package final class ResponseReceiver: BodyReceiver {
    package typealias Completion = @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void
    package typealias Progress = @Sendable (TransferProgress) -> Void
    typealias Waiter = CheckedContinuation<Void, Never>

    struct Reply: Sendable {
        let result: Result<Response, any Error>
        var metrics: TransportMetrics?
    }

    /// The settings of an exchange for its responses.
    struct Options: Sendable {
        /// The events for the observers; `nil` if there are no observers.
        var events: EventQueue?
        /// The instant of `resume()`.
        var start: UInt64?
        /// The part of the exchange that a streamed body retains; `nil` if the body is not
        /// streamed.
        var tail: BodyTail?
        /// The number of bytes of a streamed body that may be buffered before the transport pauses;
        /// `nil` if the body is not streamed.
        var bufferSize: Int?
        /// The number of buffered bytes at which the reader of a streamed body is woken, unless the
        /// bytes arrive slowly. Fewer wake-ups take less processor time.
        var batchSize = 1
        /// A closure that receives the interim heads. An error that it throws ends the request.
        var onInterim: (@Sendable (ResponseHead) throws -> Void)?
    }

    private enum Phase {
        case open
        case replied(Reply)
        /// The reply was taken or abandoned.
        case over
    }

    struct State: ~Copyable {
        private var phase = Phase.open
        /// The Swift task that waits for the reply.
        private var waiter: Waiter?
        /// The task of the session, until the reply or, for a streamed body, the end of the body.
        var task: (any DataTask)?
        var head: ResponseHead?
        /// The decoder of a whole body.
        var decoder: (any ContentDecoder)?
        /// The maximum size of a whole body in bytes.
        var maximum: Int
        /// The rest of a whole body that is not needed.
        var unneeded = UnneededBody()
        /// The decoded bytes of a whole body, or the bytes of a streamed body that are buffered for
        /// its reader, as received.
        var body = BodyBuffer()
        var progress: TransferProgress
        var progressReceivers: ProgressReceivers
        private var rate = TransferRate()
        /// The state of a streamed body, once its head is accepted.
        var stream: StreamState?
        /// Whether the exchange uses another response, so the end of this one is not reported.
        var isDiscarded = false

        init(_ progress: TransferProgress, _ receivers: ProgressReceivers, maximum: Int) {
            (self.progress, progressReceivers, self.maximum) = (progress, receivers, maximum)
        }

        /// Counts bytes received at an instant. If the instant is 0, the rate is not measured.
        fileprivate mutating func add(_ count: Int, at now: UInt64) {
            if progress.bytesReceived == 0 { rate.reset() }
            progress.bytesReceived += Int64(count)
            progress.bytesPerSecond = now == 0 ? nil : rate.add(progress.bytesReceived, at: now)
        }

        /// Sets the number of bytes sent by an instant. If the instant is 0, the rate is not
        /// measured.
        fileprivate mutating func setSent(_ count: Int64, of length: Int64?, at now: UInt64) {
            (progress.bytesSent, progress.bytesToSend) = (count, length)
            if progress.bytesReceived == 0 { progress.bytesPerSecond = now == 0 ? nil : rate.add(count, at: now) }
        }

        var isOpen: Bool { if case .open = phase { true } else { false } }

        /// - Returns: The waiter to resume and the task to release, both outside the lock.
        mutating func set(_ reply: Reply) -> (Waiter?, (any DataTask)?) {
            guard isOpen else { return (nil, nil) }
            phase = .replied(reply)
            return (waiter.take(), stream == nil ? task.take() : nil)
        }

        /// - Returns: Whether the caller must resume the task, and whether it must cancel the task.
        fileprivate mutating func wait(for task: any DataTask, _ waiter: Waiter) -> (resumes: Bool, cancels: Bool) {
            switch phase {
            case .open:
                (self.task, self.waiter) = (task, waiter)
                return (true, false)
            case .replied: return (false, false)
            case .over: return (false, true)
            }
        }

        /// - Returns: Whether the receiver had no reply yet.
        fileprivate mutating func close() -> Bool {
            guard isOpen else { return false }
            phase = .over
            return true
        }

        fileprivate mutating func abandon() -> (Waiter?, (any DataTask)?) {
            guard isOpen else { return (nil, nil) }
            phase = .over
            return (waiter.take(), task.take())
        }

        fileprivate mutating func takeReply() -> Reply? {
            guard case .replied(let reply) = phase else { return nil }
            phase = .over
            return reply
        }
    }

    let state: Mutex<State>
    let request: Request?
    let clock: TaskClock
    let options: Options
    let source: Response.Source
    private let announcement: Announcement?
    /// A closure that receives the reply, if no exchange waits for it.
    private let completion: Completion?
    /// Whether an exchange waits for the reply.
    var isAwaited: Bool { completion == nil }
    /// Whether the progress has receivers. The value is read without the lock, because progress is
    /// reported often and most exchanges have no receiver.
    private let reportsProgress: Atomic<Bool>

    /// Creates the receiver of an attempt.
    init(
        _ request: Request?, bodyLength: Int64?, source: Response.Source, announcement: Announcement? = nil,
        clock: TaskClock = .system, options: Options = Options(), progress: ProgressReceivers = ProgressReceivers(),
        completion: Completion? = nil
    ) {
        self.request = request
        self.source = source
        self.announcement = announcement
        self.clock = clock
        self.options = options
        self.completion = completion
        reportsProgress = Atomic(!progress.isEmpty)
        let limit = options.bufferSize == nil ? .max : UnneededBody.maximumBytes
        let maximum = max(0, min(limit, request?.options.bodyMaximum ?? .max))
        state = Mutex(State(TransferProgress(bytesToSend: bodyLength), progress, maximum: maximum))
    }

    /// Creates a receiver of a whole body without an exchange.
    ///
    /// - Parameters:
    ///   - request: The request, which limits the size of the body.
    ///   - source: The source of the response.
    ///   - progress: A closure that is called when bytes have been sent or received.
    ///   - completion: A closure that is called when the transfer has ended.
    package convenience init(
        _ request: any URLRequestEncodable, source: Response.Source, progress: Progress? = nil,
        completion: @escaping Completion
    ) {
        let encoded = request as? EncodedRequest
        self.init(
            encoded?.source ?? request as? Request, bodyLength: encoded.map(\.bodyLength) ?? 0, source: source,
            progress: ProgressReceivers(listener: progress), completion: completion)
    }

    // MARK: The reply

    /// Resumes a task of the session and waits for its reply.
    ///
    /// - Returns: The reply; `nil` if the receiver is abandoned first or the Swift task is
    ///   cancelled.
    func reply(to task: any DataTask) async -> Reply? {
        let alarm = attemptAlarm()
        defer { if let alarm { clock.cancel(alarm) } }
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let (resumes, cancels) = state.withLock { $0.wait(for: task, waiter) }
                // A session may complete within `resume()`, or even before it.
                if resumes {
                    announcement?.willSend()
                    return task.resume()
                }
                if cancels { task.cancel() }
                waiter.resume()
            }
        } onCancel: {
            abandon()
        }
        // The values are read under the lock, because the thread sanitizer does not see the order
        // that a continuation establishes.
        let (reply, unneeded) = state.withLock { ($0.takeReply(), $0.unneeded.alarm.take()) }
        if let unneeded { clock.cancel(unneeded) }
        return reply
    }

    /// Ends the wait and cancels the task of the session, unless there is a reply.
    func abandon() {
        let (waiter, task) = state.withLock { $0.abandon() }
        task?.cancel()
        waiter?.resume()
    }

    /// Schedules the alarm that ends the attempt, and returns it; `nil` if the attempt has no
    /// timeout.
    private func attemptAlarm() -> Alarm? {
        guard isAwaited, let limit = request?.options.attemptTimeout else { return nil }
        return clock.schedule(after: limit) { [self] in
            let text = "the attempt exceeded its attemptTimeout of \(limit); set a longer timeout or retry the request"
            interrupt(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: text]))
        }
    }

    private func set(_ reply: Reply) {
        let (waiter, task) = state.withLock { $0.set(reply) }
        withExtendedLifetime(task) {}
        waiter?.resume()
    }

    /// Notifies the delegate of a reply, and then sets the reply. The delegate is also notified
    /// when no caller waits for the reply any longer.
    private func settle(_ reply: Reply) {
        if let completion {
            if state.withLock({ $0.close() }) { completion(reply.result, reply.metrics) }
            return
        }
        guard let announcement else { return set(reply) }
        // The delegate must not delay the thread of the session.
        clock.async { [self] in
            switch reply.result {
            case .success(let response):
                announcement.didReceive(response.data, response.urlResponse, response.bodyFailure)
            case .failure(let error): announcement.didReceive(nil, nil, error)
            }
            set(reply)
        }
    }

    /// Receives the result of a session that completes with three optional values.
    func didComplete(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        announcement?.didReceive(data, response, error)
        set(Reply(result: Result(data, response, error, source: source)))
    }

    // MARK: Reception

    package func didReceive(_ head: ResponseHead, length: Int64?, decoder: (any ContentDecoder)?) throws {
        options.events?.report(head)
        // The limit applies to the decoded body, whose length is unknown.
        let length = decoder == nil ? length : nil
        if mayPause, (200..<300).contains(head.status) || head.status == 101 { return stream(head, length, decoder) }
        let hasBody = request?.method != .HEAD && head.status != 304 && length != 0
        let isFollowed = hasBody && isFollowed(head)
        let maximum = state.withLock { state in
            (state.head, state.decoder, state.progress.bytesToReceive) = (head, decoder, length)
            if isFollowed { state.maximum = min(state.maximum, UnneededBody.maximumBytes) }
            if let length, hasBody, length <= state.maximum { state.body.reserve(length) }
            return state.maximum
        }
        if let length, length > maximum, hasBody {
            let error = tooLarge(maximum, head)
            guard discardBody(after: error), length <= UnneededBody.maximumBytes else { throw error }
        } else if isFollowed {
            limitWait()
        }
    }

    /// Replies with an accepted head, which the body follows.
    private func stream(_ head: ResponseHead, _ length: Int64?, _ decoder: (any ContentDecoder)?) {
        guard beginStream(length, hasDeadline: head.status != 101) else { return }
        var response = Response(data: Data(), head: head, source: source)
        response.stream = BodyHandle(
            self, decoder: decoder, length: length, maximum: request?.options.maximumResponseBytes)
        settle(Reply(result: .success(response)))
    }

    package func didReceive(_ bytes: UnsafeRawBufferPointer) throws -> Demand {
        do { return try append(bytes, isDecoded: false) } catch {
            guard discardBody(after: error) else { throw error }
            return .more
        }
    }

    private enum Outcome {
        case added(TransferProgress, reader: Reader?)
        case paused
        case encoded(any ContentDecoder)
        case tooLarge(Int, ResponseHead?)
        case noMemory
        case discarded
        case failed(any Error)
        case over
    }

    private func append(_ bytes: UnsafeRawBufferPointer, isDecoded: Bool) throws -> Demand {
        let now = instant
        let outcome = state.withLock { state -> Outcome in
            if let stream = state.stream {
                // After a cancellation has discarded the buffered bytes, later ones would leave a
                // gap.
                guard stream.end == nil else { return .over }
                guard state.body.count < options.bufferSize ?? .max else {
                    state.stream?.isPaused = true
                    return .paused
                }
                if state.body.isEmpty { state.body.reserve(Int64(stream.lastCount)) }
            } else if let failure = state.unneeded.failure {
                return state.unneeded.discard(bytes.count) ? .discarded : .failed(failure)
            } else if !isDecoded, let decoder = state.decoder {
                return .encoded(decoder)
            } else if bytes.count > state.maximum - state.body.count {
                return .tooLarge(state.maximum, state.head)
            }
            guard state.body.append(bytes) else { return .noMemory }
            state.add(bytes.count, at: now)
            return .added(state.progress, reader: isReady(state, now) ? state.stream?.reader.take() : nil)
        }
        switch outcome {
        case .added(let progress, let reader):
            reader?.resume(returning: .again)
            report(progress)
        case .paused: return .pause
        case .encoded(let decoder):
            // The bytes are decoded outside the lock, because a small body can take long to decode.
            _ = try decoder.decodeBytes(bytes, limit: .max) { _ = try append($0, isDecoded: true) }
        case .tooLarge(let maximum, let head): throw tooLarge(maximum, head)
        case .noMemory:
            throw URLError(
                .dataLengthExceedsMaximum,
                userInfo: [NSLocalizedDescriptionKey: "the body does not fit into memory; stream or download the body"])
        case .discarded: break
        case .failed(let error): throw error
        case .over: throw URLError(.cancelled)
        }
        return .more
    }

    private func tooLarge(_ maximum: Int, _ head: ResponseHead?) -> WebServiceError {
        .tooLarge(maximum, request, head.map { Response(data: Data(), head: $0, source: source) })
    }

    package func didSend(_ byteCount: Int64, of length: Int64?) {
        let now = instant
        report(
            state.withLock { state in
                state.setSent(byteCount, of: length, at: now)
                return state.progress
            })
    }

    private func report(_ current: TransferProgress) {
        if hasProgressReceivers { state.withLock { $0.progressReceivers }.report(current) }
    }

    var hasProgressReceivers: Bool { reportsProgress.load(ordering: .acquiring) }

    /// Reports later progress to these receivers as well, unless receivers of the same kind are
    /// already set.
    func reportProgress(to receivers: ProgressReceivers) {
        guard !receivers.isEmpty else { return }
        state.withLock { state in
            state.progressReceivers.relay = state.progressReceivers.relay ?? receivers.relay
            state.progressReceivers.listener = state.progressReceivers.listener ?? receivers.listener
        }
        reportsProgress.store(true, ordering: .releasing)
    }

    // MARK: Completion

    private enum Step {
        case finish(any ContentDecoder)
        case settled(Waiter?, (any DataTask)?)
        /// A reply for the completion, or one of which the delegate or the observers are notified
        /// first.
        case settle(Reply, body: Data)
        case endStream(Result<Headers, any Error>, start: UInt64, byteCount: Int64, BodyTail?)
        case over
    }

    package func didComplete(_ result: Result<Headers, any Error>, metrics: TransportMetrics?) {
        let result = result.mapError { error -> any Error in URLError(transport: error) ?? error }
        let step = state.withLock { state -> Step in
            if let stream = state.stream {
                guard !stream.isComplete else { return .over }
                state.stream?.isComplete = true
                let tail = state.isDiscarded ? nil : options.tail
                // A body that its reader has finished is complete, although its task was cancelled.
                let end = if case .success? = stream.end { stream.end ?? result } else { result }
                return .endStream(end, start: stream.start, byteCount: state.progress.bytesReceived, tail)
            }
            if case .success = result, let decoder = state.decoder.take() { return .finish(decoder) }
            let body = state.body.take()
            // The delegate is notified of the reply that the exchange has received.
            let reply =
                state.unneeded.reply
                ?? Reply(result: state.response(body, result, from: source, metrics: metrics), metrics: metrics)
            guard completion == nil, announcement == nil, options.events == nil else {
                return .settle(reply, body: body)
            }
            let (waiter, task) = state.set(reply)
            return .settled(waiter, task)
        }
        switch step {
        case .finish(let decoder):
            // The decoder is finished outside the lock, like the decoding of bytes.
            didComplete(
                result.flatMap { trailers in
                    Result {
                        try decoder.finish()
                        return trailers
                    }
                }, metrics: metrics)
        case .settled(let waiter, _): waiter?.resume()
        case .settle(let reply, let body):
            if case .failure = reply.result, !body.isEmpty { options.events?.reportBody(body) }
            settle(reply)
        case .endStream(let end, let start, let byteCount, let tail):
            let entry = ExchangeLog.Entry(bodyEndingWith: end, byteCount: byteCount, from: start, to: clock.now)
            if let tail {
                tail.end(entry, metrics)
                state.withLock { $0.progressReceivers.relay }?.end()
            }
            endStream(end)
        case .over: break  // the session has completed twice
        }
    }
}

extension StreamingSession {
    /// Creates a task that receives the whole response. The completion is called on a thread of the
    /// handler pool, where it may block. If the status is not 200 to 299, an error of the body
    /// other than a cancellation is delivered together with the response and the bytes before the
    /// error.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        let receiver = ResponseReceiver(request, source: responseSource) { result, _ in
            Task(executorPreference: HandlerPool.shared) {
                switch result {
                case .success(let response): completion(response.data, response.urlResponse, response.bodyFailure)
                case .failure(let error): completion(nil, nil, error)
                }
            }
        }
        return streamTask(request: request, receiver: receiver)
    }
}
