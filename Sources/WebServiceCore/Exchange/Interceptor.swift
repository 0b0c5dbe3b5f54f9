package import Foundation

/// A stage that wraps the sending of a request. It may change the request, respond without sending
/// it, send it again, or inspect the response. Retry and authentication are interceptors.
///
/// This interceptor measures every exchange, including its retries:
/// ```swift
/// struct Stopwatch: Interceptor {
///     func intercept(_ request: Request, next: Next) async throws -> Response {
///         let start = ContinuousClock.now
///         let response = try await next(request)
///         print("\(request.method): \(start.duration(to: .now))")
///         return response
///     }
/// }
/// service.interceptors = [Stopwatch(), .retry()]
/// ```
/// The interceptors of the service precede those of the request; the first one of a list wraps all
/// that follow (`Exchange.swift`). Some interceptors of a request, such as a retry policy, replace
/// the service's interceptor of the same kind (`Interceptor.swift`).
///
/// Each exchange runs its interceptors in a Swift task on the handler pool, whose threads may block
/// (`Documentation/Concurrency.md`). When the exchange is cancelled or exceeds its deadline, this
/// Swift task is cancelled, and the exchange does not wait for it. An interceptor may call `next`
/// several times, one call after another; an exchange sends at most ``SessionTask/maximumAttempts``
/// requests. Several exchanges may call the interceptor concurrently.
///
/// To test an interceptor, install it in a service over a `MockSession`.
public protocol Interceptor: Sendable {
    /// Sends one request, or returns a response for it.
    ///
    /// - Parameters:
    ///   - request: The request to send. A body provider has already run: its bytes are
    ///     ``Request/body``.
    ///   - next: The stages after this interceptor.
    /// - Returns: The response, regardless of its status.
    /// - Throws: The error of the exchange.
    func intercept(_ request: Request, next: Next) async throws -> Response
}

/// The stages after an interceptor: the interceptors that follow, and then the sending of the
/// request.
public struct Next: Sendable {
    let exchange: Exchange
    /// The interceptors of the service and those of the request.
    package let interceptors: [any Interceptor]
    /// The number of interceptors up to this one.
    let position: Int

    var task: SessionTask { exchange.task }

    /// Passes a request to the next stage and returns its response.
    ///
    /// If the status is not 200 to 299, an error of the body other than a cancellation is not
    /// thrown, and the response contains the bytes that were received before the error. If that
    /// response is the result of the exchange, the exchange fails with
    /// ``WebServiceError/Code/unacceptableStatus``, whose underlying error is that of the body. To
    /// return the response without this error, set its ``Response/data``.
    ///
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for errors of this library,
    ///   and any error of a following interceptor. If the exchange is cancelled, the error is
    ///   `URLError.cancelled` or `CancellationError`.
    public func callAsFunction(_ request: Request) async throws -> Response {
        guard position < interceptors.count else {
            return try await exchange.send(try request.startingSpan().encode())
        }
        let next = Next(exchange: exchange, interceptors: interceptors, position: position + 1)
        return try await interceptors[position].intercept(request, next: next)
    }

    /// Passes a request to the next stage and returns its result.
    package func result(of request: Request) async -> Result<Response, any Error> {
        do { return .success(try await self(request)) } catch { return .failure(error) }
    }

    /// Passes a request to the next stage and returns its result.
    ///
    /// - Parameter onCancel: A closure that is called as soon as the Swift task is cancelled,
    ///   because a following interceptor may ignore the cancellation.
    package func result(
        of request: Request, onCancel: @Sendable () -> Void
    ) async -> Result<Response, any Error> {
        await withTaskCancellationHandler {
            await result(of: request)
        } onCancel: {
            onCancel()
        }
    }

    /// Adds an event to the exchange's ``Timeline``.
    public func record(_ kind: Timeline.Kind, _ detail: String = "") {
        task.record(kind, detail)
    }

    /// Adds an event that began at an instant of the clock and ends now.
    package func record(_ kind: Timeline.Kind, _ detail: String, from start: UInt64) {
        task.record(kind, detail, from: start)
    }

    /// Sends a request of the exchange again.
    ///
    /// - Parameter isRefusal: A closure that returns whether the cause of an error is a refusal
    ///   after which the earlier result remains. Defaults to `true` for all refusals.
    /// - Returns: The result; `nil` if the request was refused before it was sent.
    package func again(
        _ request: Request, isRefusal: (_ cause: any Error) -> Bool = { $0 is any Refusal }
    ) async -> Result<Response, any Error>? {
        do {
            return .success(try await self(request))
        } catch let error as WebServiceError
            where error.underlying.map(isRefusal) == true && !task.isCancellation(error)
        {
            record(.noRetry, "the request was refused: \(error.code)")
            return nil
        } catch {
            return .failure(error)
        }
    }

    /// Returns whether an interceptor of a type follows this one in the list.
    package func isFollowed<Other: Interceptor>(by type: Other.Type) -> Bool {
        interceptors[position...].contains { $0 is Other }
    }

    /// Changes the value that an interceptor stores for the exchange.
    package func withValue<Value: Sendable, Result>(
        of owner: AnyObject, _ initial: Value, _ body: (inout Value) -> Result
    ) -> Result {
        task.withValue(of: ObjectIdentifier(owner), initial, body)
    }

    /// Changes the value that all interceptors of a type share for the exchange.
    package func withValue<Value: Sendable, Result>(
        of type: (some Interceptor).Type, _ initial: Value, _ body: (inout Value) -> Result
    ) -> Result {
        task.withValue(of: ObjectIdentifier(type), initial, body)
    }

    /// Returns the time until the deadline of the request, at least zero.
    package func timeToDeadline(of request: Request) -> Duration {
        task.timeLeft(of: request.options.requestDeadline)
    }

    /// Returns whether every attempt of the exchange, including redirects, has failed with one of
    /// the errors, so that no request has reached a server.
    package func hasSentNothing(ifFailedWith codes: Set<URLError.Code>) -> Bool {
        task.root.log.allAttempts { codes.contains($0.code) }
    }

    /// The origin of the base URL of the service; `nil` if there is none.
    package var baseOrigin: Origin? { task.service.baseOrigin }

    /// The clock of the service.
    package var clock: TaskClock { task.service.clock }
}

/// An interceptor that also decides whether a download continues after an error within a body.
protocol ContinuationPolicy: Interceptor {
    /// Returns the pause before the request for the remaining bytes; `nil` if that request must not
    /// be sent.
    ///
    /// - Parameters:
    ///   - attempt: The number of attempts that delivered few bytes, including the first.
    ///   - spent: The duration of these attempts.
    func pauseToContinue(
        _ request: Request, after error: any Error, attempt: Int, spent: Duration, in task: SessionTask
    ) -> Duration?
}

/// An interceptor that also determines whether the device has a network.
package protocol ConnectivityCheck: Interceptor {
    /// Returns whether there is a network over which a host can be reached.
    func isConnected(to host: String) -> Bool
}

/// An interceptor that calls a closure. It is created by ``Interceptor/closure(_:)`` and by other
/// static functions of ``Interceptor``.
public struct ClosureInterceptor: Interceptor {
    let body: @Sendable (_ request: Request, _ next: Next) async throws -> Response

    /// Returns the response that the closure returns.
    public func intercept(_ request: Request, next: Next) async throws -> Response { try await body(request, next) }
}

extension Interceptor where Self == ClosureInterceptor {
    /// Returns an interceptor that calls a closure.
    public static func closure(
        _ body: @escaping @Sendable (_ request: Request, _ next: Next) async throws -> Response
    ) -> ClosureInterceptor {
        ClosureInterceptor(body: body)
    }

    /// Returns an interceptor that adds default header fields.
    ///
    /// A field that the request already has is not changed. The fields are added to requests to the
    /// origin of the service's base URL and to `origins`. Of these fields, requests to other
    /// origins have only `Accept`, `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    ///
    /// - Parameters:
    ///   - headers: The header fields.
    ///   - origins: The origins to which the fields are sent, in addition to the origin of the base
    ///     URL. Defaults to none.
    public static func headers(_ headers: Headers, origins: Set<Origin> = []) -> ClosureInterceptor {
        ClosureInterceptor { request, next in
            var request = request
            request.add(headers, for: origins.union([next.task.service.baseOrigin].compactMap(\.self)))
            return try await next(request)
        }
    }

    /// Returns an interceptor that adds the header field `User-Agent` (RFC 9110, section 10.1.5).
    ///
    /// A request that already has the field is not changed.
    public static func userAgent(_ product: String) -> ClosureInterceptor {
        headers(["User-Agent": product])
    }
}

/// The credential refresh to which the current Swift task belongs.
enum Refresh {
    /// The authentications on whose behalf the current Swift task runs a refresh.
    @TaskLocal static var current: Set<ObjectIdentifier> = []
}

/// An interceptor whose effect depends on its place in the list. The place determines which orders
/// are refused, and which interceptors of a request replace those of the service.
package protocol PlacedInterceptor: Interceptor {
    static var place: InterceptorPlace { get }
}

/// The interceptors whose order matters, by the expression that creates them.
package enum InterceptorPlace: String, Sendable {
    case connectivityWait = ".waitForConnectivity()"
    case idempotencyKey = ".idempotencyKey()"
    case retry = ".retry()"
    case coalescing = ".coalescing()"
    case hedging = ".hedging()"
    case endpoints = ".endpoints()"
    case circuitBreaker = ".circuitBreaker()"
    case rateLimit = ".rateLimit()"
    case concurrencyLimit = ".concurrencyLimit()"

    /// Returns the reason why this interceptor must precede another one; `nil` if both orders are
    /// valid.
    fileprivate func reason(toPrecede other: Self) -> String? {
        switch (self, other) {
        case (.idempotencyKey, .retry):
            "the retry policy would not see the Idempotency-Key and would not send the request again"
        case (.connectivityWait, .hedging): "a wait for a network would count as a late response"
        case (.retry, .hedging): "a pause of the retry policy would count as a late response"
        case (.coalescing, .hedging): "the second request would wait for the first one"
        case (.retry, .endpoints), (.hedging, .endpoints): "each attempt would be sent to the same endpoint"
        case (.hedging, .rateLimit), (.hedging, .concurrencyLimit): "the limiter would not count the second request"
        case (.endpoints, .circuitBreaker), (.endpoints, .rateLimit), (.endpoints, .concurrencyLimit):
            "the key would be the same for all endpoints"
        default: nil
        }
    }

    /// The reason why a list must not contain two interceptors of this kind; `nil` if a list may
    /// contain two.
    fileprivate var reasonToBeUnique: String? {
        switch self {
        case .retry: "the attempts of two retry policies would multiply"
        case .hedging: "the second requests of two hedging interceptors would multiply"
        case .connectivityWait: "the waits of two interceptors would add up"
        default: nil
        }
    }

    /// Whether the interceptor of a request replaces that of the service.
    fileprivate var replacesOther: Bool {
        reasonToBeUnique != nil || [.idempotencyKey, .coalescing, .endpoints].contains(self)
    }
}

/// Interceptors in the order in which they wrap each other.
package struct InterceptorList: Sendable {
    package let interceptors: [any Interceptor]
    /// The reason why no request can be sent; `nil` if the order is correct.
    private let violation: String?

    init(_ interceptors: [any Interceptor]) {
        self.interceptors = interceptors
        violation = interceptors.count > 1 ? Self.violation(in: interceptors) : nil
    }

    /// Adds the interceptors of a request.
    ///
    /// The interceptors of a request follow those of the service, with two exceptions. An
    /// interceptor of some kinds (``InterceptorPlace``) replaces the service's interceptor of the
    /// same kind. An interceptor that must precede another one is inserted before the other one.
    func adding(_ others: [any Interceptor]) -> InterceptorList {
        guard !others.isEmpty else { return self }
        var (list, rest) = (interceptors, [any Interceptor]())
        var replaced: Set<InterceptorPlace> = []
        // The last interceptor is added first, so that the list already contains it when
        // interceptors that must precede it are added.
        for interceptor in others.reversed() {
            let place = Self.place(of: interceptor)
            if let place, place.replacesOther, !replaced.contains(place),
                let index = list.firstIndex(where: { Self.place(of: $0) == place })
            {
                list[index] = interceptor
                replaced.insert(place)
            } else if let place,
                let index = list.firstIndex(where: { Self.place(of: $0).flatMap(place.reason(toPrecede:)) != nil })
            {
                list.insert(interceptor, at: index)
                replaced.insert(place)
            } else {
                rest.append(interceptor)
            }
        }
        return InterceptorList(list + rest.reversed())
    }

    /// Throws an error if the order is incorrect.
    ///
    /// - Throws: ``WebServiceError/Code/interceptorOrder``.
    func check(for request: Request) throws(WebServiceError) {
        guard let violation else { return }
        throw WebServiceError(.interceptorOrder, violation, request: request)
    }

    private static func place(of interceptor: any Interceptor) -> InterceptorPlace? {
        (interceptor as? any PlacedInterceptor).map { type(of: $0).place }
    }

    private static func violation(in interceptors: [any Interceptor]) -> String? {
        let places = interceptors.compactMap(place)
        for (index, place) in places.enumerated() {
            for earlier in places[..<index] {
                if earlier == place, let reason = place.reasonToBeUnique {
                    return "\(reason); use one \(place.rawValue) in the list of interceptors"
                }
                if let reason = place.reason(toPrecede: earlier) {
                    return "\(reason); place \(place.rawValue) before \(earlier.rawValue) in the list of interceptors"
                }
            }
        }
        return nil
    }
}

extension WebServiceError.Code {
    /// A request that was not sent because one of its interceptors would not work at its place in
    /// the list, or because two of the same kind would multiply the requests or the waits. The
    /// message specifies the correct list.
    public static let interceptorOrder = WebServiceError.Code("interceptorOrder")
}
