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
/// network, the request is sent again as soon as there is a network. This applies to every method,
/// because no byte of the request was sent. Otherwise, and when ``limit`` has passed, the request
/// fails with the error of the transport.
///
/// By default, the device has a network if the routing table of the system contains a route to the
/// host or, for a host name, to a public address. Nothing is sent to determine this, so a route
/// does not imply that the host, the name server or the internet can be reached. Linux offers no
/// better source. `isConnected` can provide another source.
///
/// The routing table is read when a request fails, then after 0.25 seconds, and after pauses that
/// double up to 4 seconds. Waiting counts toward the `Request.Options.deadline`, stops
/// immediately when the task is cancelled, and is recorded in the task's `Timeline`. A body that
/// can be read only once is not sent again.
///
/// An `Outbox` of the service uses the same source: if a request has failed for lack of a network,
/// its entries are sent as soon as there is one.
public struct ConnectivityWait: Interceptor {
    /// The maximum total duration of the waits for one request.
    public let limit: Duration

    private let isConnected: @Sendable (String) -> Bool

    /// The errors of requests that were not sent.
    private static let errorCodes: Set<URLError.Code> = [
        .notConnectedToInternet, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost,
    ]

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - limit: The maximum total duration of the waits for one request. Defaults to 60 seconds.
    ///   - isConnected: Returns whether the device has a network for a host: a name, or an address
    ///     without brackets. Called in the background; it must not block. Defaults to `nil`: the
    ///     routing table.
    public init(within limit: Duration = .seconds(60), isConnected: (@Sendable (_ host: String) -> Bool)? = nil) {
        self.limit = limit
        self.isConnected = isConnected ?? NetworkRoute.exists
    }

    /// Sends the request, and sends it again after each wait.
    ///
    /// - Throws: An error of `next`, or `CancellationError` during a wait.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let clock = next.clock
        let end = clock.now.addingSaturated(limit)
        while true {
            do {
                return try await next(request)
            } catch let error as URLError where Self.errorCodes.contains(error.code) {
                guard let host = request.url.flatMap(Origin.init)?.host, request.canSendBody,
                    request.template?.httpBodyStream == nil,
                    try await waits(for: host, until: end, clock, next)
                else { throw error }
            }
        }
    }

    /// Waits until there is a network.
    ///
    /// - Returns: `false` if there was one from the start, or the limit has passed.
    private func waits(for host: String, until end: UInt64, _ clock: TaskClock, _ next: Next) async throws -> Bool {
        let start = clock.now
        var pause = Duration.milliseconds(250)
        guard !isConnected(to: host) else { return false }
        repeat {
            guard clock.now.addingSaturated(pause) <= end else {
                next.record(.noRetry, "no network within \(limit)")
                return false
            }
            try await clock.sleep(for: pause)
            pause = min(pause * 2, .seconds(4))
        } while !isConnected(to: host)
        next.record(.wait, "for a network", from: start)
        return true
    }
}

extension ConnectivityWait: ConnectivitySource {
    package func isConnected(to host: String) -> Bool {
        isConnected(host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host)
    }
}

extension Interceptor where Self == ConnectivityWait {
    /// Returns an interceptor that waits for a network; see ``ConnectivityWait``.
    ///
    /// - Parameters:
    ///   - limit: The maximum total duration of the waits for one request. Defaults to 60 seconds.
    ///   - isConnected: Returns whether the device has a network for a host. Defaults to `nil`: the
    ///     routing table.
    public static func waitForConnectivity(
        within limit: Duration = .seconds(60), isConnected: (@Sendable (_ host: String) -> Bool)? = nil
    ) -> ConnectivityWait {
        ConnectivityWait(within: limit, isConnected: isConnected)
    }
}
