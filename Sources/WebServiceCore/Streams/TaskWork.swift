import Foundation

/// The work that produces the value of a task in place of its request. A download, for example,
/// sends several requests.
package struct TaskWork: Sendable {
    let task: SessionTask
    /// The request of the task.
    package let request: Request

    /// The clock of the service.
    package var clock: TaskClock { task.clock }

    /// Whether the service's account has ended. If so, files for a later continuation are removed.
    package var accountHasEnded: Bool { task.service.setup.scope?.isEnded == true }

    /// Returns the URL to which the request is sent.
    package func url() throws -> String { try task.encode(request).url }

    /// Waits while the task is suspended.
    package func permission() async throws { try await task.permission() }

    /// Waits for a duration, and records the wait.
    package func pause(for duration: Duration) async throws { try await task.pause(for: duration) }

    /// Adds an event to the timeline of the task.
    package func record(_ kind: Timeline.Kind, _ detail: String) { task.record(kind, detail) }

    /// Reports progress to the handlers of the task.
    package func report(_ progress: TransferProgress) { task.report(progress) }

    /// Returns the pause between an error within a body and the request for the remaining bytes;
    /// `nil` if that request must not be sent. The first ``ContinuationPolicy`` of the interceptors
    /// decides.
    ///
    /// - Parameters:
    ///   - attempt: The number of attempts that delivered few bytes, including the first.
    ///   - spent: The duration of these attempts.
    ///   - isIdempotent: Whether the continuation is idempotent, regardless of the method. Defaults
    ///     to `false`.
    package func pauseToContinue(
        after error: any Error, attempt: Int, spent: Duration, isIdempotent: Bool = false
    ) -> Duration? {
        var request = request
        if isIdempotent { request.method = .HEAD }
        return task.service.setup.order.adding(request.options.interceptors).interceptors.lazy
            .compactMap { $0 as? any ContinuationPolicy }
            .first?
            .pauseToContinue(request, after: error, attempt: attempt, spent: spent, in: task)
    }

    /// Returns the error that the error mappers of the request and the service create for an
    /// unacceptable response.
    package func mappedError(for response: Response) -> (any Error)? { task.mappedError(for: response) }

    /// Sends one request of the work, and returns its whole response.
    ///
    /// - Parameters:
    ///   - accepts: A closure that returns whether to return a response whose status is an error
    ///     instead of throwing that error.
    ///   - progress: A closure that receives the progress of the request.
    ///   - interim: A closure that receives the interim heads, if the session provides them, on a
    ///     thread of the session, which the closure must not block. An error that it throws ends
    ///     the request.
    package func send(
        _ request: Request, accepting accepts: (Response) -> Bool,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in },
        interim: @escaping @Sendable (ResponseHead) throws -> Void = { _ in }
    ) async throws -> Response {
        let exchange = SessionTask(task.service, request, over: task.substitution, isListed: false)
        exchange.setParent(task.exchangeID)
        exchange.receiveInterim(by: interim)
        exchange.forwardProgress(to: progress)
        defer {
            exchange.cancel()
            task.add(exchange.log)
        }
        do {
            let response = try await exchange.typed(accepting: .any) { $0 }.value
            return accepts(response) ? response : try await exchange.typed { $0 }.value
        } catch let error as WebServiceError {
            guard let response = error.incompleteResponse else { throw error }
            return accepts(response) ? response : try await exchange.typed { $0 }.value
        }
    }

    /// One request of the work and the head of its response.
    ///
    /// The request has its own task, because interceptors, redirects and limits apply to each
    /// request. The records of that task are added to those of the work.
    package struct Stream: Sendable {
        private let exchange: SessionTask
        private let owner: SessionTask
        private let stream: TypedTask<StreamedResponse>

        /// - Parameters:
        ///   - statuses: The statuses that do not count as errors.
        ///   - bufferSize: The maximum number of bytes buffered in memory.
        package init(of work: TaskWork, _ request: Request, accepting statuses: Set<Int>, bufferSize: Int) {
            var request = request
            request.options.isStreamed = true
            owner = work.task
            exchange = SessionTask(owner.service, request, over: owner.substitution, isListed: false)
            exchange.setParent(owner.exchangeID)
            exchange.streamBody(bufferSize: bufferSize, batchSize: bufferSize / 2)
            stream = exchange.typed(accepting: .these(statuses)) { StreamedResponse($0) }
        }

        /// Sends the request, and returns the response when its head has arrived.
        package func response() async throws -> StreamedResponse { try await stream.value }

        /// Ends the exchange and adds its records. This method is called once.
        package func end() {
            exchange.cancel()
            owner.add(exchange.log)
        }
    }
}

extension SessionTask {
    /// Returns a typed task whose value the work produces in place of the request.
    ///
    /// The work runs in a Swift task that starts at the first `resume()` and is cancelled with the
    /// task. The handlers of the result wait until the work has ended, even after a cancellation,
    /// so the handlers can use the same files and other resources.
    package func perform<Value: Sendable>(
        _ work: @escaping @Sendable (TaskWork) async throws -> (value: Value, response: Response)
    ) -> TypedTask<Value> {
        let outcome = TypedResult<Value>()
        let replaced = call.withLock { state in
            state.setProducer(isDownload: true) { task, start in
                WorkRun().start(TaskWork(task: task, request: start.request), outcome, work)
            }
        }
        withExtendedLifetime(replaced) {}
        // The list of exchanges in flight shows the progress.
        return typed(accepting: .any) { _ in try outcome.value }.onProgress { _ in }
    }

    /// Replaces the sending of the request with a closure that provides the response. This method
    /// has no effect after `resume()`, on a task with a ``TaskWork``, or on a task without its own
    /// request.
    package func replaceSending(by producer: @escaping @Sendable (_ task: SessionTask, _ request: Request) -> Void) {
        let replaced = call.withLock { state in
            state.isDownload || state.hasProducer && state.unsent?.request.url == nil
                ? nil : state.setProducer { task, start in producer(task, start.request) }
        }
        withExtendedLifetime(replaced) {}
    }
}

/// The Swift task of a ``TaskWork``. The handlers of the result wait until it has ended.
private final class WorkRun: Prelude {
    private let isOver = Once<Bool>()

    func start<Value: Sendable>(
        _ work: TaskWork, _ outcome: TypedResult<Value>,
        _ operation: @escaping @Sendable (TaskWork) async throws -> (value: Value, response: Response)
    ) {
        let (task, request) = (work.task, work.request)
        let setup = task.service.setup
        // The files of an account are not removed while the work uses them.
        let token = setup.scope?.begin()
        if setup.scope != nil, token == nil { return task.cancel() }
        task.observe(setup.delegateReference)
        task.observe(by: setup.observers, request)
        // An observer or another thread may have cancelled the task, whose handlers would then not
        // wait for the work.
        guard task.attach(self) else { return }
        task.attach(
            Task(executorPreference: task.clock.executor) {
                let result = await Result.catching { try await operation(work) }
                    .mapError { error -> any Error in
                        guard var error = error as? WebServiceError else { return error }
                        error.request = error.request ?? request
                        return error
                    }
                withExtendedLifetime(token) {}
                self.isOver.set(true)
                outcome.set(result.map(\.value))
                task.complete(result.map(\.response))
            })
        if let deadline = request.options.bodyDeadline { task.scheduleDeadline(deadline) }
    }

    func end() {}

    func delivered() async { _ = await isOver.value }
}
