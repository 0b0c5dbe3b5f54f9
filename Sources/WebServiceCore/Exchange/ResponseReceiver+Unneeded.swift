import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The rest of a body that is received only so that its connection can be reused.
///
/// If the status is not 200 to 299, the head of the response determines what follows: a redirect, a
/// retry or new credentials. An error of the body fails the exchange only if the response is the
/// result of the exchange (``Exchange/response(to:)``).
struct UnneededBody {
    /// The maximum size in bytes of a body that is not needed, and of a body that is not streamed
    /// because of its status. If the body is longer, the session ends the transfer.
    static let maximumBytes = 1 << 20
    /// The maximum wait for the end of a body that is not needed.
    static let maximumWait = Duration.seconds(1)

    /// The error after which the bytes are discarded; `nil` if there was none.
    private(set) var failure: (any Error)?
    /// The number of bytes that may follow.
    private var remaining = 0
    /// The alarm after ``maximumWait``.
    var alarm: Alarm?
    /// The reply that did not wait for the end of the body; `nil` if there is none.
    var reply: ResponseReceiver.Reply?

    /// - Parameter received: The number of bytes before the error.
    mutating func fail(_ error: any Error, received: Int) {
        guard failure == nil else { return }
        (failure, remaining) = (error, max(0, Self.maximumBytes - received))
    }

    /// Counts bytes that are discarded.
    ///
    /// - Returns: `false` if there are too many.
    mutating func discard(_ count: Int) -> Bool {
        remaining -= min(count, remaining + 1)
        return remaining >= 0
    }
}

extension ResponseReceiver.State {
    /// Returns the response with its body, or the error that ended the exchange.
    mutating func response(
        _ body: Data, _ end: Result<Headers, any Error>, from source: Response.Source,
        metrics: TransportMetrics? = nil
    ) -> Result<Response, any Error> {
        guard let head else {
            let missing = [NSLocalizedDescriptionKey: "no response was received"]
            return end.flatMap { _ in .failure(URLError(.badServerResponse, userInfo: missing)) }
        }
        if case .failure(let error) = end {
            guard unneeded.failure != nil || head.outlasts(error) else { return .failure(error) }
            unneeded.fail(error, received: body.count)
            decoder = nil
        }
        var response = Response(data: body, head: head, source: source, transport: metrics)
        if let failure = unneeded.failure { response.bodyFailure = failure }
        return .success(response)
    }
}

extension ResponseReceiver {
    /// Returns whether the redirect stage sends another request, or fails, because of a head.
    func isFollowed(_ head: ResponseHead) -> Bool {
        guard (300..<400).contains(head.status), let request, isAwaited else { return false }
        let decision = request.options.redirectPolicy.decision(
            for: request, at: head.url, status: head.status, locations: head.locations, followed: 0)
        if case .deliver = decision { return false }
        return true
    }

    /// Records an error of the body, and discards the rest of the body, unless the error ends the
    /// exchange.
    ///
    /// - Returns: `false` if the session must end the exchange.
    func discardBody(after error: any Error) -> Bool {
        let isDiscarded = state.withLock { state in
            guard state.unneeded.failure == nil, state.head?.outlasts(error) == true else { return false }
            state.unneeded.fail(error, received: state.body.count)
            state.decoder = nil
            return true
        }
        if isDiscarded { limitWait() }
        return isDiscarded
    }

    /// Replies after ``UnneededBody/maximumWait``, unless the body ends earlier.
    func limitWait() {
        guard isAwaited, state.withLock({ $0.isOpen && $0.unneeded.alarm == nil }) else { return }
        let alarm = clock.schedule(after: UnneededBody.maximumWait) { [self] in
            let text = "the body of a response that is not used did not end within \(UnneededBody.maximumWait)"
            interrupt(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: text]))
        }
        let isNeeded = state.withLock { state in
            if state.isOpen { state.unneeded.alarm = alarm }
            return state.isOpen
        }
        if !isNeeded { clock.cancel(alarm) }
    }

    /// Replies with the response received so far, or with the error, and cancels the session's
    /// task.
    func interrupt(_ error: any Error) {
        let (waiter, task) = state.withLock { state -> (Waiter?, (any DataTask)?) in
            guard state.isOpen else { return (nil, nil) }
            let body = state.body.take()
            let reply = Reply(result: state.response(body, .failure(error), from: source))
            state.unneeded.reply = reply
            return state.set(reply)
        }
        task?.cancel()
        waiter?.resume()
    }
}
