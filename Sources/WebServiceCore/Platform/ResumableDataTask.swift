import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task that makes its `URLSessionDataTask` when it is resumed, and suspends only what was not sent.
///
/// A body with files in it is written to a temporary file first, in the background: as a stream, Foundation would send it without its length, and on Linux
/// once at most. On Linux Foundation then holds all of it in memory while it is sent.
final class ResumableDataTask: DataTask {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    /// What is to be sent.
    struct Message {
        var request: URLRequest
        /// Where the body is, when it is not in the request.
        var bodyFile: URL?
    }

    private enum Phase {
        case created
        case starting
        case running(URLSessionDataTask)
        case cancelled
    }

    private let phase = Mutex(Phase.created)
    private let request: any URLRequestEncodable
    private let completion: Completion
    private let start: @Sendable (Message, @escaping Completion) -> URLSessionDataTask

    /// - Parameter start: Makes the task, not resumed, that calls its completion once.
    init(
        request: any URLRequestEncodable,
        completion: @escaping Completion,
        start: @escaping @Sendable (Message, @escaping Completion) -> URLSessionDataTask
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
            guard let body = (request.httpBodyStream as? BodyStream)?.source else { return begin(Message(request: request), completion) }
            DispatchQueue.global().async { [self] in begin(request, with: body) }
        } catch {
            fail(error)
        }
    }

    private func begin(_ request: URLRequest, with body: BodySource) {
        do throws(WebServiceError) {
            let file = try TemporaryFile.holding(body)
            var request = request
            request.httpBodyStream = nil
            #if canImport(FoundationNetworking)
            // Foundation on Linux ends the process when an exchange is over while it reads a body from a file. So it gets the bytes.
            if let bytes = try? Data(contentsOf: file.url, options: .alwaysMapped) {  // else the file is tried, and the session says what is wrong
                request.httpBody = bytes
                return begin(Message(request: request), completion)
            }
            #endif
            begin(Message(request: request, bodyFile: file.url)) { [completion] data, response, error in
                withExtendedLifetime(file) { completion(data, response, error) }
            }
        } catch {
            fail(error)
        }
    }

    private func begin(_ message: Message, _ completion: @escaping Completion) {
        let task = start(message, completion)
        let goesOn = phase.withLock { phase in
            if case .cancelled = phase { return false }
            phase = .running(task)
            return true
        }
        if !goesOn { task.cancel() }
        task.resume()
    }

    private func fail(_ error: any Error) {
        phase.withLock { $0 = .cancelled }
        completion(nil, nil, error)
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
