import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An exchange that is sent on behalf of another one: by the endpoint of a typed request, or by the
/// HTTP cache. It has one result and no handlers.
final class ChildExchange: AlarmTarget, InFlightWork {
    let context: ExchangeContext
    let request: Request
    /// The first result: that of the exchange, the deadline or a cancellation.
    private let first = Once<Result<Response, any Error>>()

    /// A Boolean value that indicates whether the service lists the exchange, because its parent
    /// may end before it.
    private let isListed: Bool
    /// A Boolean value that indicates whether the exchange ends at the deadline of its request.
    private let hasDeadline: Bool

    /// - Parameter parent: The identifier of the exchange on whose behalf the request is sent.
    init(
        _ service: any PipelineSource, _ request: Request, parent: UInt64?, isListed: Bool = false,
        hasDeadline: Bool = true
    ) {
        self.isListed = isListed
        self.hasDeadline = hasDeadline
        context = ExchangeContext(service)
        self.request = request
        context.setParent(parent)
    }

    /// Sends the request and notifies the delegate of the result. Called once.
    ///
    /// - Returns: The result; `URLError.cancelled` as soon as the Swift task is cancelled.
    func result() async -> Result<Response, any Error> {
        defer { if isListed { context.service.end(workID) } }
        let exchange: Exchange
        do {
            exchange = try Exchange(beginning: request, in: context, of: isListed ? self : nil)
        } catch {
            return .failure(error)
        }
        let alarm = hasDeadline ? context.clock.schedule(after: request.options.requestDeadline, self) : nil
        let work: @Sendable () async -> Void = { [self] in
            end(await Result.catching { try await exchange.response(to: request) })
        }
        let result: Result<Response, any Error>
        if exchange.stages.runsCustomCode(for: request) {
            // Custom code may ignore its cancellation.
            context.begin(.unencoded(request))
            let task = Task(executorPreference: context.clock.executor, operation: work)
            result = await withTaskCancellationHandler {
                await first.value
            } onCancel: {
                cancel()
            }
            task.cancel()
        } else {
            await work()
            result = await first.value
        }
        if let alarm { context.clock.cancel(alarm) }
        let observed = ObservedResult(
            result: result, delegate: exchange.stages.delegateReference?.delegate, exchange: context)
        let rejection = observed.rejection()
        observed.reportMetrics()
        return rejection.map { .failure($0) } ?? result
    }

    private func end(_ result: Result<Response, any Error>) {
        let result = result.mapError(context.locating)
        if context.end(result) { first.set(result) }
    }

    /// Ends the exchange with `URLError.cancelled`, unless it has ended.
    func cancel() { end(.failure(URLError(.cancelled))) }

    var workID: ObjectIdentifier { context.workID }

    var snapshot: InFlightExchange? {
        InFlightExchange(self, .request, request, progress: context.latestProgress)
    }

    /// Ends the exchange at its deadline.
    package func ring() { end(.failure(WebServiceError.deadline(of: request))) }
}

extension WebServiceError {
    /// Returns the error of an exchange that exceeded its deadline.
    static func deadline(of request: Request) -> WebServiceError {
        deadline(request.options.requestDeadline, of: request)
    }

    static func deadline(_ duration: Duration, of request: Request? = nil) -> WebServiceError {
        WebServiceError(
            .deadline,
            "the exchange exceeded its deadline of \(duration); set a longer one if the server needs more time",
            request: request)
    }
}
