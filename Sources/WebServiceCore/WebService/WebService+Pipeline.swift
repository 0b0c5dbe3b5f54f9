public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension WebService {
    /// The journey of one exchange, every stage in order. Called once for each task, at its first `resume()`, on the caller's thread.
    ///
    /// 1. The request is checked and encoded. What is wrong with it becomes the outcome; nothing is sent. The deadline begins to run.
    /// 2. A body provider makes the body, in the background.
    /// 3. The interceptors of the service, then those of the request, each wrapping all that follows: retry, authentication, your own.
    /// 4. For each message (`Wire`): cookies are added; the delegate may rewrite it and hears that it is sent; the session moves the bytes; the
    ///    delegate hears the answer; cookies are stored; the size is checked; a redirect is followed, which is the next message.
    /// 5. The first outcome counts: the answer, an error, the deadline or `cancel()`.
    /// 6. On another thread: the delegate may reject the response; then the handlers run, in the order they were added
    ///    (`SessionTask.runHandlers()`).
    ///
    /// Without provider and interceptors all of it is callbacks, and no Swift task is made.
    func run(_ request: consuming Request, for task: SessionTask) {
        let (wire, delegate) = wireAndDelegate
        task.willRun(delegate)
        let isPlain = !request.hasBodyProvider && wire.interceptors == nil && request.interceptors.isEmpty
        if !isPlain { task.keep(request) }
        do throws(WebServiceError) {
            let encoded = try request.encode()
            task.watchDeadline(of: encoded)
            if isPlain { wire.send(encoded, for: task) } else { task.attach(.preparation(prepared(encoded.source, wire, task))) }
        } catch {
            if let request = error.request { task.keep(request) }
            task.complete(Outcome(error: error))
        }
    }

    /// Steps 2 and 3, which take their time.
    private func prepared(_ request: Request, _ wire: Wire, _ task: SessionTask) -> Task<Void, Never> {
        Task { [self] in
            do {
                let request = try await request.providingBody()
                let chain = (wire.interceptors ?? []) + request.interceptors
                if chain.isEmpty {
                    wire.send(try request.encode(), for: task)
                } else {
                    var response = try await intercepted(request, chain[...], wire, task)
                    response.attempts = task.messageCount
                    task.complete(Outcome(response))
                }
            } catch {
                task.complete(Outcome(error: error is CancellationError ? URLError(.cancelled) : error))
            }
        }
    }

    private func intercepted(
        _ request: Request, _ chain: ArraySlice<any Interceptor>, _ wire: Wire, _ task: SessionTask
    ) async throws -> Response {
        guard let interceptor = chain.first else { return try await Leg(of: task).response(to: request, over: wire) }
        let following = chain.dropFirst()
        let next = Next(context: task.exchangeContext, service: self, following: following) { [self] in
            try await intercepted($0, following, wire, task)
        }
        return try await interceptor.intercept(request, next: next)
    }
}

/// A service is a session itself, so that its delegate sees any request sent through it. Nothing else of the journey applies.
extension WebService: Session {
    /// Where the answers of its session come from.
    public var responseSource: Response.Source { session.responseSource }

    /// Makes a task that sends the request through the service's delegate and session once it is resumed. A request that cannot be
    /// encoded completes with its error, on the thread that resumes.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        do {
            let (wire, delegate) = wireAndDelegate
            return try wire.transmit(request, seenBy: delegate, completion: completion)
        } catch {
            return AnnouncingDataTask(nil) { completion(nil, nil, error) }
        }
    }
}
