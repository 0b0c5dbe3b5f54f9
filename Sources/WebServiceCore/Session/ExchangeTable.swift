import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The `URLSession` of a ``FoundationSession`` with its delegate. It stores the data received by
/// each task and its completion. Foundation calls it on one serial queue, the clock on another
/// thread.
///
/// Tasks are created and cancelled on a serial queue of the table, because Foundation on Linux
/// waits for its work queue there. All sessions of the process share that work queue, and it is
/// busy for as long as any peer sends without a pause. At most one thread of the table waits for
/// it.
final class ExchangeTable: NSObject, URLSessionDataDelegate {
    private struct Exchange {
        var data = Data()
        var response: URLResponse?
        var wasChallenged = false
        var lastActivity: UInt64
        let timeout: Duration
        let maximum: Int?
        let task: URLSessionTask
        let progress: (@Sendable (TransferProgress) -> Void)?
        var sent: (bytes: Int64, of: Int64) = (0, 0)
        let completion: ResumableDataTask.Completion
        var alarm: Alarm?

        enum Reception {
            case nothing
            case news(@Sendable (TransferProgress) -> Void, TransferProgress)
            case tooMuch(Int, URLResponse?)
        }

        mutating func receive(_ new: Data, at now: UInt64) -> Reception {
            if let maximum, data.count + new.count > maximum { return .tooMuch(maximum, response) }
            data.append(new)
            lastActivity = now
            return news.map { .news($0.tell, $0.1) } ?? .nothing
        }

        /// The progress handler and the current progress; `nil` without a handler.
        var news: (tell: @Sendable (TransferProgress) -> Void, TransferProgress)? {
            guard let progress else { return nil }
            let expected = response.map(\.expectedContentLength) ?? -1
            let isCoded = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding") != nil
            return (
                progress,
                TransferProgress(
                    bytesSent: sent.bytes, bytesToSend: sent.of, bytesReceived: Int64(data.count),
                    bytesToReceive: expected < 0 || isCoded ? nil : expected
                )
            )
        }
    }

    private struct State {
        /// `nil` after it was invalidated.
        var session: URLSession?
        var exchanges: [Int: Exchange] = [:]
        /// The tasks whose end Foundation has not reported, including abandoned ones.
        var unfinished: Set<Int> = []
        /// The tasks whose redirect was declined and whose response has not arrived yet.
        var declined: Set<Int> = []
        /// The number of times that bytes arrived for abandoned tasks since one of them ended.
        var unwanted = 0
        var isReleased = false

        mutating func receive(_ data: Data, for id: Int, at now: UInt64) -> Exchange.Reception {
            guard let reception = exchanges[id]?.receive(data, at: now) else {
                unwanted += 1
                return .nothing
            }
            return reception
        }

        /// - Returns: The session, if it is no longer used.
        mutating func takeUnusedSession() -> URLSession? {
            isReleased && unfinished.isEmpty ? session.take() : nil
        }
    }

    private let state: Mutex<State>
    private let clock = TaskClock.system
    private let queue = DispatchQueue(label: "WebService.FoundationSession")

    init(configuration: URLSessionConfiguration) {
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
    /// Foundation on Linux adds operations to it on the thread that reads from the connections, so
    /// a pause here slows down a peer that continues to send for an abandoned task. Without the
    /// pause, the memory of Foundation grows by about 30 MB per second of one-byte chunks.
    private final class DelegateQueue: OperationQueue, @unchecked Sendable {  // its state is immutable and Sendable
        private weak let table: ExchangeTable?
        private let pause = DispatchSemaphore(value: 0)

        init(for table: ExchangeTable) {
            self.table = table
        }

        override func addOperation(_ block: @escaping @Sendable () -> Void) {
            if let table, table.state.withLock({ $0.unwanted > ExchangeTable.maximumUnwanted }) {
                _ = pause.wait(timeout: .now() + .milliseconds(1))
            }
            super.addOperation(block)
        }
    }

    // MARK: Tasks

    /// Creates a Foundation task and passes it to the handle.
    ///
    /// - Parameters:
    ///   - handle: Receives the task, unless it was cancelled.
    ///   - completion: Called once. It retains the owner of the table, so that no task is started
    ///     after ``release()``.
    func start(
        _ request: URLRequest, timeout: TimeInterval, maximum: Int?, progress: (@Sendable (TransferProgress) -> Void)?,
        handle: ResumableDataTask, completion: @escaping ResumableDataTask.Completion
    ) {
        queue.async { [self] in
            guard handle.state == .running, let session = state.withLock({ $0.session }) else {
                return completion(nil, nil, URLError(.cancelled))
            }
            let timeout = Duration.seconds(timeout.clampedTimeout)
            let task = session.dataTask(with: request)
            let id = task.taskIdentifier
            let exchange = Exchange(
                lastActivity: clock.now, timeout: timeout, maximum: maximum, task: task, progress: progress,
                completion: completion)
            state.withLock { state in
                state.unfinished.insert(id)
                state.exchanges[id] = exchange
            }
            watch(id, for: timeout)
            handle.run(task) { [weak self] in self?.cancel(id) }
        }
    }

    private func cancel(_ id: Int) {
        // The completion is never called within `cancel()`, and the queue of the table may be
        // blocked.
        DispatchQueue.global().async { [self] in end(id, URLError(.cancelled)) }
    }

    /// Ends an exchange before Foundation does. Only the caller that removes the entry from the
    /// table calls the completion.
    private func end(_ id: Int, _ error: any Error) {
        guard let exchange = state.withLock({ $0.exchanges.removeValue(forKey: id) }) else { return }
        if let alarm = exchange.alarm { clock.cancel(alarm) }
        let task = exchange.task
        queue.async { [self] in
            // A task that has ended, or whose declined redirect Foundation has not processed yet,
            // is not cancelled: Foundation on Linux may terminate the process.
            if state.withLock({ $0.unfinished.contains(id) && !$0.declined.contains(id) }) { task.cancel() }
        }
        exchange.completion(nil, nil, error)
    }

    // MARK: Idle timeout

    private final class Silence: AlarmTarget {
        private let id: Int
        private let table: ExchangeTable

        init(_ id: Int, _ table: ExchangeTable) {
            self.id = id
            self.table = table
        }

        package func ring() { table.checkSilence(id) }
    }

    private func watch(_ id: Int, for duration: Duration) {
        let alarm = clock.schedule(after: duration, Silence(id, self))
        let isWanted = state.withLock { state in
            state.exchanges[id]?.alarm = alarm
            return state.exchanges[id] != nil
        }
        if !isWanted { clock.cancel(alarm) }
    }

    private func checkSilence(_ id: Int) {
        let now = clock.now
        let remaining = state.withLock { state in
            state.exchanges[id].map { $0.timeout - .nanoseconds(Int64(clamping: now - min(now, $0.lastActivity))) }
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
        let isGivenUp = state.withLock { state in
            state.exchanges[dataTask.taskIdentifier]?.response = response
            state.exchanges[dataTask.taskIdentifier]?.lastActivity = now
            return state.declined.remove(dataTask.taskIdentifier) != nil
                && state.exchanges[dataTask.taskIdentifier] == nil
        }
        completionHandler(.allow)
        if isGivenUp { queue.async { dataTask.cancel() } }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        let now = clock.now
        let news = state.withLock { state in
            state.exchanges[task.taskIdentifier]?.lastActivity = now
            state.exchanges[task.taskIdentifier]?.sent = (totalBytesSent, totalBytesExpectedToSend)
            return state.exchanges[task.taskIdentifier]?.news
        }
        if let (tell, progress) = news { tell(progress) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let now = clock.now
        switch state.withLock({ $0.receive(data, for: dataTask.taskIdentifier, at: now) }) {
        case .tooMuch(let maximum, let response):
            end(dataTask.taskIdentifier, WebServiceError.tooLarge(maximum, nil, response))
        case .news(let tell, let progress): tell(progress)
        case .nothing: break
        }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // The completion handler of a task that is being cancelled is never called: Foundation on
        // Linux terminates the process.
        let isWanted = state.withLock { state in
            guard state.exchanges[task.taskIdentifier] != nil else { return false }
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
        guard challenge.asksForCredentials else { return completionHandler(.performDefaultHandling, nil) }
        state.withLock { $0.exchanges[task.taskIdentifier]?.wasChallenged = true }
        completionHandler(.rejectProtectionSpace, nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let exchange = state.withLock { state in
            state.unfinished.remove(task.taskIdentifier)
            state.declined.remove(task.taskIdentifier)
            let exchange = state.exchanges.removeValue(forKey: task.taskIdentifier)
            if exchange == nil { state.unwanted = 0 }
            return exchange
        }
        defer { invalidateIfUnused() }
        guard let exchange else { return }
        if let alarm = exchange.alarm { clock.cancel(alarm) }
        // Foundation on Linux does not report the response of a redirect without a target to the
        // delegate.
        let response = exchange.response ?? task.response
        if let error, !(exchange.wasChallenged && response != nil) {
            exchange.completion(nil, nil, error.namingFailedConnection)
        } else {
            exchange.completion(exchange.data, response, nil)
        }
    }
}

extension Error {
    /// The error, with the code for a failed connection. Foundation on Linux reports an unreachable
    /// network as an unknown error; only the message of libcurl identifies it.
    fileprivate var namingFailedConnection: any Error {
        guard let error = self as? URLError, error.code == .unknown,
            error.localizedDescription.hasPrefix("Failed to connect to ")
        else {
            return self
        }
        return URLError(.cannotConnectToHost, userInfo: error.userInfo)
    }
}
