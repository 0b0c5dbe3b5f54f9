public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The session that a ``WebService`` uses unless it is given another: one long-lived `URLSession` with a delegate of ours.
///
/// Nothing is written to disk, and no cookie, cache entry or credential is kept by Foundation. A 401 is an answer like any other,
/// with its body, whatever challenge it carries. Completions run on the `URLSession`'s delegate queue; ``SessionTask`` leaves it at once.
///
/// Make one per configuration and keep it: Foundation on Linux is not safe against sessions that come and go.
public final class FoundationSession: Session {
    /// The session of all services that were not given one.
    public static let shared = FoundationSession()

    private let urlSession: URLSession
    private let exchanges = ExchangeTable()

    /// Makes a session.
    ///
    /// - Parameter configuration: What Foundation is to use; ``defaultConfiguration`` where it is left out.
    public init(configuration: URLSessionConfiguration = FoundationSession.defaultConfiguration) {
        urlSession = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    /// An ephemeral configuration without cookie storage, cache and credential storage; a new one each time.
    public static var defaultConfiguration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        return configuration
    }

    deinit {
        // Every task that was resumed holds this session until it has completed, so nothing runs any more.
        urlSession.finishTasksAndInvalidate()
    }

    /// Makes a task that sends the request once it is resumed.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        ResumableDataTask(request: request, completion: completion) { [self] request, completion in
            let task = urlSession.dataTask(with: request)
            exchanges.add(task) { [self] data, response, error in
                withExtendedLifetime(self) { completion(data, response, error) }
            }
            return task
        }
    }
}

/// What arrived so far for each task, and whom to tell at the end. Foundation calls on one serial queue.
private final class ExchangeTable: NSObject, URLSessionDataDelegate {
    private struct Exchange {
        var data = Data()
        var response: URLResponse?
        var wasChallenged = false
        let completion: ResumableDataTask.Completion
    }

    private let exchanges = Mutex<[Int: Exchange]>([:])

    func add(_ task: URLSessionTask, completion: @escaping ResumableDataTask.Completion) {
        exchanges.withLock { $0[task.taskIdentifier] = Exchange(completion: completion) }
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        exchanges.withLock { $0[dataTask.taskIdentifier]?.response = response }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchanges.withLock { $0[dataTask.taskIdentifier]?.data.append(data) }
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
        if let error, !(exchange.wasChallenged && exchange.response != nil) {
            exchange.completion(nil, nil, error)
        } else {
            exchange.completion(exchange.data, exchange.response, nil)
        }
    }
}
