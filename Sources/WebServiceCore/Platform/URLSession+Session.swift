public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// `URLSession` as a session, for a configuration or a delegate of your own.
///
/// The data task is made when it is resumed and never suspended, because on Linux a task that is never resumed leaks and one that
/// is suspended and cancelled kills the process. On Linux a session without a delegate does not complete a 401 with a Basic challenge (Swift 6.3.1);
/// here it does, with the response but without its body, which ``FoundationSession`` also has. On Linux `resume()` waits while any peer of the process sends
/// without a pause, and while the name of a cancelled task is still being resolved. Do not use a session after it was invalidated,
/// and do not invalidate one before tasks whose bodies have files (``Request/multipart``) are complete: Foundation ends the process then.
extension URLSession: Session {
    /// Makes a task that sends the request once it is resumed. The completion runs on the session's delegate queue.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        ResumableDataTask(request: request, completion: completion) { [self] request, handle in
            var request = request
            let timeout = request.timeoutInterval.clampedTimeout
            if request.timeoutInterval != timeout { request.timeoutInterval = timeout }
            let passive = delegate == nil ? PassiveTaskDelegate() : nil
            let task = dataTask(with: request) { data, response, error in
                if let rejected = passive?.rejectedResponse, error != nil {
                    completion(Data(), rejected, nil)
                } else {
                    completion(data, response, error)
                }
            }
            if let passive { task.delegate = passive }
            // Foundation on Linux waits for its work queue in `cancel()`, which deadlocks when that queue is what we are called from.
            handle.run(task) { DispatchQueue.global().async { task.cancel() } }
        }
    }
}

extension URLSessionDataTask: DataTask {}
