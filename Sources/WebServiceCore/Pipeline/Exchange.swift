import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The objects and settings that the exchanges of one task share.
final class ExchangeContext: Sendable {
    let log: ExchangeLog
    let gate: SendGate
    let clock: TaskClock
    /// The core of the service, retained for as long as the task.
    ///
    /// Only the task of a typed request also retains the `WebService` (`TaskOwner`).
    let service: any PipelineSource
    private let state = Mutex(State())

    private struct State {
        /// The sizes of the buffer for a streamed body, and the accepted stream.
        var bufferSize: Int?
        var batchSize = 1
        weak var stream: ResponseStream?
        var trace: TraceParent?
        /// The instant of `resume()` on the system's clock, see ``SessionCancellation``.
        var start: UInt64?
    }

    init(_ service: any PipelineSource) {
        self.service = service
        clock = service.clock
        log = ExchangeLog(clock)
        gate = SendGate()
    }

    /// The number of bytes of a streamed body that may be buffered before the transport pauses;
    /// `nil` if the body is not streamed.
    var bufferSize: Int? {
        get { state.withLock { $0.bufferSize } }
        set { state.withLock { $0.bufferSize = newValue } }
    }

    /// The number of bytes of a streamed body that wake its reader, unless they arrive slowly.
    /// Fewer wake-ups cost less processor time.
    var batchSize: Int {
        get { state.withLock { $0.batchSize } }
        set { state.withLock { $0.batchSize = newValue } }
    }

    /// The instant of the system's clock at which the program started the exchange; `nil` before
    /// that. Set for an exchange that continues an earlier one.
    var start: UInt64? {
        get { state.withLock { $0.start } }
        set { state.withLock { $0.start = newValue } }
    }

    /// Records `resume()`.
    func begin() {
        let now = clock.now
        state.withLock { $0.start = $0.start ?? (clock.isInjected ? TaskClock.system.now : now) }
        log.begin(at: now)
    }

    /// Returns whether an error is that of a session that cancelled its requests after `resume()`.
    func isCancellation(_ error: WebServiceError) -> Bool {
        guard let cancellation = error.underlying as? SessionCancellation, let start = state.withLock({ $0.start })
        else { return false }
        return start <= cancellation.instant
    }

    /// Returns the trace of the exchange: the first one passed.
    func trace(_ current: TraceParent) -> TraceParent {
        state.withLock { state in
            let trace = state.trace ?? current
            state.trace = trace
            return trace
        }
    }

    /// Reports progress to the handlers of the task. Called on the threads of sessions.
    func report(_ progress: TransferProgress) {
        log.report(progress)
    }

    /// Records the head of a response. Called on the threads of sessions.
    func report(_ head: ResponseHead) {
        deliverInBackground(log.didReceive(head))
    }

    /// Records bytes of a body that no result contains.
    func reportBody(_ bytes: Data) {
        deliverInBackground(log.didReceiveBody(bytes))
    }

    /// Records the end of a streamed body. Called on the threads of sessions.
    func didEndBody(
        _ result: Result<Headers, any Error>, byteCount: Int64, _ metrics: TransportMetrics?, from start: UInt64
    ) {
        deliverInBackground(log.didEndBody(result, byteCount: byteCount, metrics, from: start))
    }

    /// Delivers events to observers, which must not delay the threads of sessions.
    private func deliverInBackground(_ delivery: EventQueue.Delivery?) {
        guard let delivery else { return }
        clock.async { [self] in log.deliver(delivery) }
    }

    /// Sets the stream whose head was accepted.
    func accept(_ stream: ResponseStream) {
        state.withLock { $0.stream = stream }
    }

    /// The stream whose head was accepted; `nil` before the head is accepted and after the stream
    /// has ended.
    var stream: ResponseStream? { state.withLock { $0.stream } }
}

/// One encoded request, its redirects, and its result.
final class Exchange: Cancellable {
    typealias Completion = @Sendable (Result<Response, any Error>) -> Void

    private struct State {
        var completion: Completion?
        /// The number of hops that have ended.
        var hops = 0
        var dataTask: (any DataTask)?
        var result: Result<Response, any Error>?
        var isOver: Bool { result != nil }
    }

    private let pipeline: Pipeline
    private let context: ExchangeContext
    private let state = Mutex(State())

    init(_ pipeline: Pipeline, _ context: ExchangeContext) {
        self.pipeline = pipeline
        self.context = context
    }

    /// Sends a request.
    ///
    /// - Parameter completion: Called once, on any thread, even if the exchange is cancelled before
    ///   or after this call.
    func start(_ request: EncodedRequest, completion: @escaping Completion) {
        let isOver = state.withLock { state in
            if !state.isOver { state.completion = completion }
            return state.isOver
        }
        if isOver { completion(.failure(URLError(.cancelled))) } else { send(request) }
    }

    /// Sends a request and returns its response. Throws `URLError.cancelled` as soon as the Swift
    /// task is cancelled.
    func response(to request: EncodedRequest) async throws -> Response {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in start(request) { _ in continuation.resume() } }
        } onCancel: {
            cancel()
        }
        // Read under the lock, because the thread sanitizer does not see the order that a
        // continuation establishes.
        guard let result = state.withLock({ $0.result }) else { throw URLError(.cancelled) }
        return try result.get()
    }

    /// Sends the request of one hop, as soon as the task is not suspended.
    ///
    /// - Parameters:
    ///   - hop: The number of preceding hops.
    ///   - redirects: The URLs that redirected to this request.
    private func send(_ request: EncodedRequest, hop: Int = 0, after redirects: [URL] = []) {
        switch context.gate.admit(sending: { { [self] in send(request, hop: hop, after: redirects) } }) {
        case .granted: break
        case .held: return
        case .refused: return cancel()
        }
        do {
            let (request, delegate) = try pipeline.finished(request, in: context)
            let dataTask = try pipeline.dataTask(for: request, delegate, in: context) { [self] result, metrics in
                receive(result, metrics, for: request, hop: hop, after: redirects)
            }
            let isNeeded = state.withLock { state in
                if !state.isOver { state.dataTask = dataTask }
                return !state.isOver
            }
            if isNeeded { dataTask.resume() } else { dataTask.cancel() }
        } catch {
            finish(.failure(error))
        }
    }

    private func receive(
        _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, for request: EncodedRequest, hop: Int,
        after redirects: [URL]
    ) {
        // A session that completes twice neither follows a redirect twice nor ends the exchange
        // while the redirect is in flight.
        let isFirst = state.withLock { state in
            guard !state.isOver, state.hops == hop else { return false }
            state.hops += 1
            return true
        }
        guard isFirst else { return }
        switch pipeline.receive(result, metrics, for: request, after: redirects, in: context) {
        case .complete(let result): finish(result)
        case .follow(let request, let redirects): send(request, hop: hop + 1, after: redirects)
        }
    }

    func cancel() {
        finish(.failure(URLError(.cancelled)))?.cancel()
    }

    /// - Returns: The data task that was in flight.
    @discardableResult
    private func finish(_ result: Result<Response, any Error>) -> (any DataTask)? {
        let old = state.withLock { state in
            defer { state = State(hops: state.hops, result: state.result ?? result) }
            return state
        }
        old.completion?(result)
        return old.dataTask
    }
}
