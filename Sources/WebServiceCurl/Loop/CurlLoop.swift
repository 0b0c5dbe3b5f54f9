// The header of libcurl declares the constants of sockets as well.
import CCurl

import Dispatch
import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// One event loop of a ``CurlSession``, as used by other threads.
///
/// Other threads add work to its inbox and wake it once for all work added before the loop reads
/// the inbox.
final class CurlLoop: Sendable {
    /// A request in flight.
    struct Submission: Sendable {
        let transfer: CurlTransfer
        let request: EncodedRequest
        /// Retained until the transfer completes.
        let session: CurlSession
        let receiver: any BodyReceiver
    }

    /// The work added since the loop last read the inbox.
    struct Work: Sendable {
        var submissions: [CurlTransfer] = []
        var cancellations: [CurlTransfer] = []
        /// The paused transfers to continue.
        var continuations: [CurlTransfer] = []
        /// The transfers that have waited for bytes of the request body.
        var uploads: [CurlTransfer] = []
        var closing: CurlSession.Closing?
    }

    private struct Inbox {
        var work = Work()
        /// A Boolean value that indicates whether the loop will read the inbox without a wake-up.
        var isAwake = true
        var closing: CurlSession.Closing?
        /// The first instant at which requests were cancelled.
        var cancellation: UInt64?
        var hasEnded = false
        /// Present while the loop is awake, if a test clock waits for it.
        var token: WorkCount.Token?

        var hasWork: Bool {
            !work.submissions.isEmpty || !work.cancellations.isEmpty || !work.continuations.isEmpty
                || !work.uploads.isEmpty || work.closing != nil
        }

        /// - Returns: Whether the caller must wake the loop.
        mutating func wake(_ clock: TaskClock) -> Bool {
            defer { isAwake = true }
            if token == nil { token = clock.beginWork() }
            return !isAwake
        }
    }

    private let inbox = WebServiceCore.Mutex(Inbox())
    private let wakeUp: WakeUp
    private let thread = WebServiceCore.Mutex<(thread: JoinableThread?, isClaimed: Bool)>((nil, false))
    private let running = DispatchGroup()
    private let forkCount = Fork.count

    private let clock: TaskClock

    init(_ configuration: CurlSession.Configuration, _ clock: TaskClock) throws {
        self.clock = clock
        wakeUp = try WakeUp(orThrow: .curl)
        let failure = StartFailure()
        let hasStarted = DispatchSemaphore(value: 0)
        running.enter()
        do {
            let started = try JoinableThread(orThrow: .curl) { [self] in
                defer { running.leave() }
                do {
                    let engine = try CurlEngine(configuration, clock, wakeUp: wakeUp.reader)
                    hasStarted.signal()
                    engine.run(for: self)
                } catch {
                    failure.set(error)
                    hasStarted.signal()
                }
            }
            thread.withLock { $0.thread = started }
        } catch {
            running.leave()
            throw error
        }
        hasStarted.wait()
        if let error = failure.error {
            join()
            throw error
        }
    }

    // MARK: For other threads

    /// Adds a request to the inbox.
    ///
    /// - Throws: `WebServiceError.Code.sessionClosed`.
    func submit(_ transfer: CurlTransfer, _ request: Request?) throws {
        guard forkCount == Fork.count else {
            throw WebServiceError(
                .sessionClosed, "the session was created before this process was forked; create a new session",
                request: request)
        }
        let (isOpen, needsWaking, cancellation) = inbox.withLock { inbox in
            guard inbox.closing == nil else { return (false, false, inbox.cancellation) }
            inbox.work.submissions.append(transfer)
            return (true, inbox.wake(clock), nil)
        }
        guard isOpen else {
            throw WebServiceError(
                .sessionClosed, "the session is closed", request: request,
                underlying: cancellation.map(SessionCancellation.init))
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Requests the cancellation of a submitted transfer.
    func cancel(_ transfer: CurlTransfer) {
        add { $0.cancellations.append(transfer) }
    }

    /// Requests the continuation of a paused transfer.
    func receiveMore(_ transfer: CurlTransfer) {
        add { $0.continuations.append(transfer) }
    }

    /// Requests the continuation of a transfer that waits for bytes of the request body.
    func sendMore(_ transfer: CurlTransfer) {
        add { $0.uploads.append(transfer) }
    }

    private func add(_ change: (inout Work) -> Void) {
        guard forkCount == Fork.count else { return }
        let needsWaking = inbox.withLock { inbox in
            guard !inbox.hasEnded else { return false }
            change(&inbox.work)
            return inbox.wake(clock)
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Stops accepting requests and requests the end of the loop.
    func end(_ closing: CurlSession.Closing) {
        guard forkCount == Fork.count else { return }
        let now = TaskClock.system.now  // see `SessionCancellation`
        let needsWaking = inbox.withLock { inbox in
            if closing == .cancelling, inbox.cancellation == nil { inbox.cancellation = now }
            guard !inbox.hasEnded, inbox.closing == nil || closing == .cancelling else { return false }
            inbox.closing = closing
            inbox.work.closing = closing
            return inbox.wake(clock)
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Waits until the thread has ended.
    ///
    /// Returns immediately on the loop's own thread, and in a forked process, where the thread does
    /// not exist.
    func join() {
        guard forkCount == Fork.count else { return }
        let (thread, isMine) = thread.withLock { state in
            defer { state.isClaimed = true }
            return (state.thread, !state.isClaimed)
        }
        guard let thread else { return }
        if thread.isCurrent {
            if isMine { thread.detach() }
        } else {
            running.wait()
            if isMine { thread.join() }
        }
    }

    // MARK: For the loop's thread

    /// Removes and returns the work in the inbox.
    func takeWork() -> Work {
        let work = inbox.withLock { inbox in
            _ = inbox.wake(clock)
            defer { inbox.work = Work() }
            return inbox.work
        }
        return work
    }

    /// Returns whether the loop may sleep. If `true`, the next thread that adds work wakes it.
    func mayRest() -> Bool {
        let (mayRest, token) = inbox.withLock { inbox in
            inbox.isAwake = inbox.hasWork
            return (!inbox.isAwake, inbox.isAwake ? nil : inbox.token.take())
        }
        withExtendedLifetime(token) {}  // released outside the lock
        return mayRest
    }

    /// Clears the wake-up signals.
    func clearSignals() {
        wakeUp.clear()
    }

    /// Marks the loop as ended.
    ///
    /// - Returns: The work that arrived too late.
    func hasEnded() -> Work {
        let (work, token) = inbox.withLock { inbox in
            defer { inbox.work = Work() }
            inbox.hasEnded = true
            return (inbox.work, inbox.token.take())
        }
        withExtendedLifetime(token) {}  // released outside the lock
        return work
    }
}

extension CurlLoop: AlarmTarget {
    /// Wakes the loop at an instant of a clock that is not the system clock.
    func ring() {
        add { _ in }
    }
}

/// The error that prevented a loop from starting.
private final class StartFailure: Sendable {
    private let state = WebServiceCore.Mutex<(any Error)?>(nil)

    var error: (any Error)? { state.withLock { $0 } }

    func set(_ error: any Error) {
        state.withLock { $0 = error }
    }
}
