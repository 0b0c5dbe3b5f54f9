import WebServiceCore

/// An object that counts the bytes of a transfer, reports the progress, and limits the rate of a
/// download.
final class TransferMeter: Sendable {
    enum Direction { case download, upload }

    private struct State {
        var count: Int64 = 0
        var total: Int64?
        var rate = TransferRate()
        var limit: RateLimit?
    }

    private let state: Mutex<State>
    private let work: TaskWork
    private let direction: Direction

    /// - Parameters:
    ///   - total: The length of the complete file; `nil` if it is unknown.
    ///   - bytesPerSecond: The maximum rate; `nil` for no limit.
    init(_ work: TaskWork, _ direction: Direction, of total: Int64? = nil, bytesPerSecond: Int? = nil) {
        (self.work, self.direction) = (work, direction)
        let limit = bytesPerSecond.map { RateLimit(bytesPerSecond: $0, now: work.clock.now) }
        state = Mutex(State(total: total, limit: limit))
    }

    /// The number of bytes that are at the destination.
    var count: Int64 { state.withLock { $0.count } }

    /// Sets the number of bytes that are at the destination, and the length of the complete file.
    func begin(_ count: Int64, of total: Int64?) {
        report { state in
            if state.count != count { state.rate.reset() }
            (state.count, state.total) = (count, total)
        }
    }

    /// Sets the number of bytes that are at the destination. A greater number counts as progress.
    func begin(_ count: Int64) {
        report { state in
            if count < state.count { state.rate.reset() }
            state.count = count
        }
    }

    /// Adds a number of received bytes, and waits if the rate limit requires it.
    ///
    /// - Throws: `CancellationError`.
    func add(_ count: Int) async throws {
        guard let delay = report(count, { $0.count += Int64(count) }), delay > .zero else { return }
        try await work.clock.sleep(for: delay)
    }

    /// Returns a closure that receives the progress of a request whose body begins at an offset.
    func receiver(from offset: Int64) -> @Sendable (TransferProgress) -> Void {
        { self.begin(offset + $0.bytesSent) }
    }

    /// Applies a change to the state, and reports the progress.
    ///
    /// - Returns: The delay before the next bytes; `nil` if there is no limit.
    @discardableResult
    private func report(_ count: Int = 0, _ change: (inout State) -> Void) -> Duration? {
        let now = work.clock.now
        let (progress, delay) = state.withLock { state in
            change(&state)
            let rate = state.rate.add(state.count, at: now)
            let progress =
                switch direction {
                case .download:
                    TransferProgress(bytesReceived: state.count, bytesToReceive: state.total, bytesPerSecond: rate)
                case .upload:
                    TransferProgress(bytesSent: state.count, bytesToSend: state.total, bytesPerSecond: rate)
                }
            return (progress, state.limit?.take(count, at: now))
        }
        work.report(progress)
        return delay
    }
}
