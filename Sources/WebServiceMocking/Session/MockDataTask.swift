import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task whose result is determined by a closure.
///
/// The thread that removes the completion from the state calls it, so the completion is called at
/// most once.
final class MockDataTask: DataTask, AlarmTarget {
    typealias Result = (Data?, ResponseHead?, (any Error)?)
    typealias Completion = @Sendable (Result, _ trailers: Headers) -> Void

    /// A result, and the delay after which it is delivered.
    struct Outcome: Sendable {
        var result: Result
        var trailers = Headers()
        var delay = Duration.zero
        /// A closure that is called when the client receives the result or its first part.
        var didArrive: (@Sendable () -> Void)?
        /// A closure that determines the outcome asynchronously; `nil` if this is the outcome.
        var later: (@Sendable () async -> Outcome)?
        /// The suspended task of another session that sends the request; `nil` if a stub responds.
        var passed: (any DataTask)?

        init(result: Result, trailers: Headers = Headers(), delay: Duration = .zero) {
            (self.result, self.trailers, self.delay) = (result, trailers, delay)
        }

        init(later: @escaping @Sendable () async -> Outcome) {
            self.init(result: (nil, nil, nil))
            self.later = later
        }

        init(passed: any DataTask) {
            self.init(result: (nil, nil, nil))
            self.passed = passed
        }
    }

    /// A request that was sent.
    struct Sent {
        let timeout: Duration
        /// The route, which either determines the outcome in the background or passes the request
        /// to a gate immediately.
        let route: Route
    }

    enum Route: Sendable {
        case stubs(@Sendable () -> Outcome)
        case gate(@Sendable (MockDataTask) -> Void)
    }

    private struct State {
        var phase: TaskPhase<Completion>
        var alarms: [Alarm] = []
        /// The Swift task that runs an asynchronous handler, or iterates the sequence of the body.
        var body: Task<Void, Never>?
        /// The task of another session that sends the request.
        var passed: (any DataTask)?
    }

    private let shared: Mutex<State>
    private let clock: TaskClock
    private let delivery: BodyDelivery?
    private let send: @Sendable () throws -> Sent

    /// Creates a suspended task.
    ///
    /// - Parameters:
    ///   - clock: The clock that measures the timeout and the delay.
    ///   - delivery: The receiver of the parts of a body that is a sequence; `nil` to complete with
    ///     all bytes.
    ///   - completion: A closure that is called at most once on a background queue, after
    ///     `resume()` or `cancel()`, unless `delivery` receives the whole body or another session
    ///     completes the request.
    ///   - send: A closure that is called within the first `resume()`, unless the task was
    ///     cancelled. It returns the timeout and the route, or throws the error of the request.
    init(
        clock: TaskClock, delivery: BodyDelivery? = nil, completion: @escaping Completion,
        send: @escaping @Sendable () throws -> Sent
    ) {
        shared = Mutex(State(phase: .suspended(completion)))
        self.clock = clock
        self.delivery = delivery
        self.send = send
    }

    var state: DataTaskState {
        let (state, passed) = shared.withLock { ($0.phase.state, $0.passed) }
        return passed?.state ?? state
    }

    /// The task of another session that sends the request; `nil` if a stub responds.
    ///
    /// The value does not change after ``cancel()``.
    var passed: (any DataTask)? { shared.withLock { $0.passed } }

    func resume() {
        guard shared.withLock({ $0.phase.resume() }) != nil else { return }
        let outcome: @Sendable () -> Outcome
        do {
            let sent = try send()
            cancelAtEnd(clock.schedule(after: sent.timeout, self))
            switch sent.route {
            case .stubs(let determine): outcome = determine
            case .gate(let receive): return receive(self)
            }
        } catch {
            outcome = { Outcome(result: (nil, nil, error)) }
        }
        clock.async { [self] in
            guard state == .running else { return }
            proceed(outcome())
        }
    }

    /// Delivers an outcome when it is known, after its delay.
    func proceed(_ outcome: Outcome) {
        if let later = outcome.later {
            let handler = Task(executorPreference: clock.executor) { [self, clock] in
                let outcome = await later()
                clock.async { [self] in proceed(outcome) }
            }
            return cancelAtEnd(handler)
        }
        if let passed = outcome.passed { return pass(to: passed) }
        guard outcome.delay > .zero else { return deliver(outcome) }
        cancelAtEnd(clock.schedule(after: outcome.delay) { [self] in clock.async { [self] in deliver(outcome) } })
    }

    /// Sends the request with the task of another session, which also completes it.
    private func pass(to task: any DataTask) {
        let alarms = shared.withLock { state -> [Alarm]? in
            guard state.phase.content != nil else { return nil }
            defer { state.alarms = [] }
            state.passed = task
            _ = state.phase.complete()
            return state.alarms
        }
        guard let alarms else { return }
        for alarm in alarms { clock.cancel(alarm) }
        task.resume()
    }

    func cancelAtEnd(_ task: Task<Void, Never>) {
        let isNeeded = shared.withLock { state in
            if state.phase.content != nil { state.body = task }
            return state.phase.content != nil
        }
        if !isNeeded { task.cancel() }
    }

    private func cancelAtEnd(_ alarm: Alarm) {
        let isNeeded = shared.withLock { state in
            if state.phase.content != nil { state.alarms.append(alarm) }
            return state.phase.content != nil
        }
        if !isNeeded { clock.cancel(alarm) }
    }

    private func deliver(_ outcome: Outcome) {
        let result = outcome.result
        if result.2 is NoResponse { return }  // completed by the timeout or by cancel()
        if state == .running { outcome.didArrive?() }
        if let chunks = result.2 as? MockChunks { return deliver(chunks, result.1, outcome.trailers) }
        complete()?(result, outcome.trailers)
    }

    /// Iterates the sequence of a body.
    private func deliver(_ chunks: MockChunks, _ head: ResponseHead?, _ trailers: Headers) {
        let alarms = shared.withLock { state in
            defer { state.alarms = [] }
            return state.alarms
        }
        for alarm in alarms { clock.cancel(alarm) }
        if let delivery, let head { delivery.receive(head, length: nil) }
        let body = Task(executorPreference: clock.executor) { [self, clock] in
            let collected = CollectedBody()
            do {
                let take: MockChunks.Take = { [delivery] chunk in
                    try Task.checkCancellation()
                    guard let delivery else {
                        let count = collected.append(chunk)
                        if let maximum = chunks.maximum, count > maximum { throw chunks.tooLarge() }
                        return
                    }
                    delivery.receive(chunk)
                    await delivery.room()
                }
                try await chunks.produce(take, clock)
                guard let completion = complete() else { return }
                if let delivery { return delivery.finish(.success(trailers)) }
                completion((collected.value, head, nil), trailers)
            } catch {
                complete()?((nil, nil, error), [:])
            }
        }
        cancelAtEnd(body)
    }

    /// Has no effect, because a request cannot be paused after `resume()`.
    func suspend() {}

    func cancel() {
        fail(.cancelled)
        passed?.cancel()
    }

    func ring() { fail(.timedOut) }

    private func fail(_ code: URLError.Code) {
        guard let completion = complete() else { return }
        clock.async { completion((nil, nil, URLError(code)), [:]) }
    }

    /// Completes the task, and cancels its alarms and its Swift task.
    ///
    /// - Returns: The completion to call; `nil` if the task was complete.
    private func complete() -> Completion? {
        let (phase, alarms, body) = shared.withLock { state in
            defer { (state.alarms, state.body) = ([], nil) }
            return (state.phase.complete(), state.alarms, state.body)
        }
        for alarm in alarms { clock.cancel(alarm) }
        body?.cancel()
        return phase.content
    }
}
