import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The stages that a request and its response pass through, as configured when the task was
/// resumed.
///
/// ```
/// encode → body → interceptors → per hop: cookies → delegate → session → size limit → cookies → redirect
/// ```
/// ``run(_:in:attach:completion:)`` shows the stages of a request, ``send(_:in:completion:)`` and
/// ``receive(_:_:for:after:in:)`` those of a hop. A hop sends one request over the session: the
/// original one, or one that follows a redirect. After the pipeline, the task runs its handlers.
///
/// | stage | implementation |
/// | --- | --- |
/// | encode | ``Request/encode()`` |
/// | body | ``Request/providingBody()`` |
/// | interceptors | ``Interceptor``; ``Interceptor/headers(_:origins:)`` adds header fields |
/// | trace | ``Request/startingSpan()`` for each hop, if an interceptor has set a trace |
/// | cookies | ``finished(_:in:)`` for each hop; ``CookieJar`` |
/// | delegate | ``DelegateStage``: the request to send instead, with the cookies of its URL |
/// | session | ``SessionStage``, which notifies the delegate |
/// | size limit | ``BodyCollector`` during reception; `ResponseBody` for a streamed body |
/// | redirect | ``RedirectPolicy`` returns the decision; ``Exchange`` sends the next hop |
///
/// ``ExchangeLog`` records each stage and reports it to the observers (``Observer``).
///
/// Two things are outside the pipeline: the session adds header fields that the request does not
/// have, such as the `User-Agent` of `CurlSession.Configuration`, and the deadline ends the task
/// (`SessionTask.ring()`) or, after the head of a streamed response, the body
/// (``ResponseStream/ring()``).
final class Pipeline: Sendable {
    let session: SessionStage
    let interceptors: [any Interceptor]
    let cookieJar: CookieJar?
    let delegateReference: DelegateReference?
    let observers: [any Observer]

    init(
        session: any Session = FoundationSession.shared, interceptors: [any Interceptor] = [],
        cookieJar: CookieJar? = nil,
        delegate: DelegateReference? = nil, observers: [any Observer] = []
    ) {
        self.session = SessionStage(session)
        self.interceptors = interceptors
        self.cookieJar = cookieJar
        delegateReference = delegate
        self.observers = observers
    }

    /// The work that a task can cancel: a Swift task that provides the body and runs the
    /// interceptors, or an exchange.
    enum Running: Sendable {
        case preparation(Task<Void, Never>)
        case exchange(any Cancellable)

        func cancel() {
            switch self {
            case .preparation(let task): task.cancel()
            case .exchange(let exchange): exchange.cancel()
            }
        }
    }

    /// Runs a request through all stages. Without a body provider and interceptors, all stages use
    /// callbacks: no Swift task is created.
    ///
    /// - Parameters:
    ///   - attach: Called with the work that can be cancelled, before anything is sent. Cancels
    ///     work that is no longer needed.
    ///   - completion: Called with the result, one or more times; the first call counts.
    func run(
        _ request: consuming Request, in context: ExchangeContext, attach: (Running) -> Void,
        completion: @escaping @Sendable (Result<Response, any Error>) -> Void
    ) {
        let isPlain = !request.hasBodyProvider && interceptors.isEmpty && request.options.interceptors.isEmpty
        do throws(WebServiceError) {
            let encoded = try request.encode()
            context.log.didEncode(encoded)
            if isPlain {
                let exchange = Exchange(self, context)
                attach(.exchange(exchange))
                exchange.start(encoded, completion: completion)
            } else {
                let preparation = Task(executorPreference: context.clock.executor) { [self] in
                    do {
                        completion(.success(try await prepare(encoded.source, in: context)))
                    } catch {
                        completion(.failure(error is CancellationError ? URLError(.cancelled) : error))
                    }
                }
                attach(.preparation(preparation))
            }
        } catch {
            context.log.didNotEncode(error.request)
            completion(.failure(error))
        }
    }

    /// Runs the stages that may suspend: the body provider and the interceptors.
    private func prepare(_ request: Request, in context: ExchangeContext) async throws -> Response {
        let request = try await request.providingBody()
        let chain = interceptors + request.options.interceptors
        var response = try await intercept(request, chain[...], context)
        if !chain.isEmpty { response.attempts = context.log.record.attempts }
        return response
    }

    /// Calls the first interceptor, which calls the following ones; the last one calls the
    /// exchange.
    private func intercept(_ request: Request, _ chain: ArraySlice<any Interceptor>, _ context: ExchangeContext)
        async throws -> Response
    {
        guard let interceptor = chain.first else {
            return try await Exchange(self, context).response(to: try request.startingSpan().encode())
        }
        let following = chain.dropFirst()
        let next = Next(context: context, pipeline: self, following: following) { [self] in
            try await intercept($0, following, context)
        }
        return try await interceptor.intercept(request, next: next)
    }

    // MARK: One hop

    /// The delegate that is notified of a hop, and the request of the exchange.
    typealias Delegate = (stage: DelegateStage, source: Request)

    /// Runs the stages of a hop that change the request: the cookies and the delegate.
    ///
    /// A new stage that changes the request belongs here, so that the log, the limits and the
    /// redirects apply to the request as it is sent.
    func finished(_ request: EncodedRequest, in context: ExchangeContext) throws -> (EncodedRequest, Delegate?) {
        guard request.source.options.cachePolicy != .returnCacheDataDontLoad else {
            throw URLError(.resourceUnavailable)
        }
        guard request.source.canSendBody else { throw WebServiceError.bodyNotReplayable(request.source) }
        let cookies = cookies(for: request, in: context)
        let sent = cookies.map { request.adding("Cookie", $0) } ?? request
        guard let delegate = delegateReference?.delegate else { return (sent, nil) }
        let (stage, source) = (DelegateStage(delegate: delegate), request.source)
        guard let replacement = stage.replacement(for: try sent.urlRequest(), source: source) else {
            return (sent, (stage, source))
        }
        return (try encode(replacement, insteadOf: request, cookies: cookies, in: context), (stage, source))
    }

    /// Runs the stages of a hop from the log to the session.
    ///
    /// - Returns: The session's data task, not resumed.
    func dataTask(
        for request: EncodedRequest, _ delegate: Delegate?, in context: ExchangeContext,
        completion: @escaping SessionStage.Completion
    ) throws -> any DataTask {
        let permit = try context.log.willSend(request)
        return try session.dataTask(for: request, in: context, delegate, permit, completion)
    }

    /// Runs the stages of a hop after the session.
    ///
    /// - Parameter redirects: The URLs that redirected to this hop.
    func receive(
        _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, for request: EncodedRequest,
        after redirects: [URL],
        in context: ExchangeContext
    ) -> HopEnd {
        var result = result
        if case .success(var response) = result, !redirects.isEmpty {
            (response.redirects, response.attempts) = (redirects, redirects.count + 1)
            result = .success(response)
        }
        result = result.flatMap { limitingSize($0, of: request) }
        context.log.didReceive(result, metrics)
        guard case .success(let response) = result, response.isHTTP else { return .complete(result) }
        storeCookies(of: response, to: request, in: context)
        return redirect(response, of: request, in: context)
    }

    /// What follows a hop.
    enum HopEnd {
        case complete(Result<Response, any Error>)
        /// Another hop, which ``Exchange`` sends.
        case follow(EncodedRequest, redirects: [URL])
    }

    // MARK: Stages of a hop

    /// Returns the cookies of the jar for the URL of a request.
    private func cookies(for request: EncodedRequest, in context: ExchangeContext) -> String? {
        guard let cookieJar, request.source.options.shouldHandleCookies, let url = URL(string: request.url) else {
            return nil
        }
        return cookieJar.header(for: url, context.clock)
    }

    /// Encodes the request that the delegate returned.
    ///
    /// The cookies of the jar are no fields of the request, so that a redirect does not retain
    /// them. With another URL, they are replaced by those of the new URL.
    private func encode(
        _ replacement: Request, insteadOf request: EncodedRequest, cookies: String?, in context: ExchangeContext
    ) throws -> EncodedRequest {
        var replacement = replacement
        let kept = cookies.map { replacement.headers.removeCookies(Set($0.cookiePairs)) } ?? []
        let encoded = try replacement.encode()
        let isSameURL = encoded.url == request.url
        let cookies = isSameURL ? kept.joined(separator: "; ") : self.cookies(for: encoded, in: context) ?? ""
        return cookies.isEmpty ? encoded : encoded.adding("Cookie", cookies)
    }

    /// Applies the limit to a session that delivers the whole body at once. For other sessions,
    /// ``BodyCollector`` has already applied it.
    private func limitingSize(_ response: Response, of request: EncodedRequest) -> Result<Response, any Error> {
        let maximum = request.maximumResponseBytes
        guard response.data.count > maximum, response.isHTTP else {
            return .success(response)
        }
        return .failure(WebServiceError.tooLarge(maximum, request.source, response))
    }

    private func storeCookies(of response: Response, to request: EncodedRequest, in context: ExchangeContext) {
        guard let cookieJar, request.source.options.shouldHandleCookies, let url = URL(string: request.url) else {
            return
        }
        guard let head = response.head else { return }
        let cookies = head.values(for: .setCookie)
        if !cookies.isEmpty { cookieJar.store(cookies, joined: head.joinsFields, from: url, context.clock) }
    }

    private func redirect(_ response: Response, of request: EncodedRequest, in context: ExchangeContext) -> HopEnd {
        guard (300..<400).contains(response.status) else { return .complete(.success(response)) }
        let decision = request.source.options.redirectPolicy.decision(
            for: request.source, at: request.url, status: response.status,
            locations: response.head?.values(for: .location) ?? [],
            followed: response.redirects.count)
        switch decision {
        case .deliver:
            return .complete(.success(response))
        case .fail(var error):
            error.response = response
            return .complete(.failure(error))
        case .follow(let next, let droppedCredentials):
            context.log.record(.redirect, droppedCredentials ? "to another origin, without credentials" : "")
            let redirects = response.redirects + (URL(string: request.url).map { [$0] } ?? [])
            do {
                return .follow(try next.startingSpan().encode(), redirects: redirects)
            } catch {
                return .complete(.failure(error))
            }
        }
    }
}

/// The part of a service that its tasks use.
protocol PipelineSource: AnyObject, Sendable {
    var clock: TaskClock { get }
    /// The origin of the base URL; `nil` without a base URL.
    var baseOrigin: Origin? { get }
    /// The pipeline for the current configuration.
    var pipeline: Pipeline { get }
    var errorMapper: (any ErrorMapper)? { get }
    /// The decoder of values for which the call specifies none.
    var decoder: any BodyDecoder { get }
    /// The encoder of values for which the call specifies none.
    var encoder: any BodyEncoder & Sendable { get }
}

extension Headers {
    /// Removes cookies from the field `Cookie`.
    ///
    /// - Parameter cookies: The cookies as `name=value`.
    /// - Returns: The cookies that were removed.
    fileprivate mutating func removeCookies(_ cookies: Set<Substring>) -> [Substring] {
        let pairs = values(for: .cookie).map(\.cookiePairs).joined()
        let others = pairs.filter { !cookies.contains($0) }
        self[.cookie] = others.isEmpty ? nil : others.joined(separator: "; ")
        return pairs.filter(cookies.contains)
    }
}

extension String {
    /// The cookies of a field value (RFC 6265, section 4.2.1).
    fileprivate var cookiePairs: [Substring] {
        utf8.split(separator: UInt8(ascii: ";")).map { Substring(ASCII.trimmed($0)) }.filter { !$0.isEmpty }
    }
}

/// Work that can be cancelled, from any thread and more than once.
protocol Cancellable: Sendable {
    func cancel()
}
