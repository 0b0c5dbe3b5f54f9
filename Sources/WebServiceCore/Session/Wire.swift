import Foundation

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// For whom messages are sent: a ``SessionTask``, or one leg of it behind interceptors.
protocol ExchangeOwner: AnyObject, Sendable {
    /// Sees the messages.
    var delegate: (any ServicePassthroughDelegate)? { get }
    /// A message is about to be sent.
    ///
    /// - Returns: Whether it may be: an exchange has only so many.
    func willSend(_ request: EncodedRequest) -> Bool
    /// Something is under way that can be cancelled.
    ///
    /// - Returns: Whether it is still wanted; else it has been cancelled.
    func attach(_ transport: Transport) -> Bool
    /// Whether it wants to hear the answer to every message, or only of exchanges with redirects.
    var recordsEveryAttempt: Bool { get }
    /// The answer to a message.
    func didReceive(_ outcome: Outcome, for request: EncodedRequest)
    /// Something worth knowing happened.
    func record(_ kind: Timeline.Kind, _ detail: String)
    /// The end.
    func complete(_ outcome: Outcome)
}

/// What carries the messages of a service, as it was when a task was resumed.
final class Wire: Sendable {
    let session: any Session
    /// `nil` for none.
    let interceptors: [any Interceptor]?
    let cookieJar: CookieJar?

    init(session: any Session, interceptors: [any Interceptor]?, cookieJar: CookieJar?) {
        self.session = session
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
            guard owner.willSend(message) else {
                let limit = "more than \(SessionTask.maximumMessages) messages for one exchange"
                throw WebServiceError(.tooManyMessages, limit, request: request.source)
            }
            let dataTask = try transmit(message, seenBy: owner.delegate) { [self] data, response, error in
                receive(Outcome(transported: data, response, error, redirects), message, for: owner)
            }
            if owner.attach(.exchange(dataTask)) { dataTask.resume() }
        } catch {
            owner.complete(Outcome(error: error))
        }
    }

    private func receive(_ outcome: Outcome, _ message: EncodedRequest, for owner: any ExchangeOwner) {
        guard let http = outcome.response as? HTTPURLResponse, outcome.error == nil else {
            return finish(outcome, message, for: owner)
        }
        if let maximum = message.maximumResponseBytes, let data = outcome.data, data.count > maximum {
            return finish(Outcome(response: http, error: WebServiceError.tooLarge(maximum, message.source, http)), message, for: owner)
        }
        if let cookieJar, message.source.shouldHandleCookies, let cookies = http.value(forHTTPHeaderField: "Set-Cookie"),
            let url = URL(string: message.url)
        {
            cookieJar.store([cookies], from: url)
        }
        guard (300..<400).contains(http.statusCode) else { return finish(outcome, message, for: owner) }
        redirect(outcome, http, message, for: owner)
    }

    private func finish(_ outcome: Outcome, _ message: EncodedRequest, for owner: any ExchangeOwner) {
        if owner.recordsEveryAttempt || !outcome.redirects.isEmpty { owner.didReceive(outcome, for: message) }
        owner.complete(outcome)
    }

    private func redirect(_ outcome: Outcome, _ http: HTTPURLResponse, _ message: EncodedRequest, for owner: any ExchangeOwner) {
        // A session that completes twice must not have the next message sent twice.
        guard message.takeRedirect() else { return }
        let request = message.source
        let location = http.value(forHTTPHeaderField: "Location")
        let decision = request.redirectPolicy.decision(
            for: request, at: message.url, status: http.statusCode, locations: location.map { [$0] } ?? [], followed: outcome.redirects.count
        )
        owner.didReceive(outcome, for: message)
        switch decision {
        case .deliver:
            owner.complete(outcome)
        case .fail(var error):
            error.response = http
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

    /// One message: the delegate may rewrite it, hears that it is sent, and hears the answer. Without a delegate this is the session alone.
    func transmit(
        _ request: any URLRequestEncodable,
        seenBy delegate: (any ServicePassthroughDelegate)?,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) throws -> any DataTask {
        guard let delegate else { return session.dataTask(request: request, completion: completion) }
        let original = try request.urlRequest()
        var message = original
        if let modified = delegate.modifiedRequest(request: original) {
            message = try Request(modified).urlRequest()
        }
        let limited = LimitedURLRequest(urlRequestValue: message, maximumResponseBytes: (request as? EncodedRequest)?.maximumResponseBytes)
        let sent = SentFlag()
        let dataTask = session.dataTask(request: limited) { [message] data, response, error in
            if sent.takeAnswer() { delegate.responseReceived(response: response, data: data, request: message, error: error) }
            completion(data, response, error)
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
}

extension WebServiceError {
    static func tooLarge(_ maximum: Int, _ request: Request?, _ response: URLResponse?) -> WebServiceError {
        WebServiceError(.responseTooLarge, "the body of the response is longer than \(maximum) bytes", request: request, response: response)
    }
}
