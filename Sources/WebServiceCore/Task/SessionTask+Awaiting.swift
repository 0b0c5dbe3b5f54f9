import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Awaiting the end of a task, for typed tasks.
extension SessionTask {
    /// Resumes the task and waits until all its handlers have run. Cancelling the awaiting Swift
    /// task cancels the exchange.
    ///
    /// If the chain contains only steps without custom closures, they run in the awaiting Swift
    /// task, which avoids waking another thread.
    func finished() async {
        await withTaskCancellationHandler {
            let isAdopted = shared.withLock { $0.adopt() }
            if isAdopted {
                resume()
                await withCheckedContinuation { continuation in
                    let isOver = shared.withLock { state in state.wait { continuation.resume() } }
                    if isOver { continuation.resume() }
                }
                if shared.withLock({ $0.takeOver() }) { runHandlers(isAdopted: true) }
                if shared.withLock({ $0.chain.isDrained }) { return }
            }
            await withCheckedContinuation { continuation in
                let wake: @Sendable (StepInput) -> (any Error)? = { _ in
                    continuation.resume()
                    return nil
                }
                add(.step(wake, isOwn: true))
                if !isAdopted { resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Returns the response of a completed task.
    func response() throws -> Response {
        guard let result else { throw URLError(.unknown) }  // unreachable: callers wait for completion
        return try result.get()
    }
}
