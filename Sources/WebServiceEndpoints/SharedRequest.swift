import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension SessionTask {
    /// Sets the handling of an equal request in flight, as the parameters of
    /// `perform(_:key:duplicates:)` do for a typed request.
    ///
    /// ```swift
    /// let brewers = try await service.GET("/brewers").setDuplicates(.join).decode([Brewer].self).value
    /// ```
    /// When the task is resumed, its request is compared with those of the service's tasks that are
    /// in flight and for which this method was called. If it has a key, it is compared with typed
    /// requests as well. Without a key, requests are equal if they have the same method, URL, body
    /// and header fields (apart from `traceparent`, `tracestate` and `baggage`), and the same
    /// `Request.Options.cachePolicy` and `Request.Options.shouldHandleCookies`, and if no
    /// `Authentication` was cleared between them. A request whose body is a file, a stream, a
    /// form with files, or the result of a closure is equal to no other.
    ///
    /// - Tasks that join share one exchange: it has the request and options of the task that
    ///   started it, and reports its progress to that task. Every task has its own deadline, rules
    ///   and handlers, and ends once. `suspend()` suspends only the handlers.
    /// - `WebService.cancelRequests(key:)` and similar methods find these tasks as well.
    ///
    /// A stream fails with `WebServiceError.Code.encoding`, because its body has one reader. The
    /// method has no effect on downloads, and must be called before `resume()`.
    ///
    /// - Parameters:
    ///   - mode: The handling.
    ///   - key: Identifies the request in place of its content. Defaults to `nil`.
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
    /// Starts a request that is compared with others. Called when its task is first resumed.
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
                    .encoding, "a stream cannot share its response; do not call setDuplicates(_:) on its task")
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

/// A plain request in the form in which the registry compares it and several tasks share it.
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
        /// The numbers of log-outs of each authentication.
        let accounts: [Int]
        /// The identifier of a request that is equal to no other.
        let unique: UInt64?
    }

    let request: Request
    /// The session of the endpoint; `nil` for that of the service.
    fileprivate let session: (any Session)?
    /// The method and the URL without its query: safe for errors.
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
        // Each of the tasks has its own deadline.
        return Fetched(response: try await context.send(shared.request, over: shared.session, hasDeadline: false))
    }

    func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
        -> any Sendable
    {
        guard let response = (rawData as? Fetched)?.response else { throw URLError(.unknown) }  // see `fetch`
        return response
    }
}

/// The handling of a request while an equal request is in flight.
///
/// Requests with a key are equal if their keys are equal. A request without a key is equal to
/// requests of the same type and value, with or without a key.
///
/// Tasks of plain requests are compared after `SessionTask.setDuplicates(_:key:)`, which defines
/// when they are equal.
///
/// The lookup and the decision are atomic: if two threads start equal requests, one of them is
/// first. A request that is not `Hashable` and has no key is not equal to any other. Requests
/// started for different accounts (`WebService.storageAccount`) are never equal.
public enum DuplicateMode: Sendable, Hashable {
    /// Sends both requests.
    case allow
    /// Fails the new request immediately with `WebServiceError.Code.duplicateRequest`.
    case reject
    /// Shares the response of the request in flight, or of the one started last if there are
    /// several.
    ///
    /// Each task can be cancelled independently; the shared request is cancelled when no task waits
    /// for it. A request of another type with the same key cannot join and fails as with
    /// ``reject``.
    case join
    /// Cancels the equal requests in flight.
    case replace
    /// Starts the new request after the equal requests in flight have ended.
    case queue
}
