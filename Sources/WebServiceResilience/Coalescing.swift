import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that sends only one of the identical requests that are in flight at the same
/// time.
///
/// ```swift
/// service.interceptors = [.bearer(token), .coalescing()]
/// ```
/// Use it if independent parts of your program request the same data. `setDuplicates(.join)` of
/// `WebServiceEndpoints` does the same for single tasks. It compares requests before any
/// interceptor runs, whereas this interceptor compares them after the interceptors that precede it
/// in the list.
/// - Requests are identical if they have the same method, URL, header fields (apart from
///   `traceparent`, `tracestate` and `baggage`), cookies of the cookie jar, timeouts, size limit,
///   redirect policy, cache policy and `shouldHandleCookies`, and if the configuration of the
///   service was not changed between them. Requests of two services are never identical.
/// - Only requests with a safe method (RFC 9110, section 9.2.1) and without a body are shared.
///   Streams, downloads, WebSocket handshakes and requests with their own interceptors are not
///   shared.
/// - Each task receives the response or the error of the shared request, and its timeline contains
///   the attempts. `Response.source` is `.joined` for the tasks that did not begin the shared
///   request.
/// - If a task is cancelled or exceeds its deadline, only its own wait ends. The shared request is
///   cancelled when no task waits for it any longer. It has the options of the task that began it.
///
/// Accounts never share a response. Place this interceptor after those that add credentials or
/// other header fields, so that it can compare these fields. If credentials that this interceptor
/// cannot compare may be added after it, the request is sent separately, and the reason is recorded
/// in the task's `Timeline`. Such credentials can be added by interceptors other than the policies
/// of this package, such as an `Authentication`, a `ResponseCache` or a closure; by the passthrough
/// delegate; and by the session.
///
/// In the list of interceptors, place this interceptor before a ``Hedging``, whose second request
/// would otherwise wait for the first one. In the other order, requests fail with
/// `WebServiceError.Code.interceptorOrder`. Place it before limiters and circuit breakers as well,
/// so that the shared request needs only one permit and counts only once. All members may be used
/// from any thread.
public final class Coalescing: Interceptor {
    /// The result of a shared request, and its events.
    private typealias Outcome = (result: Result<Response, any Error>, log: ExchangeLog.Record?)

    /// The properties that are equal in identical requests.
    private struct Key: Hashable {
        let configuration: ObjectIdentifier
        let method: Request.Method
        let content: String
        let fields: [String: [String]]
        let cookies: String?
        let handlesCookies: Bool
        let cachePolicy: UInt
        let redirectPolicy: RedirectPolicy
        let maximumBytes: Int
        let timeouts: [Duration?]
    }

    private struct Flight {
        let id: UInt64
        /// The configuration, retained so that its identifier is not reused.
        let configuration: any AnyObject & Sendable
        var waiters: [UInt64: Once<Outcome>]
        var work: Task<Void, Never>?
    }

    private struct State {
        var flights: [Key: Flight] = [:]
        private var last: UInt64 = 0

        mutating func number() -> UInt64 {
            last += 1
            return last
        }
    }

    private let key: (@Sendable (Request) -> String?)?
    private let state = Mutex(State())

    /// Creates an interceptor that sends only one of several identical requests.
    ///
    /// - Parameter key: A closure that returns a string to compare instead of the URL and of the
    ///   header fields that are not credentials, or `nil` for a request that is not shared. It is
    ///   called at most once per request, in the background. Defaults to `nil`: the URL and the
    ///   header fields are compared.
    public init(by key: (@Sendable (_ request: Request) -> String?)? = nil) {
        self.key = key
    }

    /// Sends the request, or waits for the response to an identical one.
    ///
    /// - Throws: `CancellationError`, or an error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        guard let key = comparableKey(of: request, next) else { return try await next(request) }
        try await next.permission()
        let waiter = Once<Outcome>()
        let (flight, number, isNew) = enter(key, waiter, next.configuration)
        if isNew {
            begin(flight, key, request, next)
        } else {
            next.record(.coalescing, "waits for the response to an identical request")
        }
        let (result, log) = await withTaskCancellationHandler {
            await waiter.value
        } onCancel: {
            leave(flight, key, number)
            waiter.set((.failure(CancellationError()), nil))
        }
        if let log { next.add(log) }
        guard !isNew else { return try result.get() }
        // The shared request can end with the task that began it, for example if that task is
        // suspended.
        if case .failure(let error as URLError) = result, error.code == .cancelled { return try await next(request) }
        var response = try result.get()
        response.source = .joined
        return response
    }

    // MARK: Flights

    /// Adds a waiter to the flight with a key, or to a new one.
    private func enter(
        _ key: Key, _ waiter: Once<Outcome>, _ configuration: any AnyObject & Sendable
    ) -> (flight: UInt64, waiter: UInt64, isNew: Bool) {
        state.withLock { state in
            let number = state.number()
            if let flight = state.flights[key] {
                state.flights[key]?.waiters[number] = waiter
                return (flight.id, number, false)
            }
            state.flights[key] = Flight(id: number, configuration: configuration, waiters: [number: waiter])
            return (number, number, true)
        }
    }

    private func begin(_ flight: UInt64, _ key: Key, _ request: Request, _ next: Next) {
        let sending = ConcurrentRequest(next, addsEvents: false)
        let work = Task(executorPreference: next.clock.executor) { [self] in
            let result = await sending.result(of: request)
            let log = sending.log
            for waiter in end(flight, key) { waiter.set((result, log)) }
        }
        let isNeeded = state.withLock { state in
            guard state.flights[key]?.id == flight else { return false }
            state.flights[key]?.work = work
            return true
        }
        // The flight has ended, or all waiters have left.
        if !isNeeded { work.cancel() }
    }

    /// - Returns: The waiters.
    private func end(_ flight: UInt64, _ key: Key) -> [Once<Outcome>] {
        let ended = state.withLock { state in
            state.flights[key]?.id == flight ? state.flights.removeValue(forKey: key) : nil
        }
        return ended.map { Array($0.waiters.values) } ?? []
    }

    /// Removes a waiter. If it was the last one, the flight ends.
    private func leave(_ flight: UInt64, _ key: Key, _ number: UInt64) {
        let abandoned = state.withLock { state -> Flight? in
            guard state.flights[key]?.id == flight, state.flights[key]?.waiters.removeValue(forKey: number) != nil,
                state.flights[key]?.waiters.isEmpty == true
            else { return nil }
            return state.flights.removeValue(forKey: key)
        }
        abandoned?.work?.cancel()
    }

    // MARK: Keys

    /// Returns the key of a request; `nil` if its response is not shared.
    private func comparableKey(of request: Request, _ next: Next) -> Key? {
        let options = request.options
        guard request.method.isSafe, !next.isStreamed, !request.downloadsPart, !request.uploadsPart,
            !options[UpgradeTag.self], options.interceptors.allSatisfy({ $0 is Coalescing }),
            let encoded = try? request.encode(),  // sending the request reports the error
            encoded.bodyLength == 0, encoded.stream == nil, let url = URL(string: encoded.url)
        else { return nil }
        if let reason = reasonToSendSeparately(request, to: url, next) {
            next.record(.coalescing, "sent separately, because \(reason)")
            return nil
        }
        var content = encoded.url
        if let key {
            guard let custom = key(request) else { return nil }
            content = custom
        }
        let comparesAll = key == nil
        let fields = encoded.headers.map { (name: $0.name.lowercased(), value: $0.value) }.filter { field in
            comparesAll
                ? !["traceparent", "tracestate", "baggage"].contains(field.name)
                : field.name == "cookie" || request.isCredential(field.name)
        }
        return Key(
            configuration: ObjectIdentifier(next.configuration), method: request.method, content: content,
            fields: Dictionary(grouping: fields, by: \.name).mapValues { $0.map(\.value) },
            cookies: options.shouldHandleCookies ? next.cookies(for: url) : nil,
            handlesCookies: options.shouldHandleCookies, cachePolicy: options.cachePolicy.rawValue,
            redirectPolicy: options.redirectPolicy, maximumBytes: options.bodyMaximum,
            timeouts: [options.timeout, options.attemptTimeout, options.connectTimeout])
    }

    /// Returns the reason why a request's credentials cannot be compared; `nil` if they can.
    private func reasonToSendSeparately(_ request: Request, to url: URL, _ next: Next) -> String? {
        if let other = next.following.first(where: { !($0 is any PlacedInterceptor || $0 is AttemptTimeout) }) {
            return "an interceptor of type \(type(of: other)) follows, which may add credentials"
        }
        if request.isSigned { return "its credential is computed when it is sent" }
        if next.hasDelegate { return "the delegate may add credentials" }
        return next.sessionAddsCredentials(to: url) ? "the session may add credentials" : nil
    }
}

extension Request {
    /// Returns whether a header field may contain a credential.
    ///
    /// - Parameter name: The name in lower case.
    fileprivate func isCredential(_ name: String) -> Bool {
        credentialFields.contains(Headers.Name(name)) || Secrets.mayBeNamed(by: name)
    }
}

extension Interceptor where Self == Coalescing {
    /// Returns an interceptor that sends only one of several identical requests; see
    /// ``Coalescing``.
    ///
    /// - Parameter key: A closure that returns a string to compare instead of the URL and of the
    ///   header fields that are not credentials, or `nil` for a request that is not shared.
    ///   Defaults to `nil`: the URL and the header fields are compared.
    public static func coalescing(by key: (@Sendable (_ request: Request) -> String?)? = nil) -> Coalescing {
        Coalescing(by: key)
    }
}

extension Timeline.Kind {
    /// A decision of a ``Coalescing``: a request waits for the response to an identical one, or is
    /// sent separately because its credentials cannot be compared.
    public static let coalescing = Timeline.Kind("coalescing")
}
