public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A session that records what is sent and leaves the sending, and everything else, to another one.
///
/// ```swift
/// let session = RequestRecordingSession(FoundationSession.shared)
/// ```
/// All members may be called from any thread.
public final class RequestRecordingSession: Session {
    private let inner: any Session
    private let sent = Mutex<[SentRequest]>([])

    /// Makes a session that records what `session` is asked to send.
    public init(_ session: any Session) {
        inner = session
    }

    /// The requests that were resumed, in that order; without those that were cancelled before, cannot be encoded or are not for http or https.
    public var recordedRequests: [URLRequest] {
        sent.withLock { $0 }.map(\.encodable.urlRequestValue)
    }

    /// Where the inner session's answers come from.
    public var responseSource: Response.Source { inner.responseSource }

    /// Makes a task of the inner session that records the request when it is resumed for the first time.
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

/// Passes everything through, and tells when the task is about to be sent.
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
    /// The value, which is false from now on.
    fileprivate mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}
