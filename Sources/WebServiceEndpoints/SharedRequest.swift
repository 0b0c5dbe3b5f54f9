import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension SessionTask {
    /// Sets the duplicate mode and the key of this task. They have the same effect as the
    /// parameters of `perform(_:key:duplicates:)` for a typed request.
    ///
    /// ```swift
    /// let brewers = try await service.GET("/brewers").setDuplicates(.join).decode([Brewer].self).value
    /// ```
    /// When the task is resumed, its request is compared with the requests in flight of other tasks
    /// of the service, if this method was called on them. If the task has a key, its request is
    /// also compared with typed requests. If there is no key, two requests are equal if all of the
    /// following are true:
    /// - They have the same method, URL and body, and the same header fields except `traceparent`,
    ///   `tracestate` and `baggage`.
    /// - They have the same `Request.Options.cachePolicy` and
    ///   `Request.Options.shouldHandleCookies`.
    /// - No `Authentication` was cleared between them.
    ///
    /// A request whose body is a file, a stream, a form with files or the result of a closure is
    /// not equal to any other request.
    ///
    /// - Tasks that join share one exchange. The exchange has the request and the options of the
    ///   task that started it, and reports its progress to that task. Every task has its own
    ///   deadline, rules and handlers, and ends once. `suspend()` suspends only the handlers.
    /// - `WebService.cancelRequests(key:)` and similar methods find these tasks as well.
    ///
    /// A stream fails with `WebServiceError.Code.encoding`, because only one reader can read its
    /// body. The method has no effect on downloads. Call it before `resume()`.
    ///
    /// - Parameters:
    ///   - mode: What to do if an equal request is in flight.
    ///   - key: A key that identifies the request instead of its content. Defaults to `nil`.
    @discardableResult
    public func setDuplicates(_ mode: DuplicateMode, key: (any Hashable & Sendable)? = nil) -> Self {
        let (core, substitution) = (service, substitution)
        let key = key.map(RequestKey.init)
        replaceSending { task, request in
            core.begin(request, over: substitution, key: key, duplicates: mode, task: task)
        }
        return self
    }
}

extension ServiceCore {
    /// Starts a request that is compared with others. Called when its task is resumed for the first
    /// time.
    fileprivate func begin(
        _ request: Request, over substitution: SessionSubstitution?, key: RequestKey?, duplicates: DuplicateMode,
        task: SessionTask
    ) {
        let (setup, id) = (setup, EventQueue.makeID())
        task.observe(setup.delegateReference)
        task.observe(by: setup.observers, request, id: id)
        let shared: SharedRequest
        do {
            guard !task.isStreamed else {
                throw WebServiceError(
                    .encoding, "a stream cannot share its response; do not call setDuplicates(_:key:) on its task")
            }
            shared = try SharedRequest(
                request, over: substitution.map { $0(setup.session) }, id: id, setup.order.interceptors)
        } catch {
            task.complete(.failure(error))
            return
        }
        task.scheduleDeadline(request.options.requestDeadline)
        let outcome = TypedResult<Response>()
        begin(shared, id: id, self.typed.configuration, key: key, duplicates: duplicates, task: task) {
            outcome.take($0, task, isJoined: $0.id != id)
        }
    }
}

/// A plain request in a form that the registry can compare and several tasks can share.
struct SharedRequest: ServiceRequest, Hashable {
    typealias Output = Response

    /// The properties that are compared.
    private struct Identity: Hashable {
        let method: Request.Method
        let url: String
        let headers: [String: [String]]
        let body: Data?
        let contentType: String?
        let handlesCookies: Bool
        let cachePolicy: UInt
        /// The number of log-outs of each authentication.
        let accounts: [Int]
        /// The identifier of a request that is not equal to any other; `nil` for other requests.
        let unique: UInt64?
    }

    let request: Request
    /// The session of the endpoint; `nil` for the session of the service.
    fileprivate let session: (any Session)?
    /// The method and the URL without its query, which is safe to include in errors.
    let summary: String
    private let identity: Identity

    /// - Parameter id: The identifier of the exchange.
    init(
        _ request: Request, over session: (any Session)?, id: UInt64, _ interceptors: [any Interceptor]
    ) throws(WebServiceError) {
        let encoded = try request.encode()
        self.request = request
        self.session = session
        summary = encoded.summary
        let isComparable = encoded.bodySource == nil && encoded.bodyLength != nil && encoded.stream == nil
        let fields = encoded.headers.lazy.map { (name: $0.name.lowercased(), value: $0.value) }
            .filter { !["traceparent", "tracestate", "baggage"].contains($0.name) }
        identity = Identity(
            method: request.method, url: encoded.url,
            headers: Dictionary(grouping: fields, by: \.name).mapValues { $0.map(\.value) }, body: encoded.body,
            contentType: encoded.contentType, handlesCookies: request.options.shouldHandleCookies,
            cachePolicy: request.options.cachePolicy.rawValue,
            accounts: (interceptors + request.options.interceptors).compactMap { ($0 as? Authentication)?.logOuts },
            unique: isComparable && !request.hasBodyProvider ? nil : id)
    }

    static func == (left: SharedRequest, right: SharedRequest) -> Bool { left.identity == right.identity }

    func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

/// The endpoint of plain requests that tasks may share.
struct SharedEndpoint: ServiceEndpoint {
    let countsAsActivity = false

    private struct Fetched: RawDataSource {
        let response: Response
        var rawData: Data? { response.data }
    }

    func supports(_ request: any ServiceRequest) -> Bool { request is SharedRequest }

    func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        guard let shared = request as? SharedRequest else { throw URLError(.unknown) }  // see `supports`
        // Each task has its own deadline.
        return Fetched(response: try await context.send(shared.request, over: shared.session, hasDeadline: false))
    }

    func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
        -> any Sendable
    {
        guard let response = (rawData as? Fetched)?.response else { throw URLError(.unknown) }  // see `fetch`
        return response
    }
}

/// What happens to a new request while an equal request is in flight.
///
/// Requests with a key are equal if their keys are equal. A request without a key is equal to
/// requests of the same type and value, with or without a key. A request that is not `Hashable` and
/// has no key is not equal to any other request. Requests that were started for different accounts
/// (`WebService.storageAccount`) are never equal.
///
/// Plain requests are compared only if `SessionTask.setDuplicates(_:key:)` was called on their
/// tasks. That method defines when they are equal.
///
/// The lookup and the decision are atomic. If two threads start equal requests at the same time,
/// one of these requests counts as the first.
public enum DuplicateMode: Sendable, Hashable {
    /// Sends both requests.
    case allow
    /// Fails the new request immediately with `WebServiceError.Code.duplicateRequest`.
    case reject
    /// Shares the response of the equal request in flight. If there are several, shares the
    /// response of the one that was started last.
    ///
    /// Each task can be cancelled independently. The shared request is cancelled when no task waits
    /// for its response. A request of another type with the same key cannot join and fails as in
    /// ``reject``.
    case join
    /// Cancels the equal requests in flight and sends the new request.
    case replace
    /// Starts the new request after the equal requests in flight have ended.
    case queue
}
