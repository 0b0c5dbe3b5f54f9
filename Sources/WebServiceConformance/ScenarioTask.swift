import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task of a scenario that records each call of its completion.
final class ScenarioTask: Sendable {
    private struct State {
        var task: (any DataTask)?
        var start = ContinuousClock.now
        var outcomes: [ScenarioOutcome] = []
    }

    private let state = Mutex(State())
    private let completions = Tally()

    init(_ request: any URLRequestEncodable, over session: any Session) {
        let task = session.dataTask(request: request) { [self] data, response, error in
            complete(data, response, error)
        }
        state.withLock { $0.task = task }
    }

    private func complete(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        let isMain = Thread.isMainThread
        let end = ContinuousClock.now
        state.withLock { state in
            state.outcomes.append(
                ScenarioOutcome(
                    data: data, response: response, error: error, wasOnMainThread: isMain,
                    elapsed: state.start.duration(to: end)))
        }
        completions.add()
    }

    /// The task that the session returned; `nil` after ``end()``.
    var task: (any DataTask)? { state.withLock { $0.task } }
    /// The number of calls of the completion.
    var completionCount: Int { completions.count }

    func resume() {
        state.withLock { $0.start = ContinuousClock.now }
        task?.resume()
    }

    func cancel() {
        task?.cancel()
    }

    /// Returns the first outcome, or `nil` if the task did not complete within the limit.
    func outcome(limit: Duration) async -> ScenarioOutcome? {
        await completions.wait(for: 1, limit: limit) ? state.withLock { $0.outcomes.first } : nil
    }

    /// Cancels the task if it is not complete, and releases it.
    func end() {
        let task = state.withLock { state in
            defer { state.task = nil }
            return state.task
        }
        if completionCount == 0 { task?.cancel() }
    }
}
