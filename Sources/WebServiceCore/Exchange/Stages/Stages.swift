import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The stages that a request and its response pass through, as configured when the task was
/// resumed. ``Exchange`` calls them and defines their order.
final class Stages: Sendable {
    let session: SessionStage
    let interceptors: [any Interceptor]
    let cookieJar: CookieJar?
    let delegateReference: DelegateReference?
    let observers: [any Observer]
    /// The account to which the service belongs.
    let scope: AccountScope?

    init(
        session: any Session = FoundationSession.shared, interceptors: [any Interceptor] = [],
        cookieJar: CookieJar? = nil,
        delegate: DelegateReference? = nil, observers: [any Observer] = [], scope: AccountScope? = nil
    ) {
        self.session = SessionStage(session)
        self.interceptors = interceptors
        self.cookieJar = cookieJar
        delegateReference = delegate
        self.observers = observers
        self.scope = scope
    }

    /// Returns whether custom code that may ignore a cancellation runs before a request is sent: a
    /// body provider, an interceptor, or the sequence of a body that must be collected.
    func runsCustomCode(for request: Request) -> Bool {
        request.hasBodyProvider || !interceptors.isEmpty || !request.options.interceptors.isEmpty
            || request.hasStreamedBody && !session.sendsStreams
    }

    /// Throws an error for a request that must not be sent.
    func check(_ request: EncodedRequest) throws {
        guard request.source.options.cachePolicy != .returnCacheDataDontLoad else {
            throw URLError(.resourceUnavailable)
        }
        guard request.source.canSendBody else { throw WebServiceError.bodyNotReplayable(request.source) }
    }

    /// Applies the size limit to the response of a session that delivers the whole body at once.
    /// For other sessions, ``ResponseReceiver`` has already applied it.
    func limitSize(of response: Response, to request: EncodedRequest) throws {
        let maximum = request.maximumResponseBytes
        guard response.data.count > maximum, response.isHTTP else { return }
        throw WebServiceError.tooLarge(maximum, request.source, response)
    }
}
