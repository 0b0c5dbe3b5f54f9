import Foundation
import Synchronization
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A connection on which the program sends and receives bytes, shared by the loop and the callers
/// of ``CurlConnection``.
final class CurlChannel: Sendable {
    typealias Waiter = CheckedContinuation<Void, any Error>
    typealias Reader = CheckedContinuation<Data, any Error>

    private struct Outgoing {
        let bytes: Data
        let waiter: Waiter
    }

    private struct State {
        /// The error with which further calls fail; `nil` while the connection is open or being
        /// opened.
        var end: (any Error)?

        // Opening
        var opener: Waiter?
        /// The task that determines the route.
        var routing: Task<Void, Never>?
        var route = CurlRoute()
        var metrics = TransportMetrics(total: .zero)

        // Receiving
        var readers = Queue<Reader>()
        /// The bytes that no call has taken yet.
        var received: Data?
        /// Whether the loop has stopped receiving.
        var isPaused = false
        /// Whether the peer has sent its last byte.
        var isInputOver = false

        // Sending
        var outgoing = Queue<Outgoing>()
        /// The bytes that the loop is sending.
        var sending: Outgoing?
        /// The error with which sending failed.
        var sendingError: (any Error)?

        /// Whether the loop will call ``CurlChannel/proceed()``.
        var isScheduled = false

        /// Marks a call of ``CurlChannel/proceed()`` as scheduled.
        ///
        /// - Returns: Whether the caller must add a job to the loop.
        mutating func schedule() -> Bool {
            defer { isScheduled = true }
            return !isScheduled
        }

        /// Takes the received bytes, or adds a reader that waits for them.
        ///
        /// - Returns: The result, or `nil` if the reader waits; and whether the caller must add a
        ///   job to the loop.
        mutating func receive(_ reader: Reader, _ isInProcess: Bool) -> (Result<Data, any Error>?, Bool) {
            if let bytes = received.take() {
                guard isPaused, end == nil else { return (.success(bytes), false) }
                isPaused = false
                return (.success(bytes), schedule())
            }
            if let end { return (.failure(end), false) }
            if isInputOver { return (.success(Data()), false) }
            guard isInProcess else { return (.failure(CurlLoop.forkError(nil)), false) }
            readers.append(reader)
            return (nil, false)
        }

        mutating func takeSends() -> [Outgoing] {
            var sends = [sending.take()].compactMap(\.self)
            while let send = outgoing.popFirst() { sends.append(send) }
            return sends
        }
    }

    let request: EncodedRequest
    private let loop: CurlLoop
    /// A closure that is called with `true` when the channel begins to wait until the loop may
    /// connect, and with `false` when the loop connects.
    private let waitDidChange: @Sendable (Bool) -> Void
    private let shared = Lock(State())

    init(_ request: EncodedRequest, loop: CurlLoop, waitDidChange: @escaping @Sendable (Bool) -> Void) {
        self.request = request
        self.loop = loop
        self.waitDidChange = waitDidChange
    }

    // MARK: For callers

    /// Opens the connection, and returns when it is open.
    func open(_ configuration: CurlSession.Configuration) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (opener: Waiter) in
                let end = shared.withLock { state in
                    if state.end == nil { state.opener = opener }
                    return state.end
                }
                if let end { return opener.resume(throwing: end) }
                if configuration.hasRoutes { findRoute(configuration) } else { submit() }
            }
        } onCancel: {
            close()
        }
    }

    private func submit() {
        waitDidChange(true)
        do { try loop.submit(self) } catch { end(error) }
    }

    /// Calls the closures of the configuration, then submits the channel.
    private func findRoute(_ configuration: CurlSession.Configuration) {
        let routing = Task(executorPreference: loop.executor) { [self] in
            do {
                let route = try await configuration.route(for: request)
                shared.withLock { $0.route = route }
                submit()
            } catch {
                end(error)
            }
        }
        let isNeeded = shared.withLock { state in
            if state.end == nil { state.routing = routing }
            return state.end == nil
        }
        if !isNeeded { routing.cancel() }
    }

    var metrics: TransportMetrics { shared.withLock { $0.metrics } }

    var executor: (any TaskExecutor)? { loop.channelExecutor }

    func receive() async throws -> Data {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (reader: Reader) in
                let isInProcess = loop.isInProcess
                let (result, needsJob) = shared.withLock { $0.receive(reader, isInProcess) }
                if needsJob { loop.proceed(self) }
                if let result { reader.resume(with: result) }
            }
        } onCancel: {
            close()
        }
    }

    func send(_ bytes: Data) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: Waiter) in
                let isInProcess = loop.isInProcess
                let (result, needsJob) = shared.withLock { state -> (Result<Void, any Error>?, Bool) in
                    if let error = state.end ?? state.sendingError { return (.failure(error), false) }
                    guard isInProcess else { return (.failure(CurlLoop.forkError(nil)), false) }
                    if bytes.isEmpty { return (.success(()), false) }
                    state.outgoing.append(Outgoing(bytes: bytes, waiter: waiter))
                    return (nil, state.schedule())
                }
                if needsJob { loop.proceed(self) }
                if let result { waiter.resume(with: result) }
            }
        } onCancel: {
            close()
        }
    }

    /// Ends the connection, and discards the bytes that no call has taken.
    func close() {
        if end(URLError(.cancelled)) { loop.close(self) }
        shared.withLock { $0.received = nil }
    }

    // MARK: For the loop

    /// Ends all calls with an error. Bytes that have arrived can still be received.
    ///
    /// - Returns: Whether the channel had not ended before.
    @discardableResult
    func end(_ error: any Error) -> Bool {
        shared.withLock { state -> (() -> Void)? in
            guard state.end == nil else { return nil }
            state.end = error
            let (opener, routing, sends) = (state.opener.take(), state.routing.take(), state.takeSends())
            var readers: [Reader] = []
            while let reader = state.readers.popFirst() { readers.append(reader) }
            return {
                routing?.cancel()
                opener?.resume(throwing: error)
                for reader in readers { reader.resume(throwing: error) }
                for send in sends { send.waiter.resume(throwing: error) }
            }
        }.map { $0() } != nil
    }

    /// Whether the channel has ended.
    var hasEnded: Bool { shared.withLock { $0.end != nil } }

    /// Returns the route to connect over; `nil` if the channel has ended.
    ///
    /// The loop calls this method when it begins to connect.
    func begin() -> CurlRoute? {
        waitDidChange(false)
        return shared.withLock { state in
            state.routing = nil
            return state.end == nil ? state.route : nil
        }
    }

    func didOpen(_ metrics: TransportMetrics) {
        let opener = shared.withLock { state in
            state.metrics = metrics
            return state.opener.take()
        }
        opener?.resume()
    }

    /// Begins a scheduled job.
    ///
    /// - Returns: Whether the loop may receive bytes.
    func proceed() -> Bool {
        shared.withLock { state in
            state.isScheduled = false
            return !state.isPaused
        }
    }

    /// Delivers bytes to the first waiting call, or stores them.
    ///
    /// - Returns: Whether the loop may receive more.
    func didReceive(_ bytes: Data) -> Bool {
        let (reader, mayContinue) = shared.withLock { state in
            state.metrics.bytesReceived += Int64(bytes.count)
            guard let reader = state.readers.popFirst() else {
                if state.end == nil { (state.received, state.isPaused) = (bytes, true) }
                return (nil as Reader?, false)
            }
            return (reader, true)
        }
        reader?.resume(returning: bytes)
        return mayContinue
    }

    /// Schedules further work of the loop.
    func schedule() {
        if shared.withLock({ $0.schedule() }) { loop.proceed(self) }
    }

    /// Completes the waiting calls to receive, because the peer sends no more bytes.
    func inputDidEnd() {
        let readers = shared.withLock { state in
            state.isInputOver = true
            var readers: [Reader] = []
            while let reader = state.readers.popFirst() { readers.append(reader) }
            return readers
        }
        for reader in readers { reader.resume(returning: Data()) }
    }

    /// Returns the bytes to send next.
    func nextOutgoing() -> Data? {
        shared.withLock { state in
            if state.sending == nil { state.sending = state.outgoing.popFirst() }
            return state.sending?.bytes
        }
    }

    /// Completes the call whose bytes ``nextOutgoing()`` has returned.
    func didSend() {
        let sent = shared.withLock { state in
            state.metrics.bytesSent += Int64(state.sending?.bytes.count ?? 0)
            return state.sending.take()
        }
        sent?.waiter.resume()
    }

    /// Fails all current and later calls that send. Bytes can still be received.
    func sendingDidFail(_ error: any Error) {
        let sends = shared.withLock { state in
            state.sendingError = error
            return state.takeSends()
        }
        for send in sends { send.waiter.resume(throwing: error) }
    }
}
