public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// `URLSession` as a session, for a configuration or a delegate of your own.
///
/// The data task is made when it is resumed and never suspended, because on Linux a task that is never resumed leaks and one that
/// is suspended and cancelled kills the process. On Linux a session without a delegate does not complete a 401 with a Basic challenge (Swift 6.3.1);
/// here it does, with the response but without its body, which ``FoundationSession`` also has. Do not use a session after it was invalidated,
/// and do not invalidate one before tasks whose bodies have files (``Request/multipart``) are complete: Foundation ends the process then.
extension URLSession: Session {
    /// Makes a task that sends the request once it is resumed. The completion runs on the session's delegate queue.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        ResumableDataTask(request: request, completion: completion) { [self] request, completion in
            guard delegate == nil else { return dataTask(with: request, completionHandler: completion) }
            let passive = PassiveTaskDelegate()
            let task = dataTask(with: request) { data, response, error in
                if let rejected = passive.rejectedResponse, error != nil {
                    completion(Data(), rejected, nil)
                } else {
                    completion(data, response, error)
                }
            }
            task.delegate = passive
            return task
        }
    }
}

extension URLSessionDataTask: DataTask {}
