import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A download in progress: runs the transfer in a Swift task, and provides the result of the task.
///
/// The handlers of the task wait until the transfer has released its file, even after a
/// cancellation, so that they can begin another download to the destination.
final class DownloadRun: Prelude {
    private let task: SessionTask
    private let request: Request
    private let options: DownloadOptions
    private let outcome: TypedResult<DownloadedFile>
    private let isOver = Once<Bool>()

    init(_ task: SessionTask, _ request: Request, _ options: DownloadOptions, outcome: TypedResult<DownloadedFile>) {
        self.task = task
        self.request = request
        self.options = options
        self.outcome = outcome
    }

    /// Starts the download, at the first `resume()` of the task.
    func start() {
        let stages = task.service.stages
        task.observe(stages.delegateReference)
        task.context.observe(by: stages.observers, request)
        _ = task.shared.withLock { $0.attach(self) }  // no result precedes the start
        let work = Task(executorPreference: task.context.clock.executor) {
            let result = await self.result()
            self.isOver.set(true)
            self.outcome.set(result)
            self.task.complete(result.map(\.response))
        }
        task.attach(work)
        if let deadline = request.options.bodyDeadline { task.scheduleDeadline(deadline) }
    }

    private func result() async -> Result<DownloadedFile, any Error> {
        do {
            var transfer = try DownloadTransfer(task, request, options)
            defer { transfer.file?.close() }
            return .success(try await transfer.run())
        } catch var error as WebServiceError {
            error.request = error.request ?? request
            return .failure(error)
        } catch {
            return .failure(error is CancellationError ? URLError(.cancelled) : error)
        }
    }

    // MARK: Prelude

    func end() {}

    func delivered() async { _ = await isOver.value }
}
