import Dispatch
package import Foundation

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// For whom messages are sent: a ``SessionTask``, or one leg of it behind interceptors.
protocol ExchangeOwner: AnyObject, Sendable {
    /// Sees the messages.
    var delegate: (any ServicePassthroughDelegate)? { get }
    /// A request is about to be sent.
    ///
    /// - Returns: Whether it may be: a suspended task sends nothing, and an exchange has only so
    ///   many requests.
    func willSend(_ request: EncodedRequest) -> SendPermission
    /// Calls the closure, which sends a request that was held, when the task is resumed; at once
    /// where it is resumed already.
    func hold(_ send: @escaping @Sendable () -> Void)
    /// Something is under way that can be cancelled.
    ///
    /// - Returns: Whether it is still wanted; else it has been cancelled.
    func attach(_ transport: Transport) -> Bool
    /// Whether it wants to hear the answer to every message, or only of exchanges with redirects.
    var recordsEveryAttempt: Bool { get }
    /// Hears how far the message has come; `nil` when nobody asks.
    var progress: (@Sendable (TransferProgress) -> Void)? { get }
    /// The answer to a message.
    func didReceive(_ outcome: Outcome, for request: EncodedRequest)
    /// Something worth knowing happened.
    func record(_ kind: Timeline.Kind, _ detail: String)
    /// The end.
    func complete(_ outcome: Outcome)
}

/// Whether a request may be sent.
enum SendPermission: Sendable {
    case granted
    /// The task is suspended.
    case held
    /// The task has an outcome, or has sent as many requests as one exchange may.
    case refused
}

/// What carries the messages of a service, as it was when a task was resumed.
final class Wire: Sendable {
    let session: any Session
    /// The session, where it gives whole responses.
    private let responseSession: (any ResponseSession)?
    /// `nil` for none.
    let interceptors: [any Interceptor]?
    let cookieJar: CookieJar?

    init(session: any Session, interceptors: [any Interceptor]?, cookieJar: CookieJar?) {
        self.session = session
        responseSession = session as? any ResponseSession
        self.interceptors = interceptors
        self.cookieJar = cookieJar
    }

    /// Sends a request and follows its redirects, which are the same over every session because they are followed here.
    ///
    /// - Parameter redirects: The URLs that redirected to this request.
    func send(_ request: EncodedRequest, for owner: any ExchangeOwner, redirects: [URL] = []) {
        do {
            guard request.source.cachePolicy != .returnCacheDataDontLoad else { throw URLError(.resourceUnavailable) }
            let message = addingCookies(to: request)
            switch owner.willSend(message) {
            case .granted: break
            case .held: return owner.hold { [self] in send(request, for: owner, redirects: redirects) }
            case .refused:
                let limit = "more than \(SessionTask.maximumMessages) messages for one exchange"
                throw WebServiceError(.tooManyMessages, limit, request: request.source)
            }
            let dataTask = try transmit(message, for: owner, redirects: redirects) { [self] outcome in
                receive(outcome, message, for: owner)
            }
            if owner.attach(.exchange(dataTask)) { dataTask.resume() }
        } catch {
            owner.complete(Outcome(error: error))
        }
    }

    private func receive(_ outcome: Outcome, _ message: EncodedRequest, for owner: any ExchangeOwner) {
        // The second completion of a session neither sends a redirect twice nor ends the exchange
        // while the redirect is in flight.
        guard message.takeOutcome() else { return }
        guard outcome.error == nil, outcome.head.isHTTP else { return finish(outcome, message, for: owner) }
        if let maximum = message.maximumResponseBytes, let data = outcome.data, data.count > maximum {
            let error = WebServiceError.tooLarge(maximum, message.source, outcome.response)
            return finish(Outcome(head: outcome.head, error: error, redirects: outcome.redirects), message, for: owner)
        }
        if let cookieJar, message.source.shouldHandleCookies, let url = URL(string: message.url) {
            let cookies = outcome.head.values(for: .setCookie)
            if !cookies.isEmpty { cookieJar.store(cookies, joined: outcome.head.joinsFields, from: url) }
        }
        guard (300..<400).contains(outcome.head.status) else { return finish(outcome, message, for: owner) }
        redirect(outcome, message, for: owner)
    }

    private func finish(_ outcome: Outcome, _ message: EncodedRequest, for owner: any ExchangeOwner) {
        if owner.recordsEveryAttempt || !outcome.redirects.isEmpty { owner.didReceive(outcome, for: message) }
        owner.complete(outcome)
    }

    private func redirect(_ outcome: Outcome, _ message: EncodedRequest, for owner: any ExchangeOwner) {
        let request = message.source
        let decision = request.redirectPolicy.decision(
            for: request, at: message.url, status: outcome.head.status, locations: outcome.head.values(for: .location),
            followed: outcome.redirects.count
        )
        owner.didReceive(outcome, for: message)
        switch decision {
        case .deliver:
            owner.complete(outcome)
        case .fail(var error):
            error.response = outcome.response
            error.body = outcome.data
            owner.complete(Outcome(error: error))
        case .follow(let next, let droppedCredentials):
            owner.record(.redirect, droppedCredentials ? "to another origin, without credentials" : "")
            do {
                let redirects = outcome.redirects + (URL(string: message.url).map { [$0] } ?? [])
                send(try next.encode(), for: owner, redirects: redirects)
            } catch {
                owner.complete(Outcome(error: error))
            }
        }
    }

    private func addingCookies(to message: EncodedRequest) -> EncodedRequest {
        guard let cookieJar, message.source.shouldHandleCookies, let url = URL(string: message.url), let cookies = cookieJar.header(for: url) else {
            return message
        }
        return message.adding("Cookie", cookies)
    }

    /// Where the callbacks of a session's own thread are taken up when code of the user's may follow.
    private static let pool = DispatchQueue.global()

    /// One message of an exchange: the delegate may rewrite it, hears that it is sent, and hears the answer. Without a delegate this is the session alone.
    private func transmit(
        _ message: EncodedRequest, for owner: any ExchangeOwner, redirects: [URL], completion: @escaping @Sendable (Outcome) -> Void
    ) throws -> any DataTask {
        let delegate = owner.delegate
        guard let responseSession else {
            return try transmit(message, seenBy: delegate) { [session] data, response, error in
                completion(Outcome(transported: data, response, error, redirects, session.responseSource))
            }
        }
        return try announced(message, to: delegate) { request, hearAnswer in
            responseSession.responseTask(request: request, progress: owner.progress) { result, metrics in
                let outcome = Outcome(transported: result, metrics, redirects)
                guard hearAnswer != nil || (300..<400).contains(outcome.head.status) else { return completion(outcome) }
                Self.pool.async {
                    hearAnswer?(outcome.data, outcome.response, outcome.error)
                    completion(outcome)
                }
            }
        }
    }

    /// One message by the session's plain method.
    func transmit(
        _ request: any URLRequestEncodable,
        seenBy delegate: (any ServicePassthroughDelegate)?,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) throws -> any DataTask {
        try announced(request, to: delegate) { request, hearAnswer in
            session.dataTask(request: request) { data, response, error in
                hearAnswer?(data, response, error)
                completion(data, response, error)
            }
        }
    }

    /// Has the delegate rewrite a message, and tells it of the message and of its answer.
    private func announced(
        _ request: any URLRequestEncodable, to delegate: (any ServicePassthroughDelegate)?,
        send: (any URLRequestEncodable, (@Sendable (Data?, URLResponse?, (any Error)?) -> Void)?) -> any DataTask
    ) throws -> any DataTask {
        guard let delegate else { return send(request, nil) }
        let original = try request.urlRequest()
        var message = original
        if let modified = delegate.modifiedRequest(request: original) {
            message = try Request(modified).urlRequest()
        }
        let limited = LimitedURLRequest(message, like: request as? EncodedRequest)
        let sent = SentFlag()
        let dataTask = send(limited) { [message] data, response, error in
            if sent.takeAnswer() { delegate.responseReceived(response: response, data: data, request: message, error: error) }
        }
        return AnnouncingDataTask(dataTask) { [message] in
            sent.set()
            delegate.requestSent(request: message)
        }
    }
}

/// Whether a message is on the wire: one that was cancelled before has no answer to tell of, and one that was answered has no second.
private final class SentFlag: Sendable {
    private let isOnTheWire = Mutex(false)

    func set() {
        isOnTheWire.withLock { $0 = true }
    }

    func takeAnswer() -> Bool {
        isOnTheWire.withLock { isOnTheWire in
            defer { isOnTheWire = false }
            return isOnTheWire
        }
    }
}

/// A `URLRequest` that a delegate has seen, with what it cannot say itself.
package struct LimitedURLRequest: URLRequestEncodable {
    package let urlRequestValue: URLRequest
    /// The longest body that is wanted, in bytes; `nil` for any.
    package let maximumResponseBytes: Int?
    package let connectTimeout: TimeInterval?

    init(_ urlRequest: URLRequest, like original: EncodedRequest?) {
        urlRequestValue = urlRequest
        maximumResponseBytes = original?.maximumResponseBytes
        connectTimeout = original?.source.connectTimeout
    }
}

extension WebServiceError {
    package static func tooLarge(_ maximum: Int, _ request: Request?, _ response: URLResponse?) -> WebServiceError {
        WebServiceError(.responseTooLarge, "the body of the response is longer than \(maximum) bytes", request: request, response: response)
    }
}
