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
///
/// All members may be called from any thread.
public final class RequestRecordingSession: Session {
    private let inner: any Session
    private let sent = Mutex<[SentRequest]>([])

    /// Creates a session that records the requests sent by `session`.
    public init(_ session: any Session) {
        inner = session
    }

    /// The requests that were resumed, in that order.
    ///
    /// It does not contain requests that were cancelled before `resume()`, that cannot be encoded,
    /// or whose scheme is not http or https.
    public var recordedRequests: [URLRequest] {
        sent.withLock { $0 }.map(\.encodable.urlRequestValue)
    }

    /// The response source of the inner session.
    public var responseSource: Response.Source { inner.responseSource }

    /// Creates a task of the inner session that records the request when it is first resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        RecordingDataTask(inner.dataTask(request: request, completion: completion)) { [self] in
            guard let request = try? SentRequest(request) else { return }  // the inner session reports the error
            sent.withLock { $0.append(request) }
        }
    }
}

/// Forwards all calls to a task and reports the first `resume()`.
private final class RecordingDataTask: DataTask {
    private let inner: any DataTask
    private let record: @Sendable () -> Void
    private let isPending = Mutex(true)

    init(_ inner: any DataTask, record: @escaping @Sendable () -> Void) {
        self.inner = inner
        self.record = record
    }

    var state: DataTaskState { inner.state }

    func resume() {
        if isPending.withLock({ $0.take() }) { record() }
        inner.resume()
    }

    func suspend() {
        inner.suspend()
    }

    func cancel() {
        isPending.withLock { $0 = false }
        inner.cancel()
    }
}

extension Bool {
    /// Returns the value and sets it to `false`.
    fileprivate mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}
