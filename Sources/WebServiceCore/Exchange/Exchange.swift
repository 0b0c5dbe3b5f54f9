import Foundation

/// The path of one request to its response: the only place that defines the order of the stages.
///
/// Each stage of more than a few lines has a file in `Stages/`; a new stage needs a file and a line
/// here. After the exchange, the task runs its handlers. Two things happen elsewhere: the session
/// adds header fields that the request does not have, such as the `User-Agent` of
/// `CurlSession.Configuration`, and the deadline ends the task (`SessionTask.ring()`) or, after the
/// head of a streamed response, the body (``ResponseReceiver/ring()``).
struct Exchange: Sendable {
    /// The configuration of the service when the task was resumed.
    let stages: Stages
    let context: ExchangeContext

    /// Provides the body and runs the interceptors, each of which may send the request.
    ///
    /// - Throws: The error of the exchange; `URLError.cancelled` once the context has ended or the
    ///   Swift task is cancelled, unless an interceptor throws another error.
    func response(to request: Request) async throws -> Response {
        // An encoding error precedes the errors of all other stages.
        let encoded = try context.encode(request)
        guard stages.runsCustomCode(for: request) else { return try await response(to: encoded) }
        let interceptors = stages.interceptors + request.options.interceptors
        let next = Next(exchange: self, interceptors: interceptors, position: 0)
        var response = try await next(try await encoded.source.providingBody())
        if !interceptors.isEmpty { response.attempts = context.record.attempts }
        return response
    }

    /// Sends a request and follows its redirects. A retry calls this method again.
    func response(to request: EncodedRequest) async throws -> Response {
        var (hop, redirects) = (request, [URL]())
        while true {
            try await context.permission()
            try stages.check(hop)
            let cookies = stages.cookies(for: hop, context.clock)
            let (sent, announcement) = try stages.delegated(hop, cookies, context.clock)
            let response = try await attempt(sent, announcement, after: redirects)
            stages.storeCookies(of: response, to: sent, context.clock)
            guard let redirect = try stages.redirect(after: response, of: sent) else { return response }
            context.record(.redirect, redirect.detail)
            hop = try redirect.request.startingSpan().encode()
            redirects += [redirect.origin].compactMap(\.self)
        }
    }

    /// Sends one request. The log and the observers receive its result, however it ends.
    private func attempt(_ request: EncodedRequest, _ announcement: Announcement?, after redirects: [URL])
        async throws -> Response
    {
        let session = stages.session
        let receiver = try context.willSend(request, announcement, source: session.session.responseSource)
        guard let reply = await session.reply(to: request, for: receiver, context.clock, stages.scope) else {
            context.didAbandon(receiver)
            throw URLError(.cancelled)
        }
        let result = reply.result.flatMap { response in
            Result {
                var response = response
                if !redirects.isEmpty { (response.redirects, response.attempts) = (redirects, redirects.count + 1) }
                try stages.limitSize(of: response, to: request)
                return response
            }
        }
        context.didReceive(result, reply.metrics, receiver)
        return try result.get()
    }
}

extension Exchange {
    /// Creates an exchange with the current configuration of the service, and notifies the
    /// observers of its start.
    ///
    /// - Parameter work: The work that the service lists as in flight; `nil` if the exchange is
    ///   part of other work.
    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    init(beginning request: Request, in context: ExchangeContext, of work: (any InFlightWork)?) throws(WebServiceError)
    {
        self.context = context
        stages =
            try work.map { work throws(WebServiceError) in try context.service.begin(work, isRetained: true) }
            ?? context.service.stages
        guard !stages.observers.isEmpty else { return }
        context.begin()
        context.observe(by: stages.observers, request, isComposite: false)
    }
}
