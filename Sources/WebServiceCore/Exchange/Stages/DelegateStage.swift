import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate stage: the delegate may replace a request, and is notified when it is sent and when
/// its response arrives.
extension Stages {
    /// Adds the cookies to a request, and lets the delegate replace it.
    ///
    /// The jar's cookies are not stored in the request's fields, so that a redirect does not retain
    /// them. If the delegate changes the URL, the cookies for the new URL are sent.
    ///
    /// - Returns: The request to send, and the announcement to the delegate; `nil` without a
    ///   delegate.
    func delegated(_ request: EncodedRequest, _ cookies: String?, _ clock: TaskClock) throws
        -> (EncodedRequest, Announcement?)
    {
        let sent = cookies.map { request.adding("Cookie", $0) } ?? request
        guard let delegate = delegateReference?.delegate else { return (sent, nil) }
        let (stage, source) = (DelegateStage(delegate: delegate), request.source)
        let urlRequest = try sent.urlRequest()
        guard var replacement = stage.replacement(for: urlRequest, source: source) else {
            return (sent, Announcement(delegate, urlRequest, source))
        }
        let kept = cookies.map { replacement.headers.removeCookies(Set($0.cookiePairs)) } ?? []
        var replaced = try replacement.encode()
        let isSameURL = replaced.url == request.url
        let cookies = isSameURL ? kept.joined(separator: "; ") : self.cookies(for: replaced, clock) ?? ""
        if !cookies.isEmpty { replaced = replaced.adding("Cookie", cookies) }
        return (replaced, Announcement(delegate, try replaced.urlRequest(), source))
    }
}

struct DelegateStage {
    typealias Completion = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    let delegate: any ServicePassthroughDelegate

    /// Returns the delegate's replacement for a request, or `nil` to send the request unchanged.
    ///
    /// - Parameter source: The request of the exchange. The replacement retains the options that a
    ///   `URLRequest` cannot contain, and has none of the fields that may not be sent to the origin
    ///   of the new URL.
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
        return announcement.announcing(send(announcement.didReceive))
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

    /// Returns a task that notifies the delegate before it is first resumed.
    func announcing(_ dataTask: any DataTask) -> any DataTask { AnnouncedDataTask(dataTask, self) }

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

extension Headers {
    /// Removes cookies from the field `Cookie`.
    ///
    /// - Parameter cookies: The cookies as `name=value`.
    /// - Returns: The cookies that were removed.
    fileprivate mutating func removeCookies(_ cookies: Set<Substring>) -> [Substring] {
        let pairs = values(for: .cookie).map(\.cookiePairs).joined()
        let others = pairs.filter { !cookies.contains($0) }
        self[.cookie] = others.isEmpty ? nil : others.joined(separator: "; ")
        return pairs.filter(cookies.contains)
    }
}

extension String {
    /// The cookies of a field value (RFC 6265, section 4.2.1).
    fileprivate var cookiePairs: [Substring] {
        utf8.split(separator: UInt8(ascii: ";")).map { Substring(ASCII.trimmed($0)) }.filter { !$0.isEmpty }
    }
}

/// A boxed weak reference to a delegate, because a state with an inline weak reference cannot be
/// moved as plain memory.
final class DelegateReference: Sendable {
    private struct Reference: Sendable {
        weak var delegate: (any ServicePassthroughDelegate)?
    }

    private let reference: Mutex<Reference>

    init(_ delegate: any ServicePassthroughDelegate) {
        reference = Mutex(Reference(delegate: delegate))
    }

    var delegate: (any ServicePassthroughDelegate)? { reference.withLock { $0.delegate } }
}
