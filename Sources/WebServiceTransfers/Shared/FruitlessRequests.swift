import WebServiceCore

/// A count of the consecutive requests of a transfer that together transferred few bytes.
///
/// Without this limit, a server that takes or sends one byte per request could cause as many
/// requests as the file has bytes.
struct FruitlessRequests: Sendable {
    /// The number of bytes after which the count begins again.
    static let minimumByteCount: Int64 = 64 << 10
    /// The number of requests with little progress after which the transfer fails or starts over.
    static let maximum = 8

    private(set) var count = 0
    /// The position of the transfer when the count began.
    private var position: Int64
    /// The instant at which the count began.
    private var start: UInt64

    init(position: Int64 = 0, now: UInt64) {
        self.position = position
        start = now
    }

    /// Adds a request that did not complete the file.
    ///
    /// - Parameters:
    ///   - position: The number of bytes at the destination. If a transfer starts over, only bytes
    ///     beyond the previous number count, unless `countsAgain` is `true`.
    ///   - isWhole: Whether a whole piece was transferred.
    ///   - countsAgain: Whether bytes that are transferred again count.
    ///   - now: The current instant.
    mutating func add(_ position: Int64, isWhole: Bool = false, countsAgain: Bool = false, now: UInt64) {
        if isWhole || position - self.position >= Self.minimumByteCount {
            (count, self.position, start) = (0, position, now)
        } else {
            count += 1
            if countsAgain { self.position = min(self.position, position) }
        }
    }

    /// The number of attempts that a `RetryPolicy` counts.
    var attempt: Int { max(1, count) }

    /// Returns the duration since the count began.
    func spent(_ now: UInt64) -> Duration { .nanoseconds(Int64(clamping: now - min(start, now))) }
}
