import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The path of one request to its response: the only place that defines the order of the stages.
///
/// After the exchange, the task runs its handlers. Some stages are implemented elsewhere. The
/// session adds header fields that the request does not have, such as the `User-Agent` of
/// `CurlSession.Configuration`. The deadline ends the task (`SessionTask.ring()`) or, after the
/// head of a streamed response, the body (`ResponseReceiver+Reading.swift`).
struct Exchange: Sendable {
    /// The configuration of the service when the task was resumed.
    let setup: Setup
    let task: SessionTask

    /// Provides the body and runs the interceptors, each of which may send the request.
    ///
    /// - Throws: The error of the exchange; `URLError.cancelled` once the task has a result or the
    ///   Swift task is cancelled, unless an interceptor throws another error.
    func response(to request: Request) async throws -> Response {
        // An encoding error precedes the errors of all other stages.
        let encoded = try task.encode(request)
        guard setup.runsCustomCode(for: request) else { return try whole(try await send(encoded)) }
        let order = setup.order.adding(request.options.interceptors)
        try order.check(for: request)
        let interceptors = order.interceptors
        let next = Next(exchange: self, interceptors: interceptors, position: 0)
        var response = try await next(try await encoded.source.providingBody())
        if !interceptors.isEmpty { response.attempts = task.log.attempts }
        return try whole(response)
    }

    /// Returns the response that is the result of the exchange.
    ///
    /// - Throws: ``WebServiceError/Code/unacceptableStatus`` with the response if its body is
    ///   incomplete. If the task streams its body, the response is returned unchanged instead.
    private func whole(_ response: Response) throws -> Response {
        guard let failure = response.bodyFailure, !task.isStreamed else { return response }
        var received = response
        received.bodyFailure = nil
        throw WebServiceError(
            .unacceptableStatus,
            "the server responded with \(response.statusText), and the body is incomplete: "
                + ExchangeLog.reason(failure),
            request: task.log.request, response: received, underlying: failure)
    }

    /// Sends a request and follows its redirects. A retry calls this method again.
    func send(_ request: EncodedRequest) async throws -> Response {
        var (hop, redirects) = (request, [URL]())
        while true {
            try await task.permission()
            try check(hop)
            let cookies = cookies(for: hop)
            let (sent, announcement) = try replacing(hop, cookies)
            let response = try await attempt(sent, announcement, after: redirects)
            storeCookies(of: response, to: sent)
            guard let next = try redirect(after: response, of: sent) else { return response }
            hop = try next.startingSpan().encode()
            redirects += [URL(string: sent.url)].compactMap(\.self)
        }
    }

    /// Sends one request. The log and the observers receive the result, even if the result is an
    /// error.
    private func attempt(_ request: EncodedRequest, _ announcement: Announcement?, after redirects: [URL])
        async throws -> Response
    {
        let receiver = try task.willSend(request, announcement, source: setup.session.responseSource)
        guard let reply = await reply(to: request, for: receiver) else {
            task.didAbandon(receiver)
            throw URLError(.cancelled)
        }
        let result = reply.result.flatMap { response in
            Result {
                var response = response
                if !redirects.isEmpty { (response.redirects, response.attempts) = (redirects, redirects.count + 1) }
                return try limitingSize(of: response, to: request)
            }
        }.mapError { $0.describing(request.source) }
        task.didReceive(result, reply.metrics, receiver)
        return try result.get()
    }
}

extension Exchange {
    /// Creates an exchange with the current configuration of the service, lists the task unless it
    /// is part of another one, and notifies the observers of the start.
    ///
    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    init(beginning request: Request, of task: SessionTask) throws(WebServiceError) {
        let service = task.service
        let setup = task.isListed ? try service.begin(task, isRetained: true) : service.setup
        self.task = task
        self.setup =
            task.substitution.map { substitute in setup.with { $0.session = substitute(setup.session) } } ?? setup
        task.observe(by: setup.observers, request, isComposite: false)
    }
}

// MARK: - Before the session

extension Exchange {
    /// Throws an error for a request that must not be sent, such as a redirect or a retry whose
    /// body cannot be sent again.
    private func check(_ request: EncodedRequest) throws {
        guard request.source.options.cachePolicy != .returnCacheDataDontLoad else {
            throw URLError(.resourceUnavailable)
        }
        guard request.source.canSendBody else { throw WebServiceError.bodyNotReplayable(request.source) }
    }

    /// Returns the cookies of the jar for the URL of a request; `nil` if there are none to send.
    private func cookies(for request: EncodedRequest) -> String? {
        guard let cookieJar = setup.cookieJar, request.source.options.shouldHandleCookies,
            let url = URL(string: request.url)
        else { return nil }
        return cookieJar.header(for: url, task.clock)
    }

    /// Adds the cookies to a request, and lets the delegate replace the request.
    ///
    /// The jar's cookies are not stored in the request's fields, so that a redirect does not retain
    /// them. If the delegate changes the URL, the cookies for the new URL are sent.
    ///
    /// - Returns: The request to send, and the announcement to the delegate, which is `nil` if
    ///   there is no delegate.
    private func replacing(_ request: EncodedRequest, _ cookies: String?) throws -> (EncodedRequest, Announcement?) {
        let sent = cookies.map { request.adding("Cookie", $0) } ?? request
        guard let delegate = setup.delegate else { return (sent, nil) }
        let (source, urlRequest) = (request.source, try sent.urlRequest())
        guard var replacement = delegate.replacement(for: urlRequest, source: source) else {
            return (sent, Announcement(delegate, urlRequest, source))
        }
        let kept = cookies.map { replacement.headers.removeCookies(Set($0.cookiePairs)) } ?? []
        var replaced = try replacement.encode()
        let isSameURL = replaced.url == request.url
        let cookies = isSameURL ? kept.joined(separator: "; ") : self.cookies(for: replaced) ?? ""
        if !cookies.isEmpty { replaced = replaced.adding("Cookie", cookies) }
        return (replaced, Announcement(delegate, try replaced.urlRequest(), source))
    }
}

// MARK: - The session

extension Exchange {
    /// Sends a request over the session and waits for its reply, regardless of the protocol to
    /// which the session conforms. The session's task calls the receiver
    /// (`ResponseReceiver.swift`), for example from `CurlTransfer.swift`.
    ///
    /// - Returns: The reply; `nil` if the receiver is abandoned first or the account has ended.
    private func reply(to request: EncodedRequest, for receiver: ResponseReceiver) async -> ResponseReceiver.Reply? {
        var request = request
        if let stream = request.stream, !setup.sendsStreams {
            do { request = request.collecting(try await stream.collected()) } catch {
                return ResponseReceiver.Reply(result: .failure(error))
            }
        }
        // Ending the account waits for this token, so no request reaches the session afterwards.
        let token = setup.scope?.begin(over: setup.session)
        if setup.scope != nil, token == nil { return nil }
        defer { withExtendedLifetime(token) {} }
        return await receiver.reply(to: dataTask(request, receiver))
    }

    private func dataTask(_ request: EncodedRequest, _ receiver: ResponseReceiver) -> any DataTask {
        if let session = setup.streamingSession { return session.streamTask(request: request, receiver: receiver) }
        let session = setup.session
        guard receiver.mayPause else {
            return session.dataTask(request: request) { receiver.didComplete($0, $1, $2) }
        }
        return DeliveringTask(receiver, task.clock) { delivery in
            session.dataTask(request: request) { delivery.finish($0, $1.map(ResponseHead.init), $2) }
        }
    }
}

// MARK: - After the session

extension Exchange {
    /// Applies the size limit to the response of a session that delivers the whole body at once.
    /// For other sessions, ``ResponseReceiver`` has already applied the limit.
    private func limitingSize(of response: Response, to request: EncodedRequest) throws -> Response {
        let maximum = request.maximumResponseBytes
        guard response.data.count > maximum, let head = response.head, head.isHTTP else { return response }
        let error = WebServiceError.tooLarge(maximum, request.source, response)
        guard head.outlasts(error) else { throw error }
        var response = response
        response.data = response.data.prefix(max(0, maximum))
        response.bodyFailure = error
        return response
    }

    private func storeCookies(of response: Response, to request: EncodedRequest) {
        guard let cookieJar = setup.cookieJar, request.source.options.shouldHandleCookies,
            let url = URL(string: request.url), let head = response.head, head.isHTTP
        else { return }
        let cookies = head.values(for: .setCookie)
        if !cookies.isEmpty { cookieJar.store(cookies, joined: head.joinsFields, from: url, task.clock) }
    }

    /// Applies the ``RedirectPolicy`` of a request to its response.
    ///
    /// - Returns: The request of the next hop; `nil` if the response is not a redirect to follow.
    /// - Throws: The error of a redirect that must not be followed.
    private func redirect(after response: Response, of request: EncodedRequest) throws -> Request? {
        guard response.isHTTP, (300..<400).contains(response.status) else { return nil }
        let decision = request.source.options.redirectPolicy.decision(
            for: request.source, at: request.url, status: response.status,
            locations: response.head?.locations ?? [],
            followed: response.redirects.count)
        switch decision {
        case .deliver: return nil
        case .fail(var error):
            error.response = response
            throw error
        case .follow(let next, let droppedCredentials):
            task.record(.redirect, droppedCredentials ? "to another origin, without credentials" : "")
            return next
        }
    }
}

extension Result where Success == Response, Failure == any Error {
    /// Creates the result of a session that completes with three optional values. If all three are
    /// `nil`, the result is an error, because there is no response from a server. An error that
    /// accompanies a response is the error of its body if the response outlasts it
    /// (``ResponseHead/outlasts(_:)``).
    init(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?, source: Response.Source) {
        if let error {
            let error = URLError(transport: error) ?? error
            let head = response.map(ResponseHead.init)
            guard let head, head.outlasts(error) else {
                self = .failure(error)
                return
            }
            var response = Response(body: data, head: head, source: source)
            response.bodyFailure = error
            self = .success(response)
        } else if data == nil, response == nil {
            self = .failure(URLError(.badServerResponse))
        } else {
            self = .success(Response(body: data, head: response.map(ResponseHead.init), source: source))
        }
    }
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
