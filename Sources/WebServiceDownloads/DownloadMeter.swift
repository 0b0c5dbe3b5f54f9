import WebServiceCore

/// Counts the bytes of a download, reports the progress and limits the rate.
final class DownloadMeter: Sendable {
    private struct State {
        var count: Int64 = 0
        var total: Int64?
        var rate = TransferRate()
        var limit: RateLimit?
    }

    private let state: Mutex<State>
    private let work: TaskWork

    init(_ work: TaskWork, bytesPerSecond: Int?) {
        self.work = work
        let limit = bytesPerSecond.map { RateLimit(bytesPerSecond: $0, now: work.clock.now) }
        state = Mutex(State(limit: limit))
    }

    /// The number of existing bytes of the file.
    var count: Int64 { state.withLock { $0.count } }

    /// Sets the number of existing bytes and the length of the complete file.
    func begin(_ count: Int64, of total: Int64?) {
        state.withLock { state in
            if state.count != count { state.rate.reset() }
            state.count = count
            state.total = total
        }
        report(0)
    }

    /// Adds a number of received bytes, and waits if the rate limit requires it.
    ///
    /// - Throws: `CancellationError`.
    func add(_ count: Int) async throws {
        guard let delay = report(count), delay > .zero else { return }
        try await work.clock.sleep(for: delay)
    }

    /// Adds received bytes, and reports the progress.
    ///
    /// - Returns: The delay before the next bytes; `nil` if there is no limit.
    @discardableResult
    private func report(_ count: Int) -> Duration? {
        let now = work.clock.now
        let (progress, delay) = state.withLock { state in
            state.count += Int64(count)
            let rate = state.rate.add(state.count, at: now)
            let progress = TransferProgress(
                bytesReceived: state.count, bytesToReceive: state.total, bytesPerSecond: rate)
            return (progress, state.limit?.take(count, at: now))
        }
        work.report(progress)
        return delay
    }
}
