import WebServiceCore

/// Reports the progress of an upload.
final class UploadMeter: Sendable {
    private struct State {
        var count: Int64 = 0
        var rate = TransferRate()
    }

    private let state = Mutex(State())
    private let work: TaskWork
    private let length: Int64

    init(_ work: TaskWork, length: Int64) {
        (self.work, self.length) = (work, length)
    }

    /// Sets the number of bytes that the server has.
    func begin(_ count: Int64) { report(count) }

    /// Returns a closure that receives the progress of a request whose body begins at an offset.
    func receiver(from offset: Int64) -> @Sendable (TransferProgress) -> Void {
        { self.report(offset + $0.bytesSent) }
    }

    private func report(_ count: Int64) {
        let now = work.clock.now
        let progress = state.withLock { state -> TransferProgress in
            if count < state.count { state.rate.reset() }
            state.count = count
            return TransferProgress(
                bytesSent: count, bytesToSend: length, bytesPerSecond: state.rate.add(count, at: now))
        }
        work.report(progress)
    }
}

/// The number of consecutive requests of an upload that together made little progress.
struct UploadStalls: Sendable {
    /// The number of bytes after which the count begins again.
    static let minimumByteCount: Int64 = 64 << 10
    /// The number of requests with little progress after which the upload fails.
    static let maximum = 8

    private(set) var count = 0
    /// The offset when the count began.
    private var offset: Int64 = 0
    /// The instant at which the count began.
    private var start: UInt64

    init(now: UInt64) { start = now }

    /// Adds a request that did not complete the upload.
    ///
    /// - Parameters:
    ///   - offset: The largest offset that the server has returned.
    ///   - isWhole: Whether the server accepted a whole piece.
    mutating func add(_ offset: Int64, isWhole: Bool, now: UInt64) {
        if isWhole || offset - self.offset >= Self.minimumByteCount {
            (count, self.offset, start) = (0, offset, now)
        } else {
            (count, self.offset) = (count + 1, min(self.offset, offset))
        }
    }

    /// The number of attempts that a `RetryPolicy` counts.
    var attempt: Int { max(1, count) }

    /// Returns the duration since the count began.
    func spent(_ now: UInt64) -> Duration { .nanoseconds(Int64(clamping: now - min(start, now))) }
}
