import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session stage: sends one request and returns its response in one form, regardless of the
/// protocol to which the session conforms.
struct SessionStage: Sendable {
    let session: any Session
    private let streamingSession: (any StreamingSession)?

    init(_ session: any Session) {
        self.session = session
        streamingSession = session as? any StreamingSession
    }

    /// A Boolean value that indicates whether the session sends a body while it is produced.
    var sendsStreams: Bool { session is any UploadingSession }

    /// Sends a request and waits for the result of the session.
    ///
    /// - Returns: The result; `nil` if the reply is abandoned first.
    func value(
        of reply: SessionReply, to request: EncodedRequest, _ announcement: Announcement?,
        _ permit: ExchangeLog.Permit, _ context: ExchangeContext
    ) async -> SessionReply.Value? {
        var request = request
        if let stream = request.stream, !sendsStreams {
            do { request = request.collecting(try await stream.collected()) } catch {
                return SessionReply.Value(result: .failure(error))
            }
        }
        let call = call(request, announcement, permit, context, reply)
        return await reply.value(of: announcement?.announcing(call) ?? call)
    }

    /// Returns the task of the session. The delegate is notified of the result before the reply is
    /// set, also when nobody waits for the reply anymore.
    private func call(
        _ request: EncodedRequest, _ announcement: Announcement?, _ permit: ExchangeLog.Permit,
        _ context: ExchangeContext, _ reply: SessionReply
    ) -> any DataTask {
        let bufferSize = permit.bufferSize
        let source = session.responseSource
        guard streamingSession != nil || bufferSize != nil else {
            return session.dataTask(request: request) { data, response, error in
                announcement?.didReceive(data, response, error)
                reply.set(.init(result: Result(data, response, error, source)))
            }
        }
        let completion: BodyCollector.Completion = { result, metrics in
            let value = SessionReply.Value(
                result: result.mapError { error -> any Error in URLError(transport: error) ?? error }, metrics: metrics)
            guard let announcement else { return reply.set(value) }
            // The delegate must not delay the thread of the session.
            context.clock.async {
                switch value.result {
                case .success(let response): announcement.didReceive(response.data, response.urlResponse, nil)
                case .failure(let error): announcement.didReceive(nil, nil, error)
                }
                reply.set(value)
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
