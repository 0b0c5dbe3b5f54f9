import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session stage: sends one request over the session, and returns its response in one form,
/// whichever protocol the session conforms to.
struct SessionStage: Sendable {
    typealias Completion = @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void

    let session: any Session
    private let responseSession: (any ResponseSession)?

    init(_ session: any Session) {
        self.session = session
        responseSession = session as? any ResponseSession
    }

    /// Returns a data task for one request. The completion is called on the session's own thread
    /// only where no code of the user follows.
    func dataTask(
        for request: EncodedRequest, _ delegate: (any ServicePassthroughDelegate)?, _ progress: ProgressRelay?,
        _ completion: @escaping Completion
    ) throws -> any DataTask {
        guard let delegate else { return sessionTask(request, nil, progress, completion) }
        return try DelegateStage(delegate: delegate).dataTask(for: request) {
            sessionTask($0, $1, progress, completion)
        }
    }

    private func sessionTask(
        _ request: any URLRequestEncodable, _ didReceive: DelegateStage.Completion?, _ progress: ProgressRelay?,
        _ completion: @escaping Completion
    ) -> any DataTask {
        guard let responseSession else {
            return session.dataTask(request: request) { [source = session.responseSource] data, response, error in
                didReceive?(data, response, error)
                completion(Result<Response, any Error>(data, response, error, source), nil)
            }
        }
        return responseSession.responseTask(request: request, progress: progress?.handler) { result, metrics in
            var result = result.mapError { error -> any Error in URLError(transport: error) ?? error }
            if let metrics, case .success(var response) = result, response.transport == nil {
                response.transport = metrics
                result = .success(response)
            }
            let isRedirect =
                if case .success(let response) = result { (300..<400).contains(response.status) } else { false }
            guard didReceive != nil || isRedirect else { return completion(result, metrics) }
            // The delegate, and what follows a redirect, run code of the user.
            DispatchQueue.global().async { [result] in
                switch result {
                case .success(let response): didReceive?(response.data, response.urlResponse, nil)
                case .failure(let error): didReceive?(nil, nil, error)
                }
                completion(result, metrics)
            }
        }
    }
}

extension Result where Success == Response, Failure == any Error {
    /// The result of a session that completes with three optional values. One without any of them
    /// is an error, because no server sent it.
    init(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?, _ source: Response.Source) {
        if let error {
            self = .failure(URLError(transport: error) ?? error)
        } else if data == nil, response == nil {
            self = .failure(URLError(.badServerResponse))
        } else {
            self = .success(Response(data: data, head: Head(response), source: source))
        }
    }
}
