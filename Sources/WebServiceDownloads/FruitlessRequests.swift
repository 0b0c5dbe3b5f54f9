import WebServiceCore

/// A count of the consecutive requests of a download that together delivered few bytes.
///
/// Without this limit, a server that sends one byte per request could cause as many requests as the
/// file has bytes.
struct FruitlessRequests: Sendable {
    /// The number of bytes after which the count begins again.
    static let minimumByteCount: Int64 = 64 << 10
    /// The number of requests with short responses after which the whole file is requested.
    static let maximum = 8

    private(set) var count = 0
    /// The number of received bytes when the count began.
    private var received: Int64
    /// The instant at which the count began.
    private var start: UInt64

    init(received: Int64, now: UInt64) {
        self.received = received
        start = now
    }

    /// Adds a request that did not complete the file.
    ///
    /// - Parameters:
    ///   - received: The number of bytes that all requests have received. After a restart, only
    ///     bytes beyond the previous number count.
    ///   - now: The current instant.
    mutating func add(received: Int64, now: UInt64) {
        if received - self.received >= Self.minimumByteCount {
            (count, self.received, start) = (0, received, now)
        } else {
            count += 1
        }
    }

    /// The number of attempts for a `ContinuationPolicy`.
    var attempt: Int { max(1, count) }

    /// Returns the duration since the count began.
    func spent(_ now: UInt64) -> Duration { .nanoseconds(Int64(clamping: now - min(start, now))) }
}
