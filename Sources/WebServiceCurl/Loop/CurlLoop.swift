// libcurl's header also declares socket constants.
import CCurl
import Foundation
import Synchronization
import WebServiceCore

/// One event loop of a ``CurlSession``, as used by other threads.
///
/// Other threads add jobs to the inbox of the loop. They wake the loop once for all jobs that are
/// added before the loop takes them. While the loop sleeps and has nothing in flight, they can also
/// take its turn to send a small request.
final class CurlLoop: Sendable {
    /// A job in the inbox of the loop.
    enum Job: Sendable {
        /// Sends a request to a host; see ``Admission``.
        case submit(CurlTransfer, host: Substring)
        /// Cancels an exchange that has begun.
        case cancel(CurlTransfer)
        /// Continues a paused exchange.
        case receiveMore(CurlTransfer)
        /// Continues an exchange that has waited for bytes of the request body.
        case sendMore(CurlTransfer)
        /// Opens the connection of a channel.
        case open(CurlChannel)
        /// Sends bytes of an open channel, and receives more.
        case proceed(CurlChannel)
        /// Closes the connection of a channel that has ended.
        case release(CurlChannel)
        case close(CurlSession.Closing)
        /// Reports that the jobs before it were carried out.
        case settle(Once<Bool>)
        /// Runs a part of a Swift task that prefers the loop as its executor.
        case run(UnownedJob)
        /// Acts on an instant of a clock that is not the system clock.
        case ring
        /// Stops using libcurl, because the process exits.
        case park
    }

    private struct Inbox {
        /// The jobs added since the loop last took them.
        var jobs: [Job] = []
        /// Whether the loop will take the jobs without a wake-up.
        var isAwake = true
        var closing: CurlSession.Closing?
        /// The first instant at which requests were cancelled.
        var cancellation: UInt64?
        var hasEnded = false
        /// The token that the loop holds while it is awake, if a test clock waits for the loop.
        var token: WorkCount.Token?

        /// Adds a job, unless the loop has ended.
        ///
        /// - Returns: Whether the caller must wake the loop.
        mutating func add(_ job: Job, to loop: CurlLoop) -> Bool {
            guard !hasEnded else { return false }
            jobs.append(job)
            return wake(loop)
        }

        /// Marks the loop as awake.
        ///
        /// - Returns: Whether the loop was asleep.
        mutating func wake(_ loop: CurlLoop) -> Bool {
            defer { isAwake = true }
            loop.turn.closeToCallers()
            if token == nil { token = loop.clock.beginWork() }
            return !isAwake
        }

        /// Marks the loop as asleep.
        ///
        /// - Returns: The token to release outside the lock.
        mutating func sleep() -> WorkCount.Token? {
            isAwake = false
            return token.take()
        }
    }

    private let inbox = Lock(Inbox())
    private let wakeUp: WakeUp
    private let thread = Lock<(thread: JoinableThread?, isClaimed: Bool)>((nil, false))
    /// Signaled when the thread has ended or is parked. Each thread that receives the signal sends
    /// it again for the next waiting thread.
    private let threadEnd = ThreadSignal()
    private let forkCount = Fork.count
    /// Whether Swift tasks may run on the loop, because ``taskExecutor`` was read.
    private let servesTasks = Atomic(false)

    /// The turn to use the engine, open to callers only while the loop sleeps without jobs.
    let turn: CurlTurn
    private let clock: TaskClock

    /// The executor of closures that prepare a request.
    var executor: any TaskExecutor { clock.executor }
    /// The executor of Swift tasks that serve a channel; `nil` if a test clock waits for them.
    var channelExecutor: (any TaskExecutor)? { clock.countsWork ? nil : LoopExecutor.shared }

    init(_ configuration: CurlSession.Configuration, _ clock: TaskClock, rules: HostRules) throws {
        self.clock = clock
        wakeUp = try WakeUp(orThrow: .curl)
        turn = CurlTurn(try CurlEngine(configuration, clock, rules: rules, wakeUp: wakeUp.reader))
        do {
            // The stack is as large as those of the handler pool with glibc, because tasks run on
            // the thread.
            let started = try JoinableThread(orThrow: .curl, stackSize: 8 << 20) { [self] in
                RunningLoops.run(self) { turn.run(self) }
                threadEnd.signal()
            }
            thread.withLock { $0.thread = started }
        } catch {
            turn.inspect { $0?.freeLibraryObjects() }
            throw error
        }
    }

    // MARK: For other threads

    /// Sends a request on the calling thread if that takes little time, or adds it to the inbox.
    ///
    /// On the threads of loops, requests are always added to the inbox.
    ///
    /// - Parameter fitsOneSend: Whether one call can send the whole request, and the response is
    ///   not streamed.
    /// - Throws: `WebServiceError.Code.sessionClosed`.
    func submit(_ transfer: CurlTransfer, _ request: EncodedRequest, fitsOneSend: Bool = false) throws {
        let host = request.host
        if fitsOneSend, turn.isOpenToCallers, isInProcess, !Self.current.isSet,
            let needsWaking = turn.send(transfer, to: host)
        {
            if needsWaking, inbox.withLock({ $0.wake(self) }) { wakeUp.signal() }
            return
        }
        try submit(.submit(transfer, host: host), request)
    }

    /// Requests that the loop open a connection.
    ///
    /// - Throws: `WebServiceError.Code.sessionClosed`.
    func submit(_ channel: CurlChannel) throws {
        try submit(.open(channel), channel.request)
    }

    private func submit(_ job: Job, _ request: EncodedRequest) throws {
        guard isInProcess else { throw Self.forkError(request.source) }
        let (isOpen, needsWaking, cancellation) = inbox.withLock { inbox in
            guard inbox.closing == nil else { return (false, false, inbox.cancellation) }
            return (true, inbox.add(job, to: self), nil)
        }
        guard isOpen else {
            throw WebServiceError(
                .sessionClosed, "the session is closed; create a new session", request: request.source,
                underlying: SessionClosure(cancellation: cancellation))
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Requests the cancellation of an exchange that has begun.
    func cancel(_ transfer: CurlTransfer) {
        add(.cancel(transfer))
    }

    /// Requests the continuation of a paused exchange.
    func receiveMore(_ transfer: CurlTransfer) {
        add(.receiveMore(transfer))
    }

    /// Requests the continuation of an exchange that waits for bytes of the request body.
    func sendMore(_ transfer: CurlTransfer) {
        add(.sendMore(transfer))
    }

    /// Requests that the loop send bytes of an open channel, and receive more.
    func proceed(_ channel: CurlChannel) {
        add(.proceed(channel))
    }

    /// Requests that the loop close the connection of a channel that has ended.
    func close(_ channel: CurlChannel) {
        add(.release(channel))
    }

    /// Whether this is the process in which the loop started, not a fork of it.
    var isInProcess: Bool { forkCount == Fork.count }

    static func forkError(_ request: Request?) -> WebServiceError {
        WebServiceError(
            .sessionClosed, "the session was created before this process was forked; create a new session",
            request: request)
    }

    private func add(_ job: Job) {
        guard forkCount == Fork.count else { return }
        if inbox.withLock({ $0.add(job, to: self) }) { wakeUp.signal() }
    }

    /// Waits until the loop has carried out the jobs added so far, such as cancellations.
    func settle() async {
        guard forkCount == Fork.count else { return }
        let isSettled = Once<Bool>()
        let (isAwaited, needsWaking) = inbox.withLock { inbox in
            (!inbox.hasEnded, inbox.add(.settle(isSettled), to: self))
        }
        if needsWaking { wakeUp.signal() }
        if isAwaited { _ = await isSettled.value }
    }

    /// Stops accepting requests and requests the end of the loop.
    func end(_ closing: CurlSession.Closing) {
        guard forkCount == Fork.count else { return }
        let now = TaskClock.system.now  // see `SessionClosure`
        let needsWaking = inbox.withLock { inbox in
            if closing == .cancelling, inbox.cancellation == nil { inbox.cancellation = now }
            guard inbox.closing == nil || closing == .cancelling else { return false }
            inbox.closing = closing
            return inbox.add(.close(closing), to: self)
        }
        if needsWaking { wakeUp.signal() }
    }

    /// Waits until the thread has ended.
    ///
    /// Returns immediately on the thread of a loop, because two loops could wait for each other,
    /// and in a forked process, where the thread does not exist.
    func join() {
        guard forkCount == Fork.count else { return }
        let (thread, isMine) = thread.withLock { state in
            defer { state.isClaimed = true }
            return (state.thread, !state.isClaimed)
        }
        guard let thread else { return }
        if Self.current.isSet {
            if isMine { thread.detach() }
        } else {
            threadEnd.wait()
            threadEnd.signal()
            if isMine { thread.join() }
        }
    }

    /// Requests that the thread stop using libcurl, because the process exits.
    func beginPark() {
        add(.park)
    }

    /// Waits until the thread has stopped using libcurl.
    func waitUntilParked(milliseconds: Int) {
        guard !thread.withLock({ $0.thread?.isCurrent == true }) else { return }
        if threadEnd.wait(milliseconds: milliseconds) { threadEnd.signal() }
    }

    // MARK: For the loop's thread

    /// Opens the turn to callers, unless there is a job.
    func openTurn() {
        inbox.withLock { inbox in
            if !inbox.isAwake { turn.openToCallers() }
        }
    }

    /// Blocks the thread until the process has exited.
    func park() -> Never {
        thread.withLock { $0.isClaimed = true }  // a thread that waits for this one does not join it
        let jobs = inbox.withLock { inbox in
            inbox.hasEnded = true
            defer { inbox.jobs = [] }
            return inbox.jobs
        }
        for case .run(let job) in jobs { HandlerPool.shared.enqueue(job, of: asUnownedTaskExecutor()) }
        threadEnd.signal()
        while true { pause() }
    }

    /// Takes the jobs of the inbox, in the order in which they were added.
    ///
    /// - Parameters:
    ///   - jobs: An empty array, whose memory the inbox takes over; on return, the jobs.
    ///   - isIdle: Whether the loop has nothing else to do.
    /// - Returns: Whether the loop may sleep, because there is no job. The next thread that adds a
    ///   job wakes it.
    func take(_ jobs: inout [Job], isIdle: Bool) -> Bool {
        let (maySleep, token) = inbox.withLock { inbox in
            swap(&jobs, &inbox.jobs)
            if jobs.isEmpty, isIdle { return (true, inbox.sleep()) }
            _ = inbox.wake(self)
            return (false, nil)
        }
        withExtendedLifetime(token) {}  // released outside the lock
        return maySleep
    }

    /// Returns whether the loop may sleep, because there is no job. The next thread that adds a job
    /// wakes it.
    func maySleep() -> Bool {
        let (maySleep, token) = inbox.withLock { inbox in
            inbox.jobs.isEmpty ? (true, inbox.sleep()) : (false, nil)
        }
        withExtendedLifetime(token) {}  // released outside the lock
        return maySleep
    }

    /// Marks the loop as awake if Swift tasks may run on it. If the loop were still marked as
    /// asleep, jobs that these tasks add on the loop's own thread would signal that thread.
    ///
    /// - Returns: Whether the loop is now awake. It must then take the jobs before it sleeps.
    func wakeForTasks() -> Bool {
        guard servesTasks.load(ordering: .relaxed) else { return false }
        inbox.withLock { _ = $0.wake(self) }
        return true
    }

    /// Clears the wake-up signals.
    func clearSignals() {
        wakeUp.clear()
    }

    /// Marks the loop as ended, and refuses the requests that arrived too late.
    func hasEnded() {
        let (jobs, token) = inbox.withLock { inbox in
            defer { inbox.jobs = [] }
            inbox.hasEnded = true
            return (inbox.jobs, inbox.token.take())
        }
        for case .submit(let transfer, _) in jobs { transfer.refuse(URLError(.cancelled)) }
        for case .open(let channel) in jobs { channel.end(URLError(.cancelled)) }
        for case .settle(let isSettled) in jobs { isSettled.set(true) }
        for case .run(let job) in jobs { HandlerPool.shared.enqueue(job, of: asUnownedTaskExecutor()) }
        withExtendedLifetime(token) {}
    }
}

/// The loop as the executor of Swift tasks (``CurlSession/executor``).
///
/// Each part of such a task, from one suspension to the next, is a job of the inbox. Jobs run in
/// the order in which they were added. A job that the loop's own thread adds wakes no thread.
extension CurlLoop: TaskExecutor {
    /// The loop of the calling thread.
    private static let current = ThreadFlag()

    /// Whether the calling thread runs the loop.
    var isCurrent: Bool { Self.current.pointer == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// Records that the calling thread runs the loop, until the thread ends.
    func makeCurrent() { Self.current.pointer = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// The loop as an executor. The first access sets ``servesTasks``.
    var taskExecutor: any TaskExecutor {
        servesTasks.store(true, ordering: .relaxed)
        return self
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // After the end of the loop, and in a forked process, tasks continue on the handler pool.
        guard isInProcess else { return HandlerPool.shared.enqueue(job, of: asUnownedTaskExecutor()) }
        let (isAdded, needsWaking) = inbox.withLock { inbox in (!inbox.hasEnded, inbox.add(.run(job), to: self)) }
        if needsWaking { wakeUp.signal() }
        if !isAdded { HandlerPool.shared.enqueue(job, of: asUnownedTaskExecutor()) }
    }

    /// Runs a part of a Swift task.
    func run(_ job: UnownedJob) {
        LoopExecutor.suspended {
            #if DEBUG
            let start = TaskClock.system.now
            job.runSynchronously(on: asUnownedTaskExecutor())
            LongJobs.check(.nanoseconds(Int64(clamping: TaskClock.system.now - start)))
            #else
            job.runSynchronously(on: asUnownedTaskExecutor())
            #endif
        }
    }
}

extension CurlLoop: AlarmTarget {
    /// Wakes the loop at an instant of a clock that is not the system clock.
    func ring() {
        add(.ring)
    }
}
