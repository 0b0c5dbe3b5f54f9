import Foundation
import WebServiceCore
import WebServiceFields

/// The remaining requests of one quota policy of a server, as a response states them
/// (draft-ietf-httpapi-ratelimit-headers-10).
struct ServiceLimit: Hashable {
    /// A policy, and the part of the clients or resources to which its quota applies.
    struct Policy: Hashable {
        var name: String
        var partition: Data?
    }

    var policy: Policy
    /// The number of requests that remain.
    var remaining: Int
    /// The duration until the server permits more requests.
    var reset: Duration

    /// Returns the limits in the fields of a response.
    ///
    /// A malformed field is ignored, and so are members without a valid number of requests or
    /// seconds, and policies whose quota does not count requests.
    static func limits(in headers: Headers) -> [ServiceLimit] {
        let others = (headers.structuredList("RateLimit-Policy") ?? []).compactMap(\.item).filter { policy in
            policy.parameters["qu"].map { $0 != .string("requests") } ?? false
        }
        let otherNames = Set(others.map(\.value))
        return (headers.structuredList("RateLimit") ?? []).compactMap { member in
            guard let item = member.item, let name = item.value.string, !otherNames.contains(item.value),
                let remaining = item.parameters["r"]?.integer, remaining >= 0,
                let seconds = item.parameters["t"]?.integer, seconds >= 0
            else { return nil }
            let partition = item.parameters["pk"]
            guard partition == nil || partition?.byteSequence != nil else { return nil }
            return ServiceLimit(
                policy: Policy(name: name, partition: partition?.byteSequence),
                remaining: Int(clamping: remaining), reset: .seconds(seconds))
        }
    }
}

/// The limits that the server has stated for the requests with one key.
///
/// The responses of a window arrive in any order, so the lowest number of remaining requests is the
/// newest. The server may not have counted requests that are in flight, or that ended without
/// stating the limit. After the end of a window, one request per second is sent until a response
/// states how many the new window permits.
struct ServerLimits: Sendable {
    private struct Window: Sendable {
        var remaining: Int
        /// The instant at which the server permits more requests.
        var end: UInt64
        /// The number of requests that ended without stating the limit.
        var unknown = 0
    }

    /// The maximum number of policies. A further policy replaces the one whose window ends first.
    static let maximumCount = 16

    private let maximumPause: Duration
    private var windows: [ServiceLimit.Policy: Window] = [:]
    private var inFlight = 0
    private var lastSent: UInt64 = 0
    /// The duration that is added to the durations of a server that rounds them down.
    private var slack = Duration.zero
    /// Set when a response arrives, for the first waiting request.
    private var change = Once<Void>()

    init(maximumPause: Duration) { self.maximumPause = maximumPause }

    /// Returns whether the state may be removed.
    func isIdle(at now: UInt64) -> Bool { inFlight == 0 && windows.values.allSatisfy { isForgotten($0, at: now) } }

    private func isForgotten(_ window: Window, at now: UInt64) -> Bool {
        window.end.addingSaturated(maximumPause) < now
    }

    /// Returns the maximum duration until a request may be sent; `nil` if it may be sent
    /// immediately.
    func delay(at now: UInt64) -> Duration? {
        let instants = windows.values.compactMap { window -> UInt64? in
            if window.end > now {
                return window.remaining - window.unknown - inFlight < 1 ? window.end : nil
            }
            guard !isForgotten(window, at: now), lastSent >= window.end else { return nil }
            let next = lastSent.addingSaturated(.seconds(1))
            return next > now ? next : nil
        }
        return instants.max().map { .nanoseconds(Int64(clamping: $0 - now)) }
    }

    /// Whether the response to another request may arrive.
    var hasRequestsInFlight: Bool { inFlight > 0 }

    /// Returns a value that is set when a response arrives.
    mutating func nextChange() -> Once<Void> {
        change = Once()
        return change
    }

    /// Counts a request that is sent.
    mutating func send(at now: UInt64) {
        inFlight += 1
        lastSent = now
    }

    /// Counts a response, or the end of a request without one.
    ///
    /// - Parameters:
    ///   - limits: The limits in the response; `nil` for a response that the server did not send.
    ///   - sent: The instant at which the request was sent.
    ///   - status: The status of the response; `nil` if there is none.
    ///   - pause: A duration after which the server permits the next request, instead of the
    ///     duration in the limits.
    /// - Returns: The object that wakes the first waiting request.
    mutating func receive(
        _ limits: [ServiceLimit]?, sent: UInt64, status: Int?, pause: Duration?, at now: UInt64
    ) -> Once<Void> {
        inFlight -= 1
        guard let limits else { return change }
        for limit in limits {
            // A server that rounds the durations down refuses a request after the end of the
            // window.
            if status == 429, pause == nil, limit.remaining == 0, limit.reset <= .seconds(1),
                let window = windows[limit.policy], sent >= window.end
            {
                slack = .seconds(1)
            }
            update(limit.policy, limit.remaining, pause ?? limit.reset, sent: sent, at: now)
        }
        let stated = Set(limits.map(\.policy))
        // An overloaded server may omit a limit that it otherwise states.
        let isConclusive = status.map { $0 < 500 && $0 != 429 } ?? false
        for (policy, window) in windows where !stated.contains(policy) {
            if window.end > now {
                windows[policy]?.unknown += 1
            } else if isConclusive, sent >= window.end {
                windows[policy] = nil
            }
        }
        return change
    }

    /// The number of stored policies.
    var policyCount: Int { windows.count }

    private mutating func update(
        _ policy: ServiceLimit.Policy, _ remaining: Int, _ reset: Duration, sent: UInt64, at now: UInt64
    ) {
        guard reset > .zero || remaining == 0 else {
            // More requests are permitted now.
            if let window = windows[policy], window.end <= now { windows[policy] = nil }
            return
        }
        let reset = min(max(reset, .seconds(1)), maximumPause)
        let end = now.addingSaturated(min(reset + slack, maximumPause))
        guard let window = windows[policy],
            sent.addingSaturated(reset) < window.end.addingSaturated(.seconds(1))
        else {
            windows[policy] = Window(remaining: remaining, end: end)
            guard windows.count > Self.maximumCount else { return }
            if let first = windows.filter({ $0.key != policy }).min(by: { $0.value.end < $1.value.end }) {
                windows[first.key] = nil
            }
            return
        }
        guard window.end > now else { return }  // the window has ended; the response belongs to it
        windows[policy]?.end = min(window.end, end)
        if remaining <= window.remaining { windows[policy] = Window(remaining: remaining, end: min(window.end, end)) }
    }
}
