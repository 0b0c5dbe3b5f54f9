import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

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
/// arrives. A request that is cancelled before it is sent causes no notification.
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
    /// - Parameter send: Returns the session's data task, which calls the given completion before
    ///   it completes.
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
