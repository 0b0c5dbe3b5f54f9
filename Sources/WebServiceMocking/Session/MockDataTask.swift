import Dispatch
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task whose result is determined by a closure.
///
/// The completion is called by the thread that removes it from the state, so it is called once.
final class MockDataTask: DataTask, AlarmTarget {
    typealias Result = (Data?, URLResponse?, (any Error)?)
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    private struct State {
        var phase = DataTaskState.suspended
        var completion: Completion?
        var alarm: Alarm?
        /// The Swift task that iterates the sequence of the body.
        var body: Task<Void, Never>?

        mutating func start() -> Bool {
            guard phase == .suspended else { return false }
            phase = .running
            return true
        }

        /// - Returns: Whether the alarm is needed; otherwise the caller cancels it.
        mutating func watch(_ alarm: Alarm) -> Bool {
            if completion != nil { self.alarm = alarm }
            return completion != nil
        }

        mutating func end(_ phase: DataTaskState) -> (completion: Completion, alarm: Alarm?, body: Task<Void, Never>?)?
        {
            guard let completion else { return nil }
            defer { (alarm, body) = (nil, nil) }
            self.phase = phase
            self.completion = nil
            return (completion, alarm, body)
        }
    }

    private let shared: Mutex<State>
    private let clock: TaskClock
    private let delivery: BodyDelivery?
    private let send: @Sendable () throws -> (timeout: Duration, answer: @Sendable () -> Result)

    /// Creates a suspended task.
    ///
    /// - Parameters:
    ///   - clock: Measures the timeout.
    ///   - delivery: Receives a body that is a sequence in parts; `nil` to complete with all bytes.
    ///   - completion: Called once on a background queue, after `resume()` or `cancel()`.
    ///   - send: Called once, within the first `resume()`. Returns the timeout and a closure that
    ///     determines the result in the background, or throws the error of the request.
    init(
        clock: TaskClock, delivery: BodyDelivery? = nil, completion: @escaping Completion,
        send: @escaping @Sendable () throws -> (timeout: Duration, answer: @Sendable () -> Result)
    ) {
        shared = Mutex(State(completion: completion))
        self.clock = clock
        self.delivery = delivery
        self.send = send
    }

    var state: DataTaskState {
        shared.withLock { $0.phase }
    }

    func resume() {
        guard shared.withLock({ $0.start() }) else { return }
        let answer: @Sendable () -> Result
        do {
            let sent = try send()
            answer = sent.answer
            let alarm = clock.schedule(after: sent.timeout, self)
            if !shared.withLock({ $0.watch(alarm) }) { clock.cancel(alarm) }
        } catch {
            answer = { (nil, nil, error) }
        }
        DispatchQueue.global().async { [self] in
            guard state == .running else { return }
            let (data, response, error) = answer()
            if error is NoAnswer { return }  // completed by the timeout or by cancel()
            if let chunks = error as? MockChunks { return deliver(chunks, response) }
            end(.completed)?(data, response, error)
        }
    }

    /// Iterates the sequence of a body.
    private func deliver(_ chunks: MockChunks, _ response: URLResponse?) {
        let alarm = shared.withLock { $0.alarm.take() }
        if let alarm { clock.cancel(alarm) }
        if let delivery, let response { delivery.receive(ResponseHead(response), length: nil) }
        let body = Task { [self] in
            let collected = Mutex(Data())
            do {
                try await chunks.produce { chunk in
                    try Task.checkCancellation()
                    guard let delivery else {
                        let count = collected.withLock { data in
                            data.append(chunk)
                            return data.count
                        }
                        if let maximum = chunks.maximum, count > maximum { throw chunks.tooLarge() }
                        return
                    }
                    delivery.receive(chunk)
                    await delivery.room()
                }
                guard let completion = end(.completed) else { return }
                if let delivery { return delivery.finish(.success([:])) }
                completion(collected.withLock { $0 }, response, nil)
            } catch {
                end(.completed)?(nil, nil, error)
            }
        }
        let isNeeded = shared.withLock { state in
            if state.completion != nil { state.body = body }
            return state.phase == .running
        }
        if !isNeeded { body.cancel() }
    }

    /// Has no effect: the request is sent by `resume()` and cannot be held back afterwards.
    func suspend() {}

    func cancel() {
        guard let completion = end(.canceling) else { return }
        DispatchQueue.global().async { [self] in
            shared.withLock { $0.phase = .completed }
            completion(nil, nil, URLError(.cancelled))
        }
    }

    /// Completes the task with `URLError.timedOut`.
    func ring() {
        guard let completion = end(.completed) else { return }
        DispatchQueue.global().async { completion(nil, nil, URLError(.timedOut)) }
    }

    private func end(_ phase: DataTaskState) -> Completion? {
        guard let (completion, alarm, body) = shared.withLock({ $0.end(phase) }) else { return nil }
        if let alarm { clock.cancel(alarm) }
        body?.cancel()
        return completion
    }
}
