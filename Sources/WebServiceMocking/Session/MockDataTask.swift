import Dispatch
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task whose answer is a closure. Whoever takes the completion out of the state calls it, so it is called once.
final class MockDataTask: DataTask {
    typealias Result = (Data?, URLResponse?, (any Error)?)
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    private struct State {
        var phase = DataTaskState.suspended
        var completion: Completion?

        mutating func start() -> Bool {
            guard phase == .suspended else { return false }
            phase = .running
            return true
        }

        mutating func end(_ phase: DataTaskState) -> Completion? {
            guard let completion else { return nil }
            self.phase = phase
            self.completion = nil
            return completion
        }
    }

    private let shared: Mutex<State>
    private let send: @Sendable () throws -> @Sendable () -> Result

    /// - Parameters:
    ///   - completion: Called once on a background queue after `resume()` or `cancel()`.
    ///   - send: Called once, inside the first `resume()`; it throws why nothing was sent, or returns what works out the answer in the background.
    init(completion: @escaping Completion, send: @escaping @Sendable () throws -> @Sendable () -> Result) {
        shared = Mutex(State(completion: completion))
        self.send = send
    }

    var state: DataTaskState {
        shared.withLock { $0.phase }
    }

    func resume() {
        guard shared.withLock({ $0.start() }) else { return }
        let answer: @Sendable () -> Result
        do {
            answer = try send()
        } catch {
            answer = { (nil, nil, error) }
        }
        DispatchQueue.global().async { [self] in
            guard state == .running else { return }
            let (data, response, error) = answer()
            if error is NoAnswer { return }  // until somebody cancels
            shared.withLock { $0.end(.completed) }?(data, response, error)
        }
    }

    /// Nothing to do: what was not resumed is not sent, and what was resumed has been sent.
    func suspend() {}

    func cancel() {
        guard let completion = shared.withLock({ $0.end(.canceling) }) else { return }
        DispatchQueue.global().async { [self] in
            shared.withLock { $0.phase = .completed }
            completion(nil, nil, URLError(.cancelled))
        }
    }
}
