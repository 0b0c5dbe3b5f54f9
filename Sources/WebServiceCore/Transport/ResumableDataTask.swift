import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task that creates its `URLSessionDataTask` when it is resumed.
///
/// A body with files is written to a temporary file first, in the background and until the task is
/// cancelled, and passed to Foundation as memory-mapped bytes. As a stream, Foundation would send
/// it without its length; and if Foundation on Linux reads a body from a file, it terminates the
/// process when the exchange ends early. On Linux, Foundation then creates a copy in memory.
final class ResumableDataTask: DataTask {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    private enum Phase {
        case created
        case starting
        case running(URLSessionDataTask, cancel: @Sendable () -> Void)
        case cancelled
    }

    private let phase = Mutex(Phase.created)
    private let request: any URLRequestEncodable
    private let completion: Completion
    private let start: @Sendable (URLRequest, ResumableDataTask) -> Void

    /// - Parameters:
    ///   - completion: Called once.
    ///   - start: Creates the Foundation task and passes it to ``run(_:cancel:)``, or calls the
    ///     completion.
    init(
        request: any URLRequestEncodable,
        completion: @escaping Completion,
        start: @escaping @Sendable (URLRequest, ResumableDataTask) -> Void
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
            case .running(let task, _): task.state
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
            guard let stream = request.httpBodyStream as? BodyStream else { return start(request, self) }
            guard let body = stream.source else { throw BodyStream.unsupported }
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
            start(request, self)
        } catch {
            fail(error)
        }
    }

    /// Resumes the Foundation task, which has not been resumed yet.
    ///
    /// - Parameter cancel: Cancels the task without waiting.
    func run(_ task: URLSessionDataTask, cancel: @escaping @Sendable () -> Void) {
        let isWanted = phase.withLock { phase in
            if case .cancelled = phase { return false }
            phase = .running(task, cancel: cancel)
            return true
        }
        switch (request as? EncodedRequest)?.source.options.priority {
        case .low: task.priority = URLSessionTask.lowPriority
        case .high: task.priority = URLSessionTask.highPriority
        case .normal, nil: break
        }
        if !isWanted { task.cancel() }
        task.resume()
    }

    private func fail(_ error: any Error) {
        let wasCancelled = state == .completed
        phase.withLock { $0 = .cancelled }
        completion(nil, nil, wasCancelled ? URLError(.cancelled) : error)
    }

    /// Has no effect: a request that was sent continues, because Foundation on Linux terminates the
    /// process when a suspended task is cancelled.
    func suspend() {}

    func cancel() {
        enum Action {
            case none, complete
            case cancel(@Sendable () -> Void)
        }
        let action = phase.withLock { phase -> Action in
            switch phase {
            case .created:
                phase = .cancelled
                return .complete
            case .starting:
                phase = .cancelled
                return .none
            case .running(_, let cancel): return .cancel(cancel)
            case .cancelled: return .none
            }
        }
        switch action {
        case .none: break
        case .complete: completion(nil, nil, URLError(.cancelled))
        case .cancel(let cancel): cancel()
        }
    }
}
