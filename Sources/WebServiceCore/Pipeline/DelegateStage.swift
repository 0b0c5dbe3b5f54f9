import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate stage: the delegate may replace a request, and is notified when it is sent and when
/// its response arrives.
struct DelegateStage {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    let delegate: any ServicePassthroughDelegate

    /// Returns a data task that notifies the delegate.
    ///
    /// - Parameter send: Returns the session's data task, which calls the given completion before
    ///   it completes.
    func dataTask(
        for request: any URLRequestEncodable, _ send: (any URLRequestEncodable, @escaping Completion) -> any DataTask
    ) throws -> any DataTask {
        var (request, urlRequest) = (request, try request.urlRequest())
        let original = request as? EncodedRequest
        let modified = DelegateCall.$request.withValue(original?.source) {
            delegate.modifiedRequest(request: urlRequest)
        }
        if let modified {
            var replacement = Request(modified)
            replacement.options.maximumResponseBytes = original?.maximumResponseBytes
            replacement.options.connectTimeout = original?.source.options.connectTimeout
            replacement.options.expectsContinue = original?.source.options.expectsContinue
            let encoded = try replacement.encode()
            (request, urlRequest) = (encoded, encoded.urlRequestValue)
        }
        let announcement = Announcement(delegate, urlRequest, original?.source)
        return AnnouncedDataTask(send(request, announcement.didReceive), announcement)
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
