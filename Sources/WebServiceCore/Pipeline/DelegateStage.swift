import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate stage: the delegate may replace a request, and is notified when it is sent and when
/// its response arrives.
struct DelegateStage {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    let delegate: any ServicePassthroughDelegate

    /// Returns the request that the delegate returns instead of a request, or `nil` to send it
    /// unchanged.
    ///
    /// - Parameter source: The request of the exchange. The replacement has those of its options
    ///   that a `URLRequest` does not have, and none of the fields that may not be sent to the
    ///   origin of the new URL.
    func replacement(for request: URLRequest, source: Request?) -> Request? {
        let modified = DelegateCall.$request.withValue(source) { delegate.modifiedRequest(request: request) }
        guard let modified else { return nil }
        return source?.replaced(with: modified) ?? Request(modified)
    }

    /// Returns a data task that notifies the delegate.
    ///
    /// - Parameters:
    ///   - request: The request as it is sent.
    ///   - source: The request of the exchange.
    ///   - send: Returns the session's data task, which calls the given completion before it
    ///     completes.
    func announcing(_ request: URLRequest, source: Request?, _ send: (@escaping Completion) -> any DataTask)
        -> any DataTask
    {
        let announcement = Announcement(delegate, request, source)
        return AnnouncedDataTask(send(announcement.didReceive), announcement)
    }
}

extension Request {
    /// Returns the request that a delegate returned instead of this one.
    fileprivate func replaced(with urlRequest: URLRequest) -> Request {
        var new = Request(urlRequest)
        let own = new.options
        new.options = options
        (new.options.shouldHandleCookies, new.options.cachePolicy) = (own.shouldHandleCookies, own.cachePolicy)
        // The delegate may have changed this one.
        new.options.timeout = .clamping(seconds: urlRequest.timeoutInterval)
        new.options.compressesBody = false  // the delegate received the compressed body
        (new.downloadsPart, new.credentialFields, new.boundFields) = (downloadsPart, credentialFields, boundFields)
        new.removeForeignFields()
        return new
    }
}

/// Notifies the delegate of one request: once when it is sent, and once when its response arrives.
/// A request that was cancelled before it was sent has no response.
private final class Announcement: Sendable {
    private enum Phase { case created, sent, over }

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

    func willSend() {
        guard advance(from: .created, to: .sent) else { return }
        DelegateCall.$request.withValue(source) { delegate.requestSent(request: request) }
    }

    func didReceive(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
        guard advance(from: .sent, to: .over) else { return }
        DelegateCall.$request.withValue(source) {
            delegate.responseReceived(response: response, data: data, request: request, error: error)
        }
    }

    private func advance(from old: Phase, to new: Phase) -> Bool {
        phase.withLock { phase in
            guard phase == old else { return false }
            phase = new
            return true
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
