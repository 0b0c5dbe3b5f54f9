import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A download in progress: runs the transfer in a Swift task, and provides the result of the task.
///
/// The handlers of the task wait until the transfer has released its file, even after a
/// cancellation, so that they can begin another download to the destination.
final class DownloadRun: Prelude {
    private struct State {
        var isOver = false
        var then: (@Sendable () -> Void)?
    }

    private let task: SessionTask
    private let request: Request
    private let options: DownloadOptions
    private let answer: Answer<DownloadedFile>
    private let state = Mutex(State())

    init(_ task: SessionTask, _ request: Request, _ options: DownloadOptions, _ answer: Answer<DownloadedFile>) {
        self.task = task
        self.request = request
        self.options = options
        self.answer = answer
    }

    /// Starts the download, at the first `resume()` of the task.
    func start() {
        let pipeline = task.service.pipeline
        task.observe(pipeline.delegateReference)
        task.context.log.observe(by: pipeline.observers, request)
        task.shared.withLock { $0.attach(self) }
        let work = Task(executorPreference: task.context.clock.executor ?? BlockingExecutor.shared) {
            let result = await self.result()
            self.end()
            self.answer.set(result)
            self.task.complete(result.map(\.response))
        }
        task.attach(.preparation(work), deadline: request.options.deadline)
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

    func finish(_ then: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.then = then }
            return state.isOver
        }
        if isOver { then() }
    }

    private func end() {
        let then = state.withLock { state in
            state.isOver = true
            return state.then.take()
        }
        then?()
    }
}
