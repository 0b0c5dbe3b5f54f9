import Foundation

/// A request that is sent while another request of the same exchange is in flight.
///
/// It has a separate exchange, whose parent is that exchange, so that observers can distinguish the
/// events of the two requests.
package struct ConcurrentRequest: Sendable {
    private let parent: ExchangeContext
    private let next: Next

    /// - Parameter next: The stages after the interceptor that sends the request.
    package init(_ next: Next) {
        parent = next.context
        let context = ExchangeContext(parent.service, over: parent.substitution, in: parent.root)
        let exchange = Exchange(setup: next.exchange.setup, context: context)
        self.next = Next(exchange: exchange, interceptors: next.interceptors, position: next.position)
    }

    /// Sends the request. Called once. When the request ends, its events are added to the parent's
    /// timeline.
    ///
    /// - Throws: `URLError.cancelled` as soon as the Swift task is cancelled, or an error of
    ///   `next`.
    package func response(to request: Request) async throws -> Response {
        try await parent.permission()
        let context = next.context
        context.inherit(from: parent)
        context.begin(.unencoded(request))
        context.observe(by: next.exchange.setup.observers, request, isComposite: false)
        let result = await withTaskCancellationHandler {
            await Result.catching { try await next(request) }.mapError(context.locating)
        } onCancel: {
            _ = end(.failure(URLError(.cancelled)))
        }
        guard end(result) else { throw URLError(.cancelled) }
        return try result.get()
    }

    /// Ends the exchange and adds its events to the timeline of the parent.
    ///
    /// - Returns: `false` without an effect if the exchange has already ended.
    private func end(_ result: Result<Response, any Error>) -> Bool {
        guard next.context.end(result) else { return false }
        parent.add(next.context.record, without: .body)
        return true
    }

    /// Makes the response of this request that of the parent, in place of the response to the
    /// parent's own request, which the caller has cancelled. Called at most once, after
    /// ``response(to:)`` has returned.
    package func replaceParent() {
        parent.adopt(next.context)
    }
}

extension ExchangeContext {
    /// Adopts the trace and the settings of the exchange on whose behalf this one is sent.
    fileprivate func inherit(from other: ExchangeContext) {
        let (id, trace, options) = other.state.withLock { ($0.queue?.exchange.id, $0.trace, $0.options) }
        state.withLock { ($0.parent, $0.trace, $0.options) = (id, trace, options) }
    }

    /// Adopts the streamed body of another exchange, if there is one.
    fileprivate func adopt(_ other: ExchangeContext) {
        let now = clock.now
        let progress = other.latestProgress
        other.forwardProgress { [self] in report($0) }
        let (body, metrics, receiver) = other.state.withLock { state in
            state.bodyOwner = self
            let body = state.stream == nil ? nil : state.record.events.last { $0.kind == .body }
            return (body, state.record.metrics.transport, state.stream)
        }
        let (delivers, replaced) = state.withLock { state in
            let replaced = [state.stream].compactMap(\.self) + state.receivers.all
            state.stream = receiver
            return (state.endOpenAttempt(.failure(URLError(.cancelled)), at: now), replaced)
        }
        for receiver in replaced { receiver.discard() }
        if delivers { deliver() }
        // That of a body in transfer is reported as it continues.
        if receiver == nil || body != nil, let progress { report(progress) }
        receiver?.moveBody(to: self)
        if let body { endBody(body, metrics) }
    }
}
