import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What typed tasks need: to wait for the end of a task.
extension SessionTask {
    /// Resumes the task and waits until everything that was added to it has run. Cancelling the awaiting Swift task cancels the exchange.
    ///
    /// Where only steps of our own are in the chain, they run where it is awaited, so that no other thread has to be woken.
    func finished() async {
        await withTaskCancellationHandler {
            let isAdopted = shared.withLock { $0.adopt() }
            if isAdopted {
                resume()
                await withCheckedContinuation { continuation in
                    if shared.withLock({ $0.wait(continuation) }) { continuation.resume() }
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

    /// The answer, once there is an outcome.
    func response() throws -> Response {
        guard let result else { throw URLError(.unknown) }  // it is called when the task has completed
        return try result.get()
    }
}
