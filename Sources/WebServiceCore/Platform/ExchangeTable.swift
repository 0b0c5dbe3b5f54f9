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
        let completion: ResumableDataTask.Completion
        var alarm: Alarm?
    }

    private let exchanges = Mutex<[Int: Exchange]>([:])
    private let clock = TaskClock.system

    func add(_ task: URLSessionTask, timeout: TimeInterval, maximum: Int?, completion: @escaping ResumableDataTask.Completion) {
        let timeout = Duration.seconds(min(max(timeout, 0.001), 1e9))
        let exchange = Exchange(lastActivity: clock.now, timeout: timeout, maximum: maximum, task: task, completion: completion)
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
        exchanges.withLock { $0[task.taskIdentifier]?.lastActivity = now }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let now = clock.now
        let exceeded = exchanges.withLock { exchanges -> (maximum: Int, response: URLResponse?)? in
            guard let exchange = exchanges[dataTask.taskIdentifier] else { return nil }
            if let maximum = exchange.maximum, exchange.data.count + data.count > maximum { return (maximum, exchange.response) }
            exchanges[dataTask.taskIdentifier]?.data.append(data)
            exchanges[dataTask.taskIdentifier]?.lastActivity = now
            return nil
        }
        if let exceeded { end(dataTask.taskIdentifier, WebServiceError.tooLarge(exceeded.maximum, nil, exceeded.response)) }
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
