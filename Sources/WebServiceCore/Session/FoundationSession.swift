public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The session that a ``WebService`` uses unless it is given another: one long-lived `URLSession` with a delegate of ours.
///
/// Nothing is written to disk but bodies with files (``Request/multipart``), and no cookie, cache entry or credential is kept by Foundation. A 401 is an
/// answer like any other, with its body, whatever challenge it carries. Completions run on the `URLSession`'s delegate queue; ``SessionTask`` leaves it at once.
///
/// Make one per configuration and keep it: Foundation on Linux is not safe against sessions that come and go.
public final class FoundationSession: ResponseSession {
    /// The session of all services that were not given one.
    public static let shared = FoundationSession()

    private let exchanges: ExchangeTable

    /// Makes a session.
    ///
    /// - Parameter configuration: What Foundation is to use; ``defaultConfiguration`` where it is left out.
    public init(configuration: URLSessionConfiguration = FoundationSession.defaultConfiguration) {
        exchanges = ExchangeTable(configuration: configuration)
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
        // Every task that was resumed holds this session until it has completed; tasks that were given up may still be being cancelled.
        exchanges.release()
    }

    /// Makes a task that sends the request once it is resumed. It fails with `URLError.timedOut` when no byte comes for ``Request/timeout``, and with
    /// ``WebServiceError/Code/responseTooLarge`` as soon as the body is longer than ``Request/maximumResponseBytes``.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        task(request, progress: nil, completion)
    }

    /// Makes a task as ``dataTask(request:completion:)`` does, and tells how far it has come. There are no measurements: Foundation on Linux has none.
    public func responseTask(
        request: any URLRequestEncodable,
        progress: (@Sendable (TransferProgress) -> Void)?,
        completion: @escaping @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void
    ) -> any DataTask {
        task(request, progress: progress) { data, response, error in
            if let error {
                completion(.failure(error), nil)
            } else if data == nil, response == nil {
                completion(.failure(URLError(.badServerResponse)), nil)
            } else {
                completion(.success(Response(data: data ?? Data(), urlResponse: response)), nil)
            }
        }
    }

    private func task(
        _ request: any URLRequestEncodable, progress: (@Sendable (TransferProgress) -> Void)?, _ completion: @escaping ResumableDataTask.Completion
    ) -> any DataTask {
        let maximum = (request as? EncodedRequest)?.maximumResponseBytes
        return ResumableDataTask(request: request, completion: completion) { [self] request, handle in
            var net = request
            // Foundation on Linux counts in whole seconds and takes less than one for none; our own clock is exact, this is the net below it.
            net.timeoutInterval = request.timeoutInterval.clampedTimeout.rounded(.up) + 1
            exchanges.start(
                net, timeout: request.timeoutInterval, maximum: maximum, progress: progress, handle: handle
            ) { [self] data, response, error in
                withExtendedLifetime(self) { completion(data, response, error) }
            }
        }
    }
}
