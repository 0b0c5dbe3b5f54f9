import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One data task under observation.
final class ScenarioExchange: Sendable {
    private struct State {
        var task: (any DataTask)?
        var start = ContinuousClock.now
        var outcomes: [ScenarioOutcome] = []
    }

    private let state = Mutex(State())
    private let completions = Tally()

    init(_ request: any URLRequestEncodable, over session: any Session) {
        let task = session.dataTask(request: request) { [self] data, response, error in complete(data, response, error) }
        state.withLock { $0.task = task }
    }

    private func complete(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        let isMain = Thread.isMainThread
        let end = ContinuousClock.now
        state.withLock { state in
            state.outcomes.append(
                ScenarioOutcome(data: data, response: response, error: error, wasOnMainThread: isMain, elapsed: state.start.duration(to: end)))
        }
        completions.add()
    }

    /// What the session gave.
    var task: (any DataTask)? { state.withLock { $0.task } }
    /// How often the completion was called.
    var completionCount: Int { completions.count }

    func resume() {
        state.withLock { $0.start = ContinuousClock.now }
        task?.resume()
    }

    func cancel() {
        task?.cancel()
    }

    /// The first outcome; `nil` when the time is over before.
    func outcome(limit: Duration) async -> ScenarioOutcome? {
        await completions.wait(for: 1, limit: limit) ? state.withLock { $0.outcomes.first } : nil
    }

    /// Cancels what still runs, and lets the task go.
    func end() {
        let task = state.withLock { state in
            defer { state.task = nil }
            return state.task
        }
        if completionCount == 0 { task?.cancel() }
    }
}
