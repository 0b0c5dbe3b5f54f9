import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task that makes its `URLSessionDataTask` when it is resumed, and suspends only what was not sent.
///
/// A body with files in it is written to a temporary file first, in the background and until somebody cancels, and handed over as bytes that the system
/// maps from there: as a stream, Foundation would send it without its length, and where Foundation on Linux reads a body from a file by itself, it ends the
/// process when the exchange is over before. On Linux Foundation then makes a copy in memory.
final class ResumableDataTask: DataTask {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    private enum Phase {
        case created
        case starting
        case running(URLSessionDataTask)
        case cancelled
    }

    private let phase = Mutex(Phase.created)
    private let request: any URLRequestEncodable
    private let completion: Completion
    private let start: @Sendable (URLRequest, @escaping Completion) -> URLSessionDataTask

    /// - Parameter start: Makes the task, not resumed, that calls its completion once.
    init(
        request: any URLRequestEncodable,
        completion: @escaping Completion,
        start: @escaping @Sendable (URLRequest, @escaping Completion) -> URLSessionDataTask
    ) {
        self.request = request
        self.completion = completion
        self.start = start
    }

    var state: DataTaskState {
        phase.withLock { phase in
            switch phase {
            case .created: .suspended
            case .starting: .running
            case .running(let task): task.state
            case .cancelled: .completed
            }
        }
    }

    func resume() {
        let isFirst = phase.withLock { phase in
            guard case .created = phase else { return false }
            phase = .starting
            return true
        }
        guard isFirst else { return }
        do {
            let request = try request.urlRequest()
            guard let body = (request.httpBodyStream as? BodyStream)?.source else { return begin(request) }
            DispatchQueue.global().async { [self] in begin(request, with: body) }
        } catch {
            fail(error)
        }
    }

    private func begin(_ request: URLRequest, with body: BodySource) {
        do throws(WebServiceError) {
            var request = request
            request.httpBodyStream = nil
            request.httpBody = try TemporaryFile.mapping(body) { state == .running }
            begin(request)
        } catch {
            fail(error)
        }
    }

    private func begin(_ request: URLRequest) {
        let task = start(request, completion)
        let goesOn = phase.withLock { phase in
            if case .cancelled = phase { return false }
            phase = .running(task)
            return true
        }
        if !goesOn { task.cancel() }
        task.resume()
    }

    private func fail(_ error: any Error) {
        let wasCancelled = state == .completed
        phase.withLock { $0 = .cancelled }
        completion(nil, nil, wasCancelled ? URLError(.cancelled) : error)
    }

    /// Nothing to do: what was not resumed is not sent, and what was sent goes on, because Foundation on Linux kills the process when
    /// a suspended task is cancelled.
    func suspend() {}

    func cancel() {
        enum Action {
            case none, complete
            case cancel(URLSessionDataTask)
        }
        let action = phase.withLock { phase -> Action in
            switch phase {
            case .created:
                phase = .cancelled
                return .complete
            case .starting:
                phase = .cancelled
                return .none
            case .running(let task): return .cancel(task)
            case .cancelled: return .none
            }
        }
        switch action {
        case .none: break
        case .complete: completion(nil, nil, URLError(.cancelled))
        // Foundation on Linux waits for its work queue here, which deadlocks when that queue is what we are called from.
        case .cancel(let task): DispatchQueue.global().async { task.cancel() }
        }
    }
}
