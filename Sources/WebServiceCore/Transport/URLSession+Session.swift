public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// `URLSession` as a session, for a custom configuration or delegate.
///
/// Foundation's data task is created only when the task is resumed, and is never suspended. On
/// Linux, a data task that is never resumed leaks, and cancelling a suspended data task terminates
/// the process. In addition, Foundation on Linux does not complete a task whose response is a 401
/// with a Basic challenge if there is no credential (Swift 6.3.1). This conformance completes such
/// a task with the response but without its body; ``FoundationSession`` provides the body as well.
/// On Linux, `resume()` blocks while any peer of the process sends without a pause, and while the
/// host name of a cancelled task is still being resolved.
///
/// Each data task has a separate delegate, which declines every redirect, so that
/// ``RedirectPolicy`` applies. The session's delegate does not receive
/// `urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)`. It receives all
/// other calls that Foundation makes for a task with a completion handler, such as challenges. The
/// `httpAdditionalHeaders` and the credentials of the configuration belong to the session, which
/// sends them to every origin.
///
/// Do not use a session after it has been invalidated, and do not invalidate one before its tasks
/// with file bodies (``Request/multipart``) are complete, because Foundation would terminate the
/// process.
extension URLSession: Session {
    /// Creates a task that sends the request when it is resumed.
    ///
    /// The completion runs on the delegate queue of the session, or on another thread if the
    /// request was not sent.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        ResumableDataTask(request: request, completion: completion) { [self] request, handle in
            var request = request
            #if canImport(FoundationNetworking)
            // Foundation on Linux ignores a timeout that was not assigned, and truncates one to whole
            // seconds, so that a request with less than one second would fail at once. The default of
            // 60 seconds is not assigned, because the timeout of the configuration then applies.
            if request.timeoutInterval != 60 {
                request.timeoutInterval = request.timeoutInterval.clampedTimeout.rounded(.up)
            }
            #else
            let timeout = request.timeoutInterval.clampedTimeout
            if request.timeoutInterval != timeout { request.timeoutInterval = timeout }
            #endif
            let passive = PassiveTaskDelegate()
            let task = dataTask(with: request) { data, response, error in
                if let rejected = passive.rejectedResponse, error != nil {
                    completion(Data(), rejected, nil)
                } else {
                    completion(data, response, error)
                }
            }
            task.delegate = passive
            #if !canImport(FoundationNetworking)
            if delegate != nil { task.delegate = RedirectDecliner() }
            #endif
            // Foundation on Linux waits for its work queue in `cancel()`, which deadlocks when
            // called on that queue.
            handle.run(task) { DispatchQueue.global().async { task.cancel() } }
        }
    }
}

extension URLSession {
    /// Returns whether the session may add credentials to a request. This is the case if the
    /// session has a delegate, which may respond to challenges, or if its configuration has cookies
    /// for the URL, a password for any host, or header fields other than `Accept`,
    /// `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    public func addsCredentials(to url: URL) -> Bool {
        delegate != nil || configuration.addsCredentials(to: url)
    }
}

extension URLSessionDataTask: DataTask {}

extension URLSessionConfiguration {
    /// Returns whether requests for a URL may have credentials of the configuration: cookies,
    /// passwords, or header fields other than those that every origin may receive.
    func addsCredentials(to url: URL) -> Bool {
        httpCookieStorage?.cookies(for: url)?.isEmpty == false
            || urlCredentialStorage?.allCredentials.isEmpty == false
            || httpAdditionalHeaders?.keys.allSatisfy { name in
                (name as? String).map { Request.unboundFields.contains($0.asciiLowercased()) } ?? false
            } == false
    }
}
