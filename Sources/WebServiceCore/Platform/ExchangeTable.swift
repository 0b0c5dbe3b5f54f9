import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate of a ``FoundationSession``: what arrived so far for each task, and whom to tell at the end. Foundation calls on one serial queue, the clock
/// on another thread.
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

        /// Whom to tell how far it has come, and what.
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

    private let exchanges = Mutex<[Int: Exchange]>([:])
    private let clock = TaskClock.system

    func add(
        _ task: URLSessionTask, timeout: TimeInterval, maximum: Int?, progress: (@Sendable (TransferProgress) -> Void)?,
        completion: @escaping ResumableDataTask.Completion
    ) {
        let timeout = Duration.seconds(min(max(timeout, 0.001), 1e9))
        let exchange = Exchange(
            lastActivity: clock.now, timeout: timeout, maximum: maximum, task: task, progress: progress, completion: completion)
        let id = task.taskIdentifier
        exchanges.withLock { $0[id] = exchange }
        watch(id, for: timeout)
    }

    /// Ends an exchange before Foundation does: whoever takes the entry out of the table tells its owner.
    private func end(_ id: Int, _ error: any Error) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: id) }) else { return }
        if let alarm = exchange.alarm { clock.cancel(alarm) }
        let task = exchange.task
        DispatchQueue.global().async { task.cancel() }  // Foundation on Linux may wait for the queue that we are called on
        exchange.completion(nil, nil, error)
    }

    // MARK: Silence

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
        let isWanted = exchanges.withLock { exchanges in
            exchanges[id]?.alarm = alarm
            return exchanges[id] != nil
        }
        if !isWanted { clock.cancel(alarm) }
    }

    private func checkSilence(_ id: Int) {
        let now = clock.now
        let remaining = exchanges.withLock { exchanges in
            exchanges[id].map { $0.timeout - .nanoseconds(Int64(clamping: now - min(now, $0.lastActivity))) }
        }
        guard let remaining else { return }
        if remaining > .zero { watch(id, for: remaining) } else { end(id, URLError(.timedOut)) }
    }

    // MARK: What Foundation tells

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let now = clock.now
        exchanges.withLock { exchanges in
            exchanges[dataTask.taskIdentifier]?.response = response
            exchanges[dataTask.taskIdentifier]?.lastActivity = now
        }
        completionHandler(.allow)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        let now = clock.now
        let news = exchanges.withLock { exchanges in
            exchanges[task.taskIdentifier]?.lastActivity = now
            exchanges[task.taskIdentifier]?.sent = (totalBytesSent, totalBytesExpectedToSend)
            return exchanges[task.taskIdentifier]?.news
        }
        if let (tell, progress) = news { tell(progress) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let now = clock.now
        switch exchanges.withLock({ $0[dataTask.taskIdentifier]?.receive(data, at: now) }) {
        case .tooMuch(let maximum, let response)?: end(dataTask.taskIdentifier, WebServiceError.tooLarge(maximum, nil, response))
        case .news(let tell, let progress)?: tell(progress)
        case .nothing?, nil: break
        }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.asksForCredentials else { return completionHandler(.performDefaultHandling, nil) }
        exchanges.withLock { $0[task.taskIdentifier]?.wasChallenged = true }
        completionHandler(.rejectProtectionSpace, nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let alarm = exchange.alarm { clock.cancel(alarm) }
        // Foundation on Linux does not announce the response of a redirect without a target.
        let response = exchange.response ?? task.response
        if let error, !(exchange.wasChallenged && response != nil) {
            exchange.completion(nil, nil, error)
        } else {
            exchange.completion(exchange.data, response, nil)
        }
    }
}
