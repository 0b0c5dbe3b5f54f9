import Foundation
import WebServiceCore

/// The pause of the whole outbox after failures that do not concern one entry alone.
///
/// A server that fails every request would otherwise receive 10,000 entries about 160,000 times per
/// hour: each after pauses of 225 seconds on average. During an outage, nothing is sent for a
/// pause, and then one request at a time. A response that is not a temporary failure ends the
/// outage, and any temporary failure begins the next pause. That makes about 16 requests per hour.
struct OutboxOutage {
    private enum Phase {
        case none
        case pausing
        /// At most one request is in flight, whose result decides.
        case probing
    }

    /// The number of entries that must fail, without any other response in between, before the
    /// failures are attributed to the server. If half of the entries fail for reasons of their own,
    /// ten in succession do so once in 1,000 requests.
    private static let maximumFailures = 10

    /// The maximum pause without a connection. A request that finds no connection is no load for
    /// the server, and a user who has a connection again expects the requests to be sent soon.
    private static let maximumUnconnectedPause = Duration.seconds(30)

    private var phase = Phase.none
    /// The entries that have failed since the last other response; at most ``maximumFailures``.
    private var failures: Set<UUID> = []
    /// The number of consecutive pauses.
    private var pauses = 0
    /// The instant at which the current pause ends.
    private(set) var end: UInt64 = 0
    /// Identifies the current pause.
    private(set) var turn = 0
    /// The host for which the device had no network when the current pause began.
    private(set) var host: String?

    init(turn: Int = 0) { self.turn = turn }

    /// Returns the maximum number of requests in flight.
    ///
    /// - Parameter limit: The maximum without an outage.
    func limit(_ limit: Int) -> Int {
        switch phase {
        case .none: limit
        case .pausing: 0
        case .probing: 1
        }
    }

    /// Adds a temporary failure of an entry.
    ///
    /// - Parameters:
    ///   - host: The host, if the device has no network for it.
    ///   - now: The current instant.
    ///   - pause: Returns the pause after a number of consecutive pauses.
    /// - Returns: The duration of the pause that begins; `nil` if none begins.
    mutating func fail(
        _ id: UUID, _ kind: Outbox.Failure.Kind, host: String?, now: UInt64, pause: (_ count: Int) -> Duration
    ) -> Duration? {
        // The failures of requests that were sent before the current pause do not prolong it.
        guard phase != .pausing else { return nil }
        if failures.count < Self.maximumFailures { failures.insert(id) }
        guard phase == .probing || kind.isGeneral || failures.count == Self.maximumFailures else { return nil }
        phase = .pausing
        pauses += 1
        turn += 1
        self.host = host
        let duration = kind.isUnconnected ? min(pause(pauses), Self.maximumUnconnectedPause) : pause(pauses)
        end = now.addingSaturated(duration)
        return duration
    }

    /// Adds a response that is not a temporary failure. It does not end a pause, because its
    /// request was sent before.
    mutating func succeed() {
        guard phase != .pausing else { return }
        self = OutboxOutage(turn: turn)
    }

    /// Ends the pause: the next request is sent, one at a time.
    ///
    /// - Parameter turn: The pause. Defaults to `nil`: the current one.
    mutating func endPause(_ turn: Int? = nil) {
        guard phase == .pausing, turn == nil || turn == self.turn else { return }
        phase = .probing
        host = nil
    }
}

extension Outbox.Failure.Kind {
    /// A Boolean value that indicates whether other requests would fail as well: there is no
    /// connection, or the server has sent a status that concerns all requests (RFC 6585, section 4;
    /// RFC 9110, section 15.6.4).
    var isGeneral: Bool { isUnconnected || self == .status(429) || self == .status(503) }

    /// A Boolean value that indicates whether the request was not sent for lack of a connection.
    var isUnconnected: Bool {
        guard case .transport(let code) = self else { return false }
        return [.notConnectedToInternet, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost].contains(code)
    }
}

extension WebService {
    /// Returns whether the device has a network for a host; `nil` if no interceptor determines it.
    func isConnected(to host: String) -> Bool? {
        interceptors.lazy.compactMap { $0 as? any ConnectivitySource }.first?.isConnected(to: host)
    }
}
