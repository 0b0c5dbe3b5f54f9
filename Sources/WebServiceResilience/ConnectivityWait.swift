import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that waits for a network when a request fails because there is none.
///
/// ```swift
/// service.interceptors = [.retry(), .waitForConnectivity(within: .seconds(120))]
/// ```
/// If a request fails because its host cannot be found or connected to while the device has no
/// network, the request is sent again as soon as there is a network. This applies to every method
/// if nothing of the exchange was sent. After an earlier attempt or a redirect, it applies to
/// requests with an idempotent method (RFC 9110, section 9.2.2) or an `Idempotency-Key`, because a
/// server may have processed the request. Otherwise, and when ``limit`` has passed, the request
/// fails with the transport error.
///
/// By default, the device is considered to have a network if the routing table of the system
/// contains a route to the host or, for a host name, to a public address. Nothing is sent to
/// determine this, so a route does not imply that the host, the name server or the internet can be
/// reached. Linux offers no better source. `isConnected` can provide another source.
///
/// The routing table is read when a request fails, then after 0.25 seconds, and after pauses that
/// double up to 4 seconds. Waiting counts toward the `Request.Options.deadline`, and ends before
/// the deadline with the transport error. It stops immediately when the task is cancelled, and is
/// recorded in the task's `Timeline`. A body that can be read only once is sent again only if no part
/// of the body has been read.
///
/// A retry policy that follows this interceptor starts over after each wait, because all attempts
/// of the policy may have failed while there was no network. A retry policy that precedes this
/// interceptor counts the waits of an attempt toward its budget. In both orders, ``limit`` applies
/// to the whole exchange.
///
/// An `Outbox` of the service uses the same source. If a request has failed for lack of a network,
/// the outbox sends its entries as soon as there is one.
public struct ConnectivityWait: Interceptor {
    /// The maximum total duration of the waits of one exchange.
    public let limit: Duration

    private let isConnected: @Sendable (String) -> Bool

    /// The errors of requests that were not sent.
    private static let errorCodes: Set<URLError.Code> = [
        .notConnectedToInternet, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost,
    ]

    /// Creates an interceptor that waits for a network.
    ///
    /// - Parameters:
    ///   - limit: The maximum total duration of the waits of one exchange. Defaults to 60 seconds.
    ///   - isConnected: A closure that returns whether the device has a network for a host: a name,
    ///     or an address without brackets. It is called in the background and must not block.
    ///     Defaults to `nil`: the routing table is used.
    public init(within limit: Duration = .seconds(60), isConnected: (@Sendable (_ host: String) -> Bool)? = nil) {
        self.limit = limit
        self.isConnected = isConnected ?? NetworkRoute.exists
    }

    /// Sends the request, and sends it again after each wait.
    ///
    /// - Throws: An error of `next`, or `CancellationError` during a wait.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        var result = await next.result(of: request)
        while case .failure(let error as URLError) = result, Self.errorCodes.contains(error.code),
            try await waits(toRepeat: request, next)
        {
            guard let repeated = await next.again(request) else { break }
            result = repeated
        }
        return try result.get()
    }

    /// Waits until there is a network.
    ///
    /// - Returns: `false` if there was a network from the start, the request must not be sent
    ///   again, or the limit or the deadline leaves no time.
    private func waits(toRepeat request: Request, _ next: Next) async throws -> Bool {
        guard let host = request.url.flatMap(Origin.init)?.host, request.canSendBody,
            request.template?.httpBodyStream == nil, !isConnected(to: host)
        else { return false }
        guard
            request.method.isIdempotent || request.headers["Idempotency-Key"] != nil
                || next.hasSentNothing(ifFailedWith: Self.errorCodes)
        else {
            next.record(.noRetry, "no network, but \(request.method) is not idempotent, and was sent before")
            return false
        }
        let start = next.clock.now
        var pause = Duration.milliseconds(250)
        repeat {
            let waited = next.withValue(of: Self.self, Duration.zero) { $0 }
            guard waited + pause <= limit else {
                next.record(.noRetry, "no network within \(limit)")
                return false
            }
            guard pause < next.timeToDeadline(of: request) else {
                next.record(.noRetry, "no network, and the deadline leaves no time for a pause of \(pause)")
                return false
            }
            try await next.clock.sleep(for: pause)
            next.withValue(of: Self.self, Duration.zero) { $0 += pause }
            pause = min(pause * 2, .seconds(4))
        } while !isConnected(to: host)
        next.record(.wait, "for a network", from: start)
        return true
    }
}

extension ConnectivityWait: ConnectivityCheck {
    package func isConnected(to host: String) -> Bool {
        isConnected(host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host)
    }
}

extension Interceptor where Self == ConnectivityWait {
    /// Returns an interceptor that waits for a network; see ``ConnectivityWait``.
    ///
    /// - Parameters:
    ///   - limit: The maximum total duration of the waits of one exchange. Defaults to 60 seconds.
    ///   - isConnected: A closure that returns whether the device has a network for a host.
    ///     Defaults to `nil`: the routing table.
    public static func waitForConnectivity(
        within limit: Duration = .seconds(60), isConnected: (@Sendable (_ host: String) -> Bool)? = nil
    ) -> ConnectivityWait {
        ConnectivityWait(within: limit, isConnected: isConnected)
    }
}
