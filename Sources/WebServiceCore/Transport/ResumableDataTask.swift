import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task that creates its `URLSessionDataTask` when it is resumed.
///
/// A body with files is first written to a temporary file in the background, and then passed to
/// Foundation as memory-mapped bytes. A cancellation stops the writing. The alternatives do not
/// work: Foundation would send a stream without its length, and Foundation on Linux terminates the
/// process if it reads a body from a file and the exchange ends early. On Linux, Foundation copies
/// the memory-mapped bytes.
final class ResumableDataTask: DataTask {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    private typealias Transfer = (task: URLSessionDataTask, cancel: @Sendable () -> Void)

    /// The content is `nil` before Foundation's task is resumed.
    private let phase = Mutex<TaskPhase<Transfer?>>(.suspended(nil))
    private let request: any URLRequestEncodable
    private let completion: Completion
    private let start: @Sendable (URLRequest, ResumableDataTask) -> Void

    /// - Parameters:
    ///   - completion: A closure that is called at most once: with the error of a request that is
    ///     not sent.
    ///   - start: A closure that creates the Foundation task and passes it to ``run(_:cancel:)``,
    ///     or calls the completion.
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
        let phase = phase.withLock { $0 }
        return phase.content??.task.state ?? phase.state
    }

    func resume() {
        guard phase.withLock({ $0.resume() }) != nil else { return }
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
    /// - Parameter cancel: A closure that cancels the task without waiting.
    func run(_ task: URLSessionDataTask, cancel: @escaping @Sendable () -> Void) {
        let isWanted = phase.withLock { phase in
            guard case .running = phase else { return false }
            phase = .running((task, cancel))
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
        let isCancelled = phase.withLock { $0.complete() }.content == nil
        completion(nil, nil, isCancelled ? URLError(.cancelled) : error)
    }

    /// Does nothing: a request that was sent continues, because Foundation on Linux terminates the
    /// process when a suspended task is cancelled.
    func suspend() {}

    func cancel() {
        switch phase.withLock({ $0.complete() }) {
        case .suspended: completion(nil, nil, URLError(.cancelled))
        case .running(let transfer): transfer?.cancel()
        case .completed: break
        }
    }
}

/// The phase of a session's task, with the content that the task needs until it is complete.
///
/// A task is resumed and completed once. Each transition returns the content to its caller, which
/// then uses the content without holding the task's lock.
package enum TaskPhase<Content> {
    case suspended(Content)
    case running(Content)
    case completed

    /// The state that a task in this phase reports.
    package var state: DataTaskState {
        switch self {
        case .suspended: .suspended
        case .running: .running
        case .completed: .completed
        }
    }

    /// The content; `nil` if the task is complete.
    package var content: Content? {
        switch self {
        case .suspended(let content), .running(let content): content
        case .completed: nil
        }
    }

    /// Begins the running phase.
    ///
    /// - Returns: The content; `nil` if the task was resumed or completed before.
    package mutating func resume() -> Content? {
        guard case .suspended(let content) = self else { return nil }
        self = .running(content)
        return content
    }

    /// Completes the task.
    ///
    /// - Returns: The phase that the task was in.
    package mutating func complete() -> TaskPhase {
        defer { self = .completed }
        return self
    }
}

extension TaskPhase: Sendable where Content: Sendable {}
