public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A session that records requests and sends them with another session.
///
/// ```swift
/// let session = RequestRecordingSession(FoundationSession.shared)
/// ```
/// If you pass no other session, it responds from stubs like a ``MockSession``:
///
/// ```swift
/// let session = RequestRecordingSession()
/// session.addStub(MockResponse(statusCode: 204))
/// ```
///
/// All members may be called from any thread.
public final class RequestRecordingSession: MockableSession, StreamingSession {
    private let inner: any Session
    private let sent = Mutex<[SentRequest]>([])

    /// The stubs of the mock. If the inner session is not a ``MockSession``, they are not used.
    public let stubTable: StubTable

    /// Creates a session that responds from stubs.
    public convenience init() {
        self.init(MockSession())
    }

    /// Creates a session that records the requests sent by `session`.
    public init(_ session: any Session) {
        inner = session
        stubTable = (session as? MockSession)?.stubTable ?? StubTable()
    }

    /// The resumed requests, in the order of `resume()`, in a form that is suitable for
    /// comparisons.
    public var receivedRequests: [ReceivedRequest] {
        inner is MockSession ? stubTable.receivedRequests : sent.withLock { $0 }.map(\.received)
    }

    /// The resumed requests, in the order of `resume()`.
    ///
    /// The array does not include requests that were cancelled before `resume()`, cannot be
    /// encoded, or have a scheme other than http or https.
    public var recordedRequests: [URLRequest] {
        sent.withLock { $0 }.map(\.request.urlRequestValue)
    }

    /// The response source of the inner session.
    public var responseSource: Response.Source { inner.responseSource }

    /// Returns whether the inner session may add credentials to a request.
    public func addsCredentials(to url: URL) -> Bool { inner.addsCredentials(to: url) }

    /// Creates a task of the inner session that records the request when it is first resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        recording(request, by: inner.dataTask(request: request, completion: completion))
    }

    /// Creates a task of the inner session that records the request when it is first resumed.
    ///
    /// If the inner session does not stream, the body is delivered as a whole.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        if let inner = inner as? any StreamingSession {
            return recording(request, by: inner.streamTask(request: request, receiver: receiver))
        }
        return DeliveringTask(receiver) { delivery in
            dataTask(request: request) { delivery.finish($0, $1.map(ResponseHead.init), $2) }
        }
    }

    private func recording(_ request: any URLRequestEncodable, by task: any DataTask) -> RecordingTask {
        RecordingTask(task) { [self] in
            guard let request = try? SentRequest(request) else { return }  // the inner session reports the error
            sent.withLock { $0.append(request) }
        }
    }
}

/// A task that forwards all calls to another task, and records the request before it first resumes
/// that task.
package final class RecordingTask: StreamTask {
    private let inner: any DataTask
    private let onCancel: @Sendable () -> Void
    private let record: Mutex<TaskPhase<@Sendable () -> Void>>

    /// - Parameters:
    ///   - onCancel: A closure that is called before each cancellation.
    ///   - record: A closure that is called before the first `resume()`, unless the task was
    ///     already cancelled.
    package init(
        _ inner: any DataTask, onCancel: @escaping @Sendable () -> Void = {}, record: @escaping @Sendable () -> Void
    ) {
        self.inner = inner
        self.onCancel = onCancel
        self.record = Mutex(.suspended(record))
    }

    package var state: DataTaskState { inner.state }

    package func resume() {
        record.withLock { $0.resume() }?()
        inner.resume()
    }

    package func suspend() { inner.suspend() }
    package func receiveMore() { (inner as? any StreamTask)?.receiveMore() }

    package func cancel() {
        _ = record.withLock { $0.complete() }
        onCancel()
        inner.cancel()
    }
}
