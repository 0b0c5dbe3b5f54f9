public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A delegate of the requests and responses of a service, which can change requests and reject
/// responses.
///
/// Every method except ``modifiedRequest(request:)`` and ``validateResponse(response:data:error:)``
/// is required, so that a method with a wrong signature causes a compile error. An ``Observer``
/// receives more events and is retained by the service; use a delegate to sign requests or to
/// validate responses.
///
/// The methods for UI handlers are called on the main actor, and all other methods on any thread,
/// concurrently for several tasks. `Documentation/Concurrency.md` lists the threads. A slow method
/// delays its own task, and others that need the same thread. A service holds its delegate weakly;
/// an attempt in flight retains it. In each method, ``currentRequest`` is the request of the
/// exchange.
public protocol ServicePassthroughDelegate: AnyObject, Sendable {
    /// Receives the request of each attempt before the session sends it.
    func requestSent(request: URLRequest)

    /// Receives the response or the error of each attempt, once for each ``requestSent(request:)``.
    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?)

    /// Returns the request to send instead of an attempt's request, or `nil` to send it unchanged,
    /// which is the default.
    ///
    /// The returned request is validated like any other. Observers, limits and redirects apply to
    /// it, and a redirect to the same origin retains its header fields. If the URL of the returned
    /// request differs, the request has the cookies of the new URL. If the origin differs, the
    /// request has the fields of ``WebService/headers`` and the credential of an ``Authentication``
    /// only if the new origin may receive them.
    ///
    /// This method is also called for requests that follow redirects, including redirects to other
    /// origins, so check the URL before adding credentials. ``Authentication`` performs this check
    /// automatically.
    func modifiedRequest(request: URLRequest) -> URLRequest?

    /// Validates the result of the exchange before any handler receives it, and throws an error to
    /// reject it. By default, every result is accepted.
    ///
    /// This method is called once for each task that has started, except tasks that consist of
    /// other requests, such as typed requests and downloads, whose individual requests are
    /// validated instead. It receives the response or the error: a transport error, a cancellation,
    /// or another error of the exchange. The thrown error replaces that result.
    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws

    /// Receives the failure of a handler, of a step of a typed task, or of the validation of a
    /// response.
    ///
    /// This method is called once for the first cause of each failure, and never for an error of
    /// the exchange that the validation accepts.
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error)

    /// Receives the response before a UI handler runs.
    @MainActor func updateUIBegin(response: URLResponse?)

    /// Receives the response after a UI handler has returned.
    @MainActor func updateUIEnd(response: URLResponse?)

    /// Receives the metrics once for each task that sends its own request, after all handlers that
    /// were added before the result have run.
    ///
    /// - Parameters:
    ///   - metrics: The metrics of the task.
    ///   - request: The request that was sent last, or that of the task if none was sent.
    ///   - response: The response; `nil` if none was received.
    ///   - data: The body; `nil` after an error.
    ///   - error: The error of the exchange; `nil` if the exchange succeeded.
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?)
}

extension ServicePassthroughDelegate {
    /// Returns `nil`: the request is sent unchanged.
    public func modifiedRequest(request: URLRequest) -> URLRequest? { nil }
    /// Accepts every result.
    public func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {}

    /// The request of the exchange for which a method of the delegate is called, with its options
    /// and tags.
    ///
    /// The value is `nil` outside these methods. For a service used as a session, the value is also
    /// `nil` unless another service sends the request.
    public var currentRequest: Request? { DelegateCall.request }
}

/// The request of the exchange for which a method of the delegate is called.
enum DelegateCall {
    @TaskLocal static var request: Request?
}

/// A type that provides the delegate of all services.
///
/// Conform ``WebService`` to this protocol in an extension.
///
/// ```swift
/// let counter = RequestCounter()
/// extension WebService: @retroactive ServicePassthroughDataSource {
///     public var servicePassthroughDelegate: any ServicePassthroughDelegate { counter }
/// }
/// ```
/// The delegate of an individual service takes precedence.
public protocol ServicePassthroughDataSource {
    /// The delegate, which is read each time a task is resumed.
    var servicePassthroughDelegate: any ServicePassthroughDelegate { get }
}

extension ServicePassthroughDelegate {
    /// Returns the delegate's replacement for a request, or `nil` to send the request unchanged.
    ///
    /// - Parameter source: The request of the exchange. The replacement retains the options that a
    ///   `URLRequest` cannot contain, and has none of the fields that may not be sent to the origin
    ///   of the new URL.
    func replacement(for request: URLRequest, source: Request?) -> Request? {
        let modified = DelegateCall.$request.withValue(source) { modifiedRequest(request: request) }
        guard let modified else { return nil }
        return source?.replaced(with: modified) ?? Request(modified)
    }
}

extension Request {
    /// Returns this request as the delegate has changed it.
    ///
    /// The method, URL, header fields and body are those of `urlRequest`. The options remain,
    /// except for those that `urlRequest` contains.
    fileprivate func replaced(with urlRequest: URLRequest) -> Request {
        var new = Request(urlRequest)
        let own = new.options
        new.options = options
        (new.options.shouldHandleCookies, new.options.cachePolicy) = (own.shouldHandleCookies, own.cachePolicy)
        // The delegate may have changed the timeout.
        new.options.timeout = .clamping(seconds: urlRequest.timeoutInterval)
        new.options.compressesBody = false  // the delegate received the compressed body
        (new.downloadsPart, new.credentialFields, new.boundFields) = (downloadsPart, credentialFields, boundFields)
        new.removeSignature(of: signature)
        new.removeForeignFields()
        return new
    }
}

/// The delegate's notifications about one request: one when it is sent, and one when its response
/// arrives. A request that is cancelled before it is sent produces no notification.
final class Announcement: Sendable {
    private enum Phase: Int { case created, sent, over }

    private let phase = Mutex(Phase.created)
    private let delegate: any ServicePassthroughDelegate
    private let request: URLRequest
    /// The request of the exchange.
    private let source: Request?

    init(_ delegate: any ServicePassthroughDelegate, _ request: URLRequest, _ source: Request?) {
        self.delegate = delegate
        self.request = request
        self.source = source
    }

    /// Returns a data task that notifies the delegate.
    ///
    /// - Parameter send: A closure that returns the session's data task, which calls the given
    ///   completion before it completes.
    func announcing(
        _ send: (@escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void) -> any DataTask
    ) -> any DataTask {
        AnnouncedDataTask(send(didReceive), self)
    }

    func willSend() {
        guard advance(to: .sent) == .created else { return }
        DelegateCall.$request.withValue(source) { delegate.requestSent(request: request) }
    }

    func didReceive(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        guard advance(to: .over) == .sent else { return }
        DelegateCall.$request.withValue(source) {
            delegate.responseReceived(response: response, data: data, request: request, error: error)
        }
    }

    /// Advances to a phase, unless the current one is the same or a later one.
    ///
    /// - Returns: The phase before the call.
    private func advance(to new: Phase) -> Phase {
        phase.withLock { phase in
            defer { if phase.rawValue < new.rawValue { phase = new } }
            return phase
        }
    }
}

/// A data task that notifies the delegate before it is first resumed.
private final class AnnouncedDataTask: DataTask {
    private let dataTask: any DataTask
    private let announcement: Announcement

    init(_ dataTask: any DataTask, _ announcement: Announcement) {
        self.dataTask = dataTask
        self.announcement = announcement
    }

    var state: DataTaskState { dataTask.state }

    func resume() {
        announcement.willSend()
        dataTask.resume()
    }

    func suspend() { dataTask.suspend() }
    func cancel() { dataTask.cancel() }
}

/// The result of an exchange, with the delegate that validates it and receives its failure and
/// metrics.
///
/// If there is no delegate, only the failures are recorded.
struct ObservedResult {
    let result: Result<Response, any Error>
    let delegate: (any ServicePassthroughDelegate)?
    let task: SessionTask

    var response: Response? { try? result.get() }  // an error has no response
    var data: Data? { response?.dataIfDelivered }
    var error: (any Error)? { if case .failure(let error) = result { error } else { nil } }

    /// The response, including one that accompanies an error.
    var urlResponse: URLResponse? {
        switch result {
        case .success(let response): response.urlResponse
        case .failure(let error): (error as? WebServiceError)?.response?.urlResponse
        }
    }

    /// Returns the delegate's error if the delegate rejects the result, and reports the failure.
    func rejection() -> (any Error)? {
        do {
            try notify { try $0.validateResponse(response: urlResponse, data: data, error: error) }
            return nil
        } catch {
            report(error)
            return error
        }
    }

    /// Records the failure of a handler, a step or the validation, and notifies the delegate.
    func report(_ failure: any Error) {
        task.record(failure: failure)
        notify {
            $0.serviceResultFailure(response: urlResponse, data: data, request: sentRequest, error: failure)
        }
    }

    /// Passes the metrics to the delegate.
    func reportMetrics() {
        notify {
            let request = sentRequest ?? (task.log.request ?? Request(url: "")).urlRequestValue
            $0.didFinishCollectingTaskMetrics(
                metrics: task.log.metrics, request: request, response: urlResponse, data: data, error: error)
        }
    }

    /// Calls the delegate, if there is one, for the request of the task.
    func notify<Failure: Error>(
        _ call: (any ServicePassthroughDelegate) throws(Failure) -> Void
    ) throws(Failure) {
        guard let delegate else { return }
        let result = DelegateCall.$request.withValue(task.log.request) { () -> Result<Void, Failure> in
            do throws(Failure) { return .success(try call(delegate)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// The request that was sent last; `nil` if none was sent.
    private var sentRequest: URLRequest? { task.log.sent?.urlRequestValue }
}
