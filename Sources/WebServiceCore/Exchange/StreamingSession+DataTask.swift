public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension StreamingSession {
    /// Creates a task that receives the whole response. The completion is called on a thread of the
    /// handler pool, where it may block. If the status is not 200 to 299, an error of the body is
    /// delivered together with the response and the bytes before the error.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        let receiver = ResponseReceiver(request, source: responseSource) { result, _ in
            Task(executorPreference: HandlerPool.shared) {
                switch result {
                case .success(let response): completion(response.data, response.urlResponse, response.bodyFailure)
                case .failure(let error): completion(nil, nil, error)
                }
            }
        }
        return streamTask(request: request, receiver: receiver)
    }
}
