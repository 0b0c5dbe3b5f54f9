import Dispatch
import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// One event loop of a ``CurlSession``, seen from other threads: they leave work in its inbox and wake it up, once for as much as comes before it looks.
final class CurlLoop: Sendable {
    /// A request to send, while it is sent.
    struct Submission: Sendable {
        let transfer: CurlTransfer
        let request: EncodedRequest
        /// Held until the transfer is complete.
        let session: CurlSession
    }

    /// What came since the loop looked last.
    struct Work: Sendable {
        var submissions: [CurlTransfer] = []
        var cancellations: [CurlTransfer] = []
        var closing: CurlSession.Closing?
    }

    private struct Inbox {
        var work = Work()
        /// Whether the loop is going to look into the inbox before it sleeps, so that nobody has to wake it.
        var isAwake = true
        var closing: CurlSession.Closing?
        var hasEnded = false

        var hasWork: Bool { !work.submissions.isEmpty || !work.cancellations.isEmpty || work.closing != nil }

        /// - Returns: Whether the loop has to be woken.
        mutating func wake() -> Bool {
            defer { isAwake = true }
            return !isAwake
        }
    }

    private let inbox = WebServiceCore.Mutex(Inbox())
    private let wakeUp: WakeUp
    private let thread = WebServiceCore.Mutex<(thread: JoinableThread?, isClaimed: Bool)>((nil, false))
    private let running = DispatchGroup()
    private let forkCount = Fork.count

    init(_ configuration: CurlSession.Configuration) throws {
        wakeUp = try WakeUp(orThrow: .curl)
        let failure = StartFailure()
        let hasStarted = DispatchSemaphore(value: 0)
        running.enter()
        do {
            let started = try JoinableThread(orThrow: .curl) { [self] in
                defer { running.leave() }
                do {
                    let engine = try CurlEngine(configuration, wakeUp: wakeUp.reader)
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

    /// Takes a request.
    ///
    /// - Throws: `WebServiceError.Code.sessionClosed`.
    func submit(_ transfer: CurlTransfer, _ request: Request?) throws {
        guard forkCount == Fork.count else {
            throw WebServiceError(.sessionClosed, "the session belongs to the process that this one was forked from", request: request)
        }
        let (isOpen, needsWaking) = inbox.withLock { inbox in
            guard inbox.closing == nil else { return (false, false) }
            inbox.work.submissions.append(transfer)
            return (true, inbox.wake())
        }
        guard isOpen else { throw WebServiceError(.sessionClosed, "the session was closed", request: request) }
        if needsWaking { wakeUp.signal() }
    }

    /// Asks for the end of a transfer that was submitted.
    func cancel(_ transfer: CurlTransfer) {
        guard forkCount == Fork.count else { return }
        let needsWaking = inbox.withLock { inbox in
            guard !inbox.hasEnded else { return false }
            inbox.work.cancellations.append(transfer)
            return inbox.wake()
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Takes no more requests and asks the loop to end.
    func end(_ closing: CurlSession.Closing) {
        guard forkCount == Fork.count else { return }
        let needsWaking = inbox.withLock { inbox in
            guard !inbox.hasEnded, inbox.closing == nil || closing == .cancelling else { return false }
            inbox.closing = closing
            inbox.work.closing = closing
            return inbox.wake()
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Waits until the thread is gone. From the thread itself, and in a forked process, which has no such thread, it returns at once.
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

    /// What is to be done now.
    func takeWork() -> Work {
        let work = inbox.withLock { inbox in
            defer {
                inbox.work = Work()
                inbox.isAwake = true
            }
            return inbox.work
        }
        return work
    }

    /// Whether the loop may sleep; from then on whoever brings work wakes it.
    func mayRest() -> Bool {
        inbox.withLock { inbox in
            inbox.isAwake = inbox.hasWork
            return !inbox.isAwake
        }
    }

    /// The signals have been heard.
    func clearSignals() {
        wakeUp.clear()
    }

    /// The loop has ended.
    ///
    /// - Returns: What came too late.
    func hasEnded() -> Work {
        inbox.withLock { inbox in
            defer { inbox.work = Work() }
            inbox.hasEnded = true
            return inbox.work
        }
    }
}

/// Why a loop could not start.
private final class StartFailure: Sendable {
    private let state = WebServiceCore.Mutex<(any Error)?>(nil)

    var error: (any Error)? { state.withLock { $0 } }

    func set(_ error: any Error) {
        state.withLock { $0 = error }
    }
}
