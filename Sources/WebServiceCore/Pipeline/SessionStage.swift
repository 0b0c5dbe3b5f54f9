import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The stage that sends one request over the session and returns its response in one form,
/// regardless of the protocol to which the session conforms.
struct SessionStage: Sendable {
    typealias Completion = @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void

    let session: any Session
    private let streamingSession: (any StreamingSession)?

    init(_ session: any Session) {
        self.session = session
        streamingSession = session as? any StreamingSession
    }

    /// Returns a data task for one request. The completion is called on the session's own thread
    /// only if no custom code follows.
    ///
    /// - Parameter delegate: The delegate that is notified, and the request of the exchange.
    func dataTask(
        for request: EncodedRequest, in context: ExchangeContext, _ delegate: Pipeline.Delegate?,
        _ permit: ExchangeLog.Permit, _ completion: @escaping Completion
    ) throws -> any DataTask {
        guard let delegate else { return sessionTask(request, context, nil, permit, completion) }
        return delegate.stage.announcing(try request.urlRequest(), source: delegate.source) {
            sessionTask(request, context, $0, permit, completion)
        }
    }

    private func sessionTask(
        _ request: EncodedRequest, _ context: ExchangeContext, _ didReceive: DelegateStage.Completion?,
        _ permit: ExchangeLog.Permit, _ completion: @escaping Completion
    ) -> any DataTask {
        if let stream = request.stream, !(session is any UploadingSession) {
            return CollectingTask(stream, context.clock) { error in
                didReceive?(nil, nil, error)
                completion(.failure(error), nil)
            } send: {
                sessionTask(request.collecting($0), context, didReceive, permit, completion)
            }
        }
        let bufferSize = context.bufferSize
        let source = session.responseSource
        guard streamingSession != nil || bufferSize != nil else {
            return session.dataTask(request: request) { data, response, error in
                didReceive?(data, response, error)
                completion(Result<Response, any Error>(data, response, error, source), nil)
            }
        }
        let completion: Completion = { result, metrics in
            let result = result.mapError { error -> any Error in URLError(transport: error) ?? error }
            let isRedirect =
                if case .success(let response) = result { (300..<400).contains(response.status) } else { false }
            guard didReceive != nil || isRedirect || permit.isObserved else { return completion(result, metrics) }
            // The delegate, observers, and the code that follows a redirect, run custom code.
            context.clock.async {
                switch result {
                case .success(let response): didReceive?(response.data, response.urlResponse, nil)
                case .failure(let error): didReceive?(nil, nil, error)
                }
                completion(result, metrics)
            }
        }
        if let bufferSize {
            let body = ResponseStream(request, source, bufferSize: bufferSize, context, permit, completion)
            let task = streamTask(request, body, context.clock)
            body.attach(task)
            return task
        }
        return streamTask(
            request,
            BodyCollector(
                request, source: source, progress: context.report,
                headObserver: permit.isObserved ? context.report : nil,
                partObserver: permit.isObserved ? context.reportBody : nil, completion: completion),
            context.clock)
    }

    /// Returns a task of the session, regardless of the protocol to which it conforms.
    private func streamTask(_ request: EncodedRequest, _ receiver: any BodyReceiver, _ clock: TaskClock)
        -> any StreamTask
    {
        if let streamingSession { return streamingSession.streamTask(request: request, receiver: receiver) }
        return DeliveringTask(receiver, clock) { delivery in
            session.dataTask(request: request) { delivery.finish($0, $1, $2) }
        }
    }
}

extension Result where Success == Response, Failure == any Error {
    /// The result of a session that completes with three optional values. A result without any of
    /// them is an error, because it is not a response from a server.
    init(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?, _ source: Response.Source) {
        if let error {
            self = .failure(URLError(transport: error) ?? error)
        } else if data == nil, response == nil {
            self = .failure(URLError(.badServerResponse))
        } else {
            self = .success(Response(body: data, head: response.map(ResponseHead.init), source: source))
        }
    }
}
