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
        case running(URLSessionDataTask, cancel: @Sendable () -> Void)
        case cancelled
    }

    private let phase = Mutex(Phase.created)
    private let request: any URLRequestEncodable
    private let completion: Completion
    private let start: @Sendable (URLRequest, ResumableDataTask) -> Void

    /// - Parameters:
    ///   - completion: Called once.
    ///   - start: Creates the task of Foundation and hands it to ``run(_:cancel:)``, or calls the completion.
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
            guard let body = (request.httpBodyStream as? BodyStream)?.source else { return start(request, self) }
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

    /// Resumes the task of Foundation, which is not resumed yet.
    ///
    /// - Parameter cancel: Cancels it without waiting.
    func run(_ task: URLSessionDataTask, cancel: @escaping @Sendable () -> Void) {
        let isWanted = phase.withLock { phase in
            if case .cancelled = phase { return false }
            phase = .running(task, cancel: cancel)
            return true
        }
        if !isWanted { task.cancel() }
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
