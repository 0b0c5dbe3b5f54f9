import Foundation
import WebServiceCore

/// The pause of the whole outbox after failures that do not concern only one entry.
///
/// Without such pauses, a server that fails every request would receive about 160,000 requests per
/// hour from an outbox with 10,000 entries, because each entry is sent again after 225 seconds on
/// average. During an outage, nothing is sent for a pause, and then one request at a time. A
/// response that is not a temporary failure ends the outage, and another failure of the same kind
/// begins the next pause. This results in about 16 requests per hour.
struct OutboxOutage {
    private enum Phase {
        case none
        case pausing
        /// One request at a time is sent, and its result decides whether the outage ends. Requests
        /// that were sent before the pause may still be in flight.
        case probing
    }

    /// The number of entries that must fail, without any other response in between, before the
    /// failures are attributed to the server. If half of all requests fail independently of each
    /// other, 10 requests in succession fail about once in 1,000 requests.
    private static let maximumFailures = 10

    /// The maximum pause if there is no connection. A request that finds no connection puts no load
    /// on the server, and a user whose device has a connection again expects the requests to be
    /// sent soon.
    private static let maximumUnconnectedPause = Duration.seconds(30)

    private var phase = Phase.none
    /// The entry whose request decides whether the outage ends.
    private var probe: UUID?
    /// The entries that have failed since the last response of any other kind; at most
    /// ``maximumFailures``.
    private var failures: Set<UUID> = []
    /// The number of consecutive pauses.
    private var pauses = 0
    /// The instant at which the current pause ends.
    private(set) var end: UInt64 = 0
    /// The number of the current pause, which identifies it.
    private(set) var turn = 0
    /// The host for which the device had no network when the current pause began.
    private(set) var host: String?

    init(turn: Int = 0) { self.turn = turn }

    /// Whether only one pause of the outage has begun.
    var isFirstPause: Bool { pauses == 1 }

    /// Returns whether a request may be sent.
    ///
    /// - Parameters:
    ///   - inFlight: The number of requests in flight.
    ///   - limit: The maximum number of requests in flight if there is no outage.
    func permits(inFlight: Int, limit: Int) -> Bool {
        switch phase {
        case .none: inFlight < limit
        case .pausing: false
        case .probing: probe == nil
        }
    }

    /// Records that a request is sent.
    mutating func begin(_ id: UUID) {
        if phase == .probing { probe = id }
    }

    /// Records that a request has ended, with or without a result.
    mutating func end(_ id: UUID) {
        if probe == id { probe = nil }
    }

    /// Records a temporary failure of an entry.
    ///
    /// - Parameters:
    ///   - host: The host if the device has no network for it; otherwise `nil`.
    ///   - now: The current instant.
    ///   - pause: Returns the duration of a pause. `count` is the number of the pause among the
    ///     consecutive pauses, starting at 1.
    /// - Returns: The duration of the pause that begins, or `nil` if no pause begins.
    mutating func fail(
        _ id: UUID, _ kind: Outbox.Failure.Kind, host: String?, now: UInt64, pause: (_ count: Int) -> Duration
    ) -> Duration? {
        // Failures of requests that were sent before the pause do not prolong the outage.
        guard decides(id) else { return nil }
        if failures.count < Self.maximumFailures { failures.insert(id) }
        guard kind.isGeneral || failures.count == Self.maximumFailures else { return nil }
        (phase, probe) = (.pausing, nil)
        pauses += 1
        turn += 1
        self.host = host
        let duration = kind.isUnconnected ? min(pause(pauses), Self.maximumUnconnectedPause) : pause(pauses)
        end = now.addingSaturated(duration)
        return duration
    }

    /// Records a response to the request of an entry that is not a temporary failure.
    mutating func succeed(_ id: UUID) {
        if decides(id) { self = OutboxOutage(turn: turn) }
    }

    /// Returns whether the result of a request affects the outage. It does not if the request was
    /// sent before the pause began.
    private func decides(_ id: UUID) -> Bool {
        switch phase {
        case .none: true
        case .pausing: false
        case .probing: probe == id
        }
    }

    /// Ends the pause. One request at a time is then sent.
    ///
    /// - Parameter turn: The number of the pause to end. If it is no longer the current pause, the
    ///   call has no effect. Defaults to `nil`, which means the current pause.
    mutating func endPause(_ turn: Int? = nil) {
        guard phase == .pausing, turn == nil || turn == self.turn else { return }
        phase = .probing
        host = nil
    }
}

extension Outbox.Failure.Kind {
    /// Whether other requests would fail as well, because there is no connection or because the
    /// server has sent a status that concerns all requests (RFC 6585, section 4; RFC 9110, section
    /// 15.6.4).
    var isGeneral: Bool { isUnconnected || self == .status(429) || self == .status(503) }

    /// Whether the request was not sent because there was no connection.
    var isUnconnected: Bool {
        guard case .transport(let code) = self else { return false }
        return [.notConnectedToInternet, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost].contains(code)
    }
}

extension WebService {
    /// Returns whether the device has a network for a host, or `nil` if no interceptor can
    /// determine this.
    func isConnected(to host: String) -> Bool? {
        interceptors.lazy.compactMap { $0 as? any ConnectivityCheck }.first?.isConnected(to: host)
    }
}
