public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// The default session of a ``WebService``: one long-lived `URLSession` with an internal delegate.
///
/// Bodies with files (``Request/multipart``), streamed bodies of more than 1 MiB, and received
/// bytes beyond 256 KiB that wait for the reader of a stream are written to temporary files. With
/// the default configuration, Foundation stores no cookies, cache entries or credentials. A
/// response with status 401 is delivered with its body, regardless of its challenge. Responses
/// arrive on the delegate queue of the `URLSession`, and ``SessionTask`` immediately continues on
/// another thread.
///
/// On Apple platforms, the session also opens WebSocket connections, over `URLSessionStreamTask`.
/// That code has not been built or tested. Foundation on Linux has no such tasks.
///
/// Create one session per configuration and retain it: on Linux, repeatedly creating and
/// invalidating sessions is not safe.
public final class FoundationSession: StreamingSession {
    /// The shared session, which services use by default.
    public static let shared = FoundationSession()

    let tasks: TaskTable
    private let clock: TaskClock
    let configuration: URLSessionConfiguration

    /// Creates a session with its own `URLSession`.
    ///
    /// - Parameter configuration: The configuration of the `URLSession`. Defaults to
    ///   ``defaultConfiguration``.
    public convenience init(configuration: URLSessionConfiguration = FoundationSession.defaultConfiguration) {
        self.init(configuration: configuration, timekeeper: nil)
    }

    /// - Parameter timekeeper: The clock that measures the idle timeouts; `nil` for the system
    ///   clock.
    package init(
        configuration: URLSessionConfiguration = FoundationSession.defaultConfiguration, timekeeper: (any Timekeeper)?
    ) {
        clock = TaskClock(timekeeper)
        tasks = TaskTable(configuration: configuration, clock)
        // The caller may change the object later.
        self.configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
    }

    /// Returns whether the configuration has cookies for the URL, a password for any host, or
    /// header fields other than `Accept`, `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    public func addsCredentials(to url: URL) -> Bool { configuration.addsCredentials(to: url) }

    /// A new ephemeral configuration without cookie storage, cache and credential storage, and with
    /// the fields ``Headers/program`` as its `httpAdditionalHeaders`.
    public static var defaultConfiguration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpAdditionalHeaders = Headers.program.combined()
        return configuration
    }

    deinit {
        // Every resumed task retains this session until it completes; abandoned tasks may still be
        // in the process of being cancelled.
        tasks.release()
    }

    /// Creates a task that sends the request when it is resumed.
    ///
    /// The task fails with `URLError.timedOut` if no byte arrives for ``Request/Options/timeout``.
    /// Metrics, trailer fields and interim heads are not delivered, because Foundation on Linux
    /// does not provide them.
    ///
    /// While the receiver is paused, the session continues to receive and buffers up to 1 GiB: 256
    /// KiB in memory, and the remainder in an unlinked temporary file. Beyond that limit, the
    /// exchange fails with ``WebServiceError/Code/responseTooLarge``.
    public func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        DeliveringTask(receiver, clock) { [self] delivery in
            ResumableDataTask(request: request) { _, _, error in
                delivery.abort(error ?? URLError(.cancelled))
            } start: { [self] request, handle in
                var net = request
                // Foundation on Linux truncates a timeout to whole seconds. The timeout of
                // ``TaskTable`` is exact; this one is only a fallback.
                net.timeoutInterval = request.timeoutInterval.clampedTimeout.rounded(.up) + 1
                tasks.start(net, of: self, timeout: request.timeoutInterval, handle: handle, delivery: delivery)
            }
        }
    }
}

extension Error {
    /// Whether Foundation on Linux reports that no connection was established. Errors with other
    /// messages may have the same code, because Foundation derives the code from the last address
    /// to which it failed to connect. On other platforms, the value is `false`.
    var isFailureToConnect: Bool {
        #if canImport(FoundationNetworking)
        let message = localizedDescription
        return self is URLError
            && (message.hasPrefix("Failed to connect to ") || message.hasPrefix("Could not resolve "))
        #else
        return false
        #endif
    }

    /// Returns the error with the code of its cause. Foundation on Linux reports many causes as
    /// unknown errors, which can be identified only by libcurl's message.
    ///
    /// - Parameter response: The response, whose content coding is added to the error of a body
    ///   that cannot be decoded.
    func withCodeOfCause(_ response: URLResponse?) -> any Error {
        guard let error = self as? URLError, [.unknown, .badServerResponse].contains(error.code) else { return self }
        let message = error.localizedDescription
        guard let cause = causes.first(where: { message.hasPrefix($0.message) }) else { return self }
        var details = error.userInfo
        if cause.code == .cannotDecodeContentData,
            let coding = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding")
        {
            details[NSLocalizedDescriptionKey] =
                "the body has the content coding '\(coding.shortenedForDisplay)': \(message)"
        }
        return URLError(cause.code, userInfo: details)
    }
}

/// The beginnings of libcurl's messages, with the code of each cause.
private let causes: [(message: String, code: URLError.Code)] = [
    ("Failed to connect to ", .cannotConnectToHost),
    ("SSL certificate ", .serverCertificateUntrusted),
    ("SSL: ", .serverCertificateUntrusted),
    ("Unrecognized content encoding type", .cannotDecodeContentData),
    ("Reject response due to ", .cannotDecodeContentData),
    ("Error while processing content unencoding: ", .cannotDecodeContentData),
    ("transfer closed with ", .networkConnectionLost),
    ("Empty reply from server", .networkConnectionLost),
    ("Recv failure: ", .networkConnectionLost),
    ("Send failure: ", .networkConnectionLost),
    ("OpenSSL SSL_read: ", .networkConnectionLost),
    ("OpenSSL SSL_write: ", .networkConnectionLost),
]
