import Foundation
import WebServiceCore

extension WebSocketChannel {
    /// A ping whose caller waits for the pong.
    struct Ping {
        let number: UInt64
        /// The instant at which the ping was added to the output.
        let start: UInt64
        let pong: Once<Result<Duration, any Error>>

        /// Returns the payload of a ping: its number, with the most significant byte first.
        static func payload(of number: UInt64) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

        /// Returns the number in the payload of a pong; `nil` if the payload is not that of such a
        /// ping.
        static func number(of payload: Data) -> UInt64? {
            guard payload.count == MemoryLayout<UInt64>.size else { return nil }
            return payload.reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// Sends a ping, and returns the duration until its pong.
    ///
    /// Cancelling the Swift task ends only this call.
    package func ping(within limit: Duration) async throws -> Duration {
        try Task.checkNotCancelled()
        let pong = Once<Result<Duration, any Error>>()
        let start = clock.now
        let (number, starts) = try state.withLock { state in
            let number = state.lastPing + 1
            do { try state.machine.ping(Ping.payload(of: number)) } catch { throw WebSocketEnd.closed(state.end) }
            state.lastPing = number
            state.pings.append(Ping(number: number, start: start, pong: pong))
            return (number, state.startSending())
        }
        if starts { startSending() }
        defer { state.withLock { $0.pings.removeAll { $0.number == number } } }
        let message = "the peer did not respond to the ping within \(limit)"
        let late = URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: message])
        return try await withTaskCancellationHandler {
            try await clock.value(of: pong, orAfter: limit, .failure(late)).get()
        } onCancel: {
            pong.set(.failure(URLError(.cancelled)))
        }
    }

    /// Completes pings whose pong has arrived.
    func complete(_ answered: [Ping]) {
        let now = clock.now
        for ping in answered { ping.pong.set(.success(.nanoseconds(Int64(clamping: now - min(now, ping.start))))) }
    }

    // MARK: Automatic pings

    func schedulePing() {
        guard let interval = settings.pingInterval else { return }
        set(clock.schedule(after: interval) { [weak self] in self?.ping() })
    }

    /// Sends a ping, or ends a connection whose peer has not sent anything since the last ping.
    private func ping() {
        let (isDead, starts, continues) = state.withLock { state -> (Bool, Bool, Bool) in
            guard state.end == nil, !state.isClosing else { return (false, false, false) }
            // The buffer is full, and the bytes that wait for it may include the pong.
            if state.receiver != nil { return (false, false, true) }
            guard state.isAlive else { return (true, false, false) }
            state.isAlive = false
            // The peer may respond only to the latest ping, so the ping of a caller must remain the
            // latest.
            if state.pings.isEmpty { try? state.machine.ping() }  // fails only if the connection is closing
            return (false, state.startSending(), true)
        }
        if isDead {
            let message = "the peer did not respond to a ping within pingInterval"
            return connectionDidEnd(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: message]))
        }
        if starts { startSending() }
        if continues { schedulePing() }
    }
}
