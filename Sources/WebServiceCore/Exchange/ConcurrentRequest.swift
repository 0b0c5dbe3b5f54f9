import Foundation

/// A request that an interceptor sends concurrently, such as a hedge of a request in flight or a
/// request for several exchanges that share its response.
///
/// The request has a separate exchange, whose parent is the exchange of the interceptor, so that
/// observers can distinguish the events of both.
package struct ConcurrentRequest: Sendable {
    private let parent: SessionTask
    private let next: Next
    private let addsEvents: Bool

    /// - Parameters:
    ///   - next: The stages after the interceptor that sends the request.
    ///   - addsEvents: Whether the events are added to the parent's timeline when the request ends.
    ///     Defaults to `true`.
    package init(_ next: Next, addsEvents: Bool = true) {
        parent = next.task
        self.addsEvents = addsEvents
        let task = SessionTask(
            parent.service, Request(url: ""), over: parent.substitution, in: parent.root, isListed: false)
        let exchange = Exchange(setup: next.exchange.setup, task: task)
        self.next = Next(exchange: exchange, interceptors: next.interceptors, position: next.position)
    }

    /// Sends the request and returns its result, which is `URLError.cancelled` if the Swift task is
    /// cancelled first. This method must be called only once.
    package func result(of request: Request) async -> Result<Response, any Error> {
        do { try await parent.permission() } catch { return .failure(error) }
        let task = next.task
        task.inherit(from: parent)
        task.begin(request)
        task.observe(by: next.exchange.setup.observers, request, isComposite: false)
        let result = await withTaskCancellationHandler {
            await Result.catching { try await next(request) }.mapError(task.locating)
        } onCancel: {
            _ = complete(.failure(URLError(.cancelled)))
        }
        return complete(result) ? result : .failure(URLError(.cancelled))
    }

    /// Ends the exchange.
    ///
    /// - Returns: `false` if the exchange has already ended, in which case the call has no effect.
    private func complete(_ result: Result<Response, any Error>) -> Bool {
        guard next.task.complete(result) else { return false }
        if addsEvents { parent.add(next.task.log, without: .body) }
        return true
    }

    /// The events so far.
    package var log: ExchangeLog.Record { next.task.log }

    /// Makes the response of this request the response of the parent, instead of the response to
    /// the parent's own request, which the caller has cancelled. This method is called at most
    /// once, after ``result(of:)`` has returned.
    package func replaceParent() {
        parent.adopt(next.task)
    }
}

extension SessionTask {
    /// Adopts the trace and the settings of the task on whose behalf this one is sent.
    fileprivate func inherit(from other: SessionTask) {
        let (id, trace, options) = other.call.withLock { ($0.events?.exchange.id, $0.trace, $0.options) }
        call.withLock { call in
            (call.parent, call.trace, call.options) = (id, trace, options)
            (call.options.events, call.options.tail) = (nil, nil)
        }
        if let bufferSize = options.bufferSize { streamBody(bufferSize: bufferSize, batchSize: options.batchSize) }
    }

    /// Adopts the streamed body of another task, if there is one.
    fileprivate func adopt(_ other: SessionTask) {
        let now = clock.now
        let tail = tail
        let body = tail.flatMap { tail in other.tail?.move(to: tail) }
        let (events, replaced, receivers) = call.withLock { call in
            let replaced = [tail?.receiver].compactMap(\.self) + call.receivers.all
            tail?.begin(body?.receiver, call.log.request, call.events)
            let delivers = call.endOpenAttempt(.failure(URLError(.cancelled)), at: now)
            return (delivers ? call.events : nil, replaced, call.progress)
        }
        for receiver in replaced { receiver.discard() }
        events?.deliver()
        body?.receiver?.reportProgress(to: receivers)
        // The progress of a body in transfer is reported while the transfer continues.
        if body?.receiver == nil || body?.end != nil, let progress = other.latestProgress { receivers.report(progress) }
        guard let tail, let body else { return }
        body.receiver?.moveBody(to: tail)
        if body.receiver != nil, let end = body.end { tail.end(end.entry, end.metrics) }
    }
}
