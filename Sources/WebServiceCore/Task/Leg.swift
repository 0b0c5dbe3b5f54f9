import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One pass of a request behind the interceptors of a task: the bridge from their `await` to the callbacks of the ``Wire``.
final class Leg: ExchangeOwner {
    private struct State {
        var waiter: CheckedContinuation<Void, Never>?
        var transport: Transport?
        var outcome: Outcome?
    }

    private let state = Mutex(State())
    private let task: SessionTask

    init(of task: SessionTask) {
        self.task = task
    }

    /// Sends the request and waits for the answer. As soon as the Swift task is cancelled, it throws `URLError.cancelled`.
    func response(to request: Request, over wire: Wire) async throws -> Response {
        let encoded = try request.encode()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.outcome == nil { state.waiter = continuation }
                    return state.outcome != nil
                }
                if isOver { continuation.resume() } else { wire.send(encoded, for: self) }
            }
        } onCancel: {
            complete(Outcome(error: URLError(.cancelled)), cancelsTransport: true)
        }
        let outcome = state.withLock { $0.outcome } ?? .none
        if let error = outcome.error { throw error }
        return Response(outcome)
    }

    var delegate: (any ServicePassthroughDelegate)? { task.delegate }
    var recordsEveryAttempt: Bool { true }
    var progress: (@Sendable (TransferProgress) -> Void)? { task.progress }

    func willSend(_ request: EncodedRequest) -> SendPermission {
        let isOver = state.withLock { $0.outcome != nil }
        return isOver ? .refused : task.willSend(request)
    }

    func hold(_ send: @escaping @Sendable () -> Void) {
        task.hold(send)
    }

    func attach(_ transport: Transport) -> Bool {
        let isWanted = state.withLock { state in
            if state.outcome == nil { state.transport = transport }
            return state.outcome == nil
        }
        if !isWanted { transport.cancel() }
        return isWanted
    }

    func didReceive(_ outcome: Outcome, for request: EncodedRequest) {
        task.didReceive(outcome, for: request)
    }

    func record(_ kind: Timeline.Kind, _ detail: String) {
        task.record(kind, detail)
    }

    func complete(_ outcome: Outcome) {
        complete(outcome, cancelsTransport: false)
    }

    private func complete(_ outcome: Outcome, cancelsTransport: Bool) {
        let (waiter, transport) = state.withLock { state in
            guard state.outcome == nil else { return (nil, nil) as (CheckedContinuation<Void, Never>?, Transport?) }
            state.outcome = outcome
            defer {
                state.waiter = nil
                state.transport = nil
            }
            return (state.waiter, state.transport)
        }
        waiter?.resume()
        if cancelsTransport { transport?.cancel() }
    }
}
