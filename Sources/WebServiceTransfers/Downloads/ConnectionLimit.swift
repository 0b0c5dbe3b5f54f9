import WebServiceCore

/// The number of concurrent requests that a server accepts, which a download determines by trial.
///
/// A rejected request reduces the limit. After a certain number of completed requests, one more
/// concurrent request is tried. Each rejected trial doubles the number of requests that must
/// complete before the next trial. A server that accepts `n` requests at a time therefore rejects
/// few requests: the first requests beyond `n`, and then at most one request for each doubling.
struct ConnectionLimit: Sendable {
    private(set) var value: Int
    private var maximum: Int
    /// The number of requests completed since the limit changed.
    private var completed = 0
    /// The number of requests that each connection must complete before the next trial.
    private var patience = 1
    /// Whether the last change was an increase that has not been confirmed.
    private var isTrial = false
    /// The instant before which no trial begins.
    private var earliest: UInt64 = 0

    init(_ maximum: Int) {
        self.maximum = maximum
        value = maximum
    }

    /// Records the completion of a request. After enough completions, increases the limit by one,
    /// up to the maximum.
    mutating func complete(_ now: UInt64) {
        completed += 1
        guard completed >= value * patience, now >= earliest else { return }
        if isTrial { patience = max(1, patience / 2) }
        isTrial = value < maximum
        if isTrial { value += 1 }
        completed = 0
    }

    /// Records that the server rejected a request.
    ///
    /// - Parameters:
    ///   - active: The number of other requests in progress.
    ///   - earliest: The instant before which no trial begins.
    /// - Returns: `true` if the rejected request was a trial, which means that the server still
    ///   accepts the other requests.
    mutating func reject(active: Int, until earliest: UInt64) -> Bool {
        defer { (isTrial, completed) = (false, 0) }
        if isTrial {
            value -= 1
            patience = min(patience * 2, 1 << 16)
        } else {
            value = max(1, min(value, active))
        }
        self.earliest = max(self.earliest, earliest)
        return isTrial
    }

    /// Reduces the maximum, because the server does not send pieces over additional connections.
    mutating func close(active: Int) {
        value = max(1, min(value, active))
        (maximum, isTrial) = (value, false)
    }
}
