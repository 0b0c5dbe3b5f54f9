import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The `URLSession` of a ``FoundationSession`` and its delegate. The table stores the delivery of
/// each task. Foundation calls the table on one serial queue, and the clock calls it on another
/// thread.
///
/// Tasks are created and cancelled on a serial queue of the table, because Foundation on Linux
/// waits for its work queue in these calls. All sessions of the process share that work queue,
/// which is busy while any peer sends without pausing. At most one thread of the table waits for
/// that queue.
final class TaskTable: NSObject, URLSessionDataDelegate {
    private struct Entry {
        let owner: any AnyObject & Sendable
        let delivery: BodyDelivery
        let task: URLSessionTask
        let timeout: Duration
        var lastActivity: UInt64
        var hasHead = false
        var wasChallenged = false
        var alarm: Alarm?
    }

    private struct State {
        /// The session; `nil` after it was invalidated.
        var session: URLSession?
        var entries: [Int: Entry] = [:]
        /// The tasks whose end Foundation has not reported, including abandoned ones.
        var unfinished: Set<Int> = []
        /// The tasks whose redirect was declined and whose response has not arrived yet.
        var declined: Set<Int> = []
        /// The number of times that bytes have arrived or were sent for abandoned tasks since an
        /// abandoned task last ended.
        var unwanted = 0
        var isReleased = false
        /// Whether a task may have opened a connection that another task can use. This is the case
        /// after a task has ended without a failure to connect.
        var hasConnected = false

        /// Records the end of a task.
        ///
        /// If Foundation sends a request on an open connection that fails, it may send the request
        /// again, and then reports only the second failure.
        ///
        /// - Returns: Whether a failure to connect means that no byte of the request was sent.
        mutating func end(_ id: Int, failsToConnect: Bool) -> Bool {
            unfinished.remove(id)
            declined.remove(id)
            if !failsToConnect { hasConnected = true }
            return !hasConnected && unfinished.isEmpty
        }

        /// Records that bytes arrived or were sent.
        ///
        /// - Returns: The delivery of the exchange; `nil` if it was abandoned.
        mutating func receive(for id: Int, at now: UInt64) -> BodyDelivery? {
            guard entries[id] != nil else {
                unwanted += 1
                return nil
            }
            entries[id]?.lastActivity = now
            return entries[id]?.delivery
        }

        /// Records that the head arrived.
        ///
        /// - Returns: The delivery of the exchange, if this is its first head.
        mutating func receiveHead(for id: Int, at now: UInt64) -> BodyDelivery? {
            guard entries[id]?.hasHead == false else { return nil }
            entries[id]?.hasHead = true
            return receive(for: id, at: now)
        }

        /// - Returns: The session, if it is no longer used.
        mutating func takeUnusedSession() -> URLSession? {
            isReleased && unfinished.isEmpty ? session.take() : nil
        }
    }

    private let state: Mutex<State>
    private let clock: TaskClock
    private let queue = DispatchQueue(label: "WebService.FoundationSession")

    /// - Parameter clock: The clock that measures the idle timeouts.
    init(configuration: URLSessionConfiguration, _ clock: TaskClock) {
        self.clock = clock
        state = Mutex(State())
        super.init()
        let delegateQueue = DelegateQueue(for: self)
        delegateQueue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: delegateQueue)
        state.withLock { $0.session = session }
    }

    // MARK: Life cycle

    /// Invalidates the session once Foundation has reported the end of every task, including
    /// abandoned ones. Foundation on Linux terminates the process if a session is invalidated while
    /// one of its tasks is being cancelled. No task is started afterwards.
    func release() {
        state.withLock { $0.isReleased = true }
        invalidateIfUnused()
    }

    private func invalidateIfUnused() {
        guard let session = state.withLock({ $0.takeUnusedSession() }) else { return }
        queue.async { session.finishTasksAndInvalidate() }
    }

    /// The number of times that bytes may arrive for abandoned tasks before reading is slowed down.
    /// Some arrive while a task is being cancelled.
    private static let maximumUnwanted = 10_000

    /// The delegate queue of the session.
    ///
    /// Foundation on Linux adds operations to this queue on the thread that reads from the
    /// connections, so a pause here slows down a peer that continues to send for an abandoned task.
    /// Without the pause, Foundation's memory use grows by about 30 MB per second while one-byte
    /// chunks arrive.
    private final class DelegateQueue: OperationQueue, @unchecked Sendable {  // its state is immutable and Sendable
        private weak let table: TaskTable?
        private let pause = ThreadSignal()

        init(for table: TaskTable) {
            self.table = table
        }

        override func addOperation(_ block: @escaping @Sendable () -> Void) {
            if let table, table.state.withLock({ $0.unwanted > TaskTable.maximumUnwanted }) {
                _ = pause.wait(milliseconds: 1)
            }
            super.addOperation(block)
        }
    }

    // MARK: Tasks

    /// Creates a Foundation task and passes it to the handle.
    ///
    /// - Parameters:
    ///   - owner: The session, which is retained until the exchange ends, so that no task is
    ///     started after ``release()``.
    ///   - handle: The object that receives the task, unless it was cancelled.
    ///   - delivery: The object that receives the response.
    func start(
        _ request: URLRequest, of owner: any AnyObject & Sendable, timeout: TimeInterval, handle: ResumableDataTask,
        delivery: BodyDelivery
    ) {
        clock.async(on: queue) { [self] in
            guard handle.state == .running, let session = state.withLock({ $0.session }) else {
                return delivery.abort(URLError(.cancelled))
            }
            let timeout = Duration.seconds(timeout.clampedTimeout)
            let task = session.dataTask(with: request)
            let id = task.taskIdentifier
            let entry = Entry(
                owner: owner, delivery: delivery, task: task, timeout: timeout, lastActivity: clock.now)
            state.withLock { state in
                state.unfinished.insert(id)
                state.entries[id] = entry
            }
            watch(id, for: timeout)
            handle.run(task) { [weak self] in self?.cancel(id) }
        }
    }

    #if canImport(Darwin)
    /// Creates a task that transfers bytes; `nil` if the session was invalidated.
    func streamTask(toHost host: String, port: Int) -> URLSessionStreamTask? {
        guard let task = state.withLock({ $0.session })?.streamTask(withHostName: host, port: port) else { return nil }
        state.withLock { _ = $0.unfinished.insert(task.taskIdentifier) }
        return task
    }
    #endif

    private func cancel(_ id: Int) {
        // The receiver is never called within `cancel()`, and the queue of the table may be
        // blocked.
        clock.async { [self] in end(id, URLError(.cancelled)) }
    }

    /// Ends an exchange before Foundation does. Only the caller that removes the entry from the
    /// table aborts the delivery.
    private func end(_ id: Int, _ error: any Error) {
        guard let entry = state.withLock({ $0.entries.removeValue(forKey: id) }) else { return }
        if let alarm = entry.alarm { clock.cancel(alarm) }
        let task = entry.task
        queue.async { [self] in
            // A task that has ended, or whose declined redirect Foundation has not processed yet,
            // is not cancelled: Foundation on Linux may terminate the process.
            if state.withLock({ $0.unfinished.contains(id) && !$0.declined.contains(id) }) { task.cancel() }
        }
        entry.delivery.abort(error)
    }

    // MARK: Idle timeout

    private final class Silence: AlarmTarget {
        private let id: Int
        private let table: TaskTable

        init(_ id: Int, _ table: TaskTable) {
            self.id = id
            self.table = table
        }

        package func ring() { table.checkSilence(id) }
    }

    private func watch(_ id: Int, for duration: Duration) {
        let alarm = clock.schedule(after: duration, Silence(id, self))
        let isWanted = state.withLock { state in
            state.entries[id]?.alarm = alarm
            return state.entries[id] != nil
        }
        if !isWanted { clock.cancel(alarm) }
    }

    private func checkSilence(_ id: Int) {
        let now = clock.now
        let remaining = state.withLock { state in
            state.entries[id].map { entry in
                // The timeout does not run while bytes wait for a slow receiver.
                if entry.delivery.isPaused { return entry.timeout }
                return entry.timeout - .nanoseconds(Int64(clamping: now - min(now, entry.lastActivity)))
            }
        }
        guard let remaining else { return }
        if remaining > .zero { watch(id, for: remaining) } else { end(id, URLError(.timedOut)) }
    }

    // MARK: Delegate methods

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let now = clock.now
        // Foundation on Linux reports interim responses as well.
        let isInterim = (response as? HTTPURLResponse).map { (100..<200).contains($0.statusCode) } ?? false
        let (delivery, isGivenUp) = state.withLock { state in
            let delivery = isInterim ? nil : state.receiveHead(for: dataTask.taskIdentifier, at: now)
            let wasDeclined = state.declined.remove(dataTask.taskIdentifier) != nil
            return (delivery, wasDeclined && state.entries[dataTask.taskIdentifier] == nil)
        }
        completionHandler(.allow)
        delivery?.receive(ResponseHead(response), length: response.bodyLength)
        if isGivenUp { queue.async { dataTask.cancel() } }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        let now = clock.now
        state.withLock { $0.receive(for: task.taskIdentifier, at: now) }?
            .send(totalBytesSent, of: totalBytesExpectedToSend < 0 ? nil : totalBytesExpectedToSend)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let now = clock.now
        state.withLock { $0.receive(for: dataTask.taskIdentifier, at: now) }?.receive(data)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // The completion handler of a task that is being cancelled is never called, because
        // Foundation on Linux would terminate the process.
        let isWanted = state.withLock { state in
            guard state.entries[task.taskIdentifier] != nil else { return false }
            state.declined.insert(task.taskIdentifier)
            return true
        }
        if isWanted { completionHandler(nil) }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.requestsCredentials else { return completionHandler(.performDefaultHandling, nil) }
        state.withLock { $0.entries[task.taskIdentifier]?.wasChallenged = true }
        completionHandler(.rejectProtectionSpace, nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let failsToConnect = error?.isFailureToConnect == true
        let (entry, wasNotSent) = state.withLock { state in
            let wasNotSent = state.end(task.taskIdentifier, failsToConnect: failsToConnect)
            let entry = state.entries.removeValue(forKey: task.taskIdentifier)
            if entry == nil { state.unwanted = 0 }
            return (entry, wasNotSent)
        }
        defer { invalidateIfUnused() }
        guard let entry else { return }
        if let alarm = entry.alarm { clock.cancel(alarm) }
        // Foundation on Linux does not report the response of a redirect without a target to the
        // delegate.
        if !entry.hasHead, let response = task.response {
            entry.delivery.receive(ResponseHead(response), length: response.bodyLength)
        }
        if let error, !(entry.wasChallenged && (entry.hasHead || task.response != nil)) {
            let failure = error.withCodeOfCause(task.response)
            entry.delivery.finish(
                .failure(wasNotSent ? (failure as? URLError)?.markingRequestNotSent() ?? failure : failure))
        } else {
            entry.delivery.finish(.success([:]))
        }
    }
}

extension URLResponse {
    /// The length of the decoded body in bytes; `nil` if it is unknown.
    fileprivate var bodyLength: Int64? {
        let isEncoded = (self as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding") != nil
        return expectedContentLength < 0 || isEncoded ? nil : expectedContentLength
    }
}
