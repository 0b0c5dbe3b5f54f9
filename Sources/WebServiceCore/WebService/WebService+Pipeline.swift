public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension WebService {
    /// The journey of one exchange, every stage in order. Called once for each task, at its first `resume()`, on the caller's thread.
    ///
    /// 1. A body provider makes the body, in the background.
    /// 2. The request is checked and encoded. What is wrong with it becomes the outcome; nothing is sent.
    /// 3. The deadline begins to run.
    /// 4. The delegate may rewrite the message and hears that it is sent (`Wire.transmit`).
    /// 5. The session moves the bytes, unless the task was cancelled meanwhile.
    /// 6. The first outcome counts: the answer, the transport's error, the deadline or `cancel()`.
    /// 7. On another thread: the delegate may reject the response; then the handlers run, in the order they were added
    ///    (`SessionTask.runHandlers()`).
    func run(_ request: Request, for task: SessionTask) {
        let wire = Wire(self)
        task.willRun(wire.delegate)
        do {
            let encoded = try request.encode()
            task.watchDeadline(request.deadline)
            guard case .provider(_, let provider) = request.content else {
                return try send(encoded, for: task, over: wire)
            }
            let preparation = Task {
                do {
                    try send(try request.encode(providedBody: try await provider()), for: task, over: wire)
                } catch {
                    task.complete(Outcome(error: error))
                }
            }
            task.attach(.preparation(preparation))
        } catch {
            task.complete(Outcome(error: error))
        }
    }

    private func send(_ request: EncodedRequest, for task: SessionTask, over wire: Wire) throws {
        task.willSend(request)
        let dataTask = try wire.transmit(request) { data, response, error in
            task.complete(Outcome(transported: data, response, error))
        }
        if task.attach(.exchange(dataTask)) { dataTask.resume() }
    }
}

/// What carries the messages of one exchange: the session, and the delegate that sees them.
struct Wire: Sendable {
    let session: any Session
    let delegate: (any ServicePassthroughDelegate)?

    init(_ service: WebService) {
        (session, delegate) = service.sessionAndDelegate
    }

    /// One message: the delegate may rewrite it, hears that it is sent, and hears the answer. Without a delegate this is the session alone.
    func transmit(
        _ request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) throws -> any DataTask {
        guard let delegate else { return session.dataTask(request: request, completion: completion) }
        let original = try request.urlRequest()
        var message = original
        if let modified = delegate.modifiedRequest(request: original) {
            message = try Request(modified).urlRequest()
        }
        let dataTask = session.dataTask(request: message) { [message] data, response, error in
            delegate.responseReceived(response: response, data: data, request: message, error: error)
            completion(data, response, error)
        }
        return AnnouncingDataTask(dataTask) { [message] in delegate.requestSent(request: message) }
    }
}

/// A service is a session itself, so that its delegate sees any request sent through it. Nothing else of the journey applies.
extension WebService: Session {
    /// Makes a task that sends the request through the service's delegate and session once it is resumed. A request that cannot be
    /// encoded completes with its error, on the thread that resumes.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        do {
            return try Wire(self).transmit(request, completion: completion)
        } catch {
            return AnnouncingDataTask(nil) { completion(nil, nil, error) }
        }
    }
}

extension Outcome {
    /// What a session handed back. An error that Foundation counts as a transport error is a `URLError` from here on; an answer with nothing
    /// in it is one as well, because no server gave it.
    init(transported data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        if let error {
            self.init(error: URLError(transport: error) ?? error)
        } else if data == nil, response == nil {
            self.init(error: URLError(.badServerResponse))
        } else {
            self.init(data: data, response: response)
        }
    }
}

extension URLError {
    /// The error as a `URLError` without the failing URL, which may hold secrets; `nil` when it is of another domain.
    init?(transport error: any Error) {
        let error = error as NSError
        let code: Code? = Code(rawValue: error.code)
        guard error.domain == NSURLErrorDomain, let code else { return nil }
        self.init(code, userInfo: [NSLocalizedDescriptionKey: error.localizedDescription])
    }
}
