public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The default session of a ``WebService``: one long-lived `URLSession` with an internal delegate.
///
/// Only bodies with files (``Request/multipart``) are written to disk, and Foundation stores no
/// cookies, cache entries or credentials. A 401 is an ordinary response with its body, whatever its
/// challenge. Completions run on the delegate queue of the `URLSession`; ``SessionTask`` leaves it
/// immediately.
///
/// Create one session per configuration and retain it: on Linux, repeatedly creating and
/// invalidating sessions is not safe.
public final class FoundationSession: ResponseSession {
    /// The shared session, which services use by default.
    public static let shared = FoundationSession()

    private let exchanges: ExchangeTable

    /// Creates a session.
    ///
    /// - Parameter configuration: The configuration of the `URLSession`. Defaults to
    ///   ``defaultConfiguration``.
    public init(configuration: URLSessionConfiguration = FoundationSession.defaultConfiguration) {
        exchanges = ExchangeTable(configuration: configuration)
    }

    /// A new ephemeral configuration without cookie storage, cache and credential storage.
    public static var defaultConfiguration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        return configuration
    }

    deinit {
        // Every resumed task retains this session until it completes; abandoned tasks may still be
        // in the process of being cancelled.
        exchanges.release()
    }

    /// Creates a task that sends the request when it is resumed.
    ///
    /// It fails with `URLError.timedOut` if no byte arrives for ``Request/Options/timeout``, and
    /// with ``WebServiceError/Code/responseTooLarge`` as soon as the body exceeds
    /// ``Request/Options/maximumResponseBytes``.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        task(request, progress: nil, completion)
    }

    /// Creates a task as ``dataTask(request:completion:)`` does, and reports its progress.
    ///
    /// There are no metrics: Foundation on Linux does not provide them.
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
        _ request: any URLRequestEncodable, progress: (@Sendable (TransferProgress) -> Void)?,
        _ completion: @escaping ResumableDataTask.Completion
    ) -> any DataTask {
        let maximum = (request as? EncodedRequest)?.maximumResponseBytes
        return ResumableDataTask(request: request, completion: completion) { [self] request, handle in
            var net = request
            // Foundation on Linux counts whole seconds and treats less than one as none. The
            // timeout of ``ExchangeTable`` is exact; this one is only a fallback.
            net.timeoutInterval = request.timeoutInterval.clampedTimeout.rounded(.up) + 1
            exchanges.start(
                net, timeout: request.timeoutInterval, maximum: maximum, progress: progress, handle: handle
            ) { [self] data, response, error in
                withExtendedLifetime(self) { completion(data, response, error) }
            }
        }
    }
}
