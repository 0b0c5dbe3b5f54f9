/// What typed tasks need: to wait for the end of a task.
extension SessionTask {
    /// Resumes the task and waits until everything that was added to it has run. Cancelling the awaiting Swift task cancels the exchange.
    func finished() async {
        await withTaskCancellationHandler {
            if shared.withLock({ $0.adopt() }) {
                resume()
                await withCheckedContinuation { continuation in
                    if shared.withLock({ $0.wait(continuation) }) { continuation.resume() }
                }
                if shared.withLock({ $0.takeOver() }) { runHandlers() }
                if shared.withLock({ $0.chain.isDrained }) { return }
            }
            await withCheckedContinuation { continuation in
                add(.step { _ in continuation.resume() })
                resume()
            }
        } onCancel: {
            cancel()
        }
    }

    /// The answer, once there is an outcome.
    func response() throws -> Response {
        let outcome = context.outcome
        if let error = outcome.error { throw error }
        return Response(outcome)
    }
}
