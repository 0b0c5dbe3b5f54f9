public import WebServiceCore

/// A queue that limits the number of tasks in flight.
///
/// ```swift
/// let queue = TaskQueue(maximumInFlight: 3)
/// let tasks = urls.map { queue.add(service.GET($0).download(into: folder)) }
/// ```
/// - The queue resumes tasks with a higher priority first. It resumes tasks with the same priority
///   in the order in which they were added. Awaiting or resuming a waiting task does not start it
///   earlier.
/// - A task is in flight until it has a result. Its handlers and asynchronous steps run afterwards,
///   and may add further tasks and await them. A streamed response has its result when its head has
///   arrived.
/// - A waiting task has the state `.suspended` and is not among the exchanges of its service. Its
///   deadline begins when it is started.
/// - A waiting task that is cancelled leaves the queue.
/// - The queue retains its tasks. When the queue is deallocated, all of them are cancelled, whether
///   they are waiting or in flight. Retain the queue while its tasks are needed.
/// - A task that is added in the closure of `WebService.withDeadline(_:isolation:_:)` belongs to
///   the scope of the closure, and fails when its turn comes if the scope has ended.
///
/// All members may be used from any thread.
public final class TaskQueue: Sendable {
    private let places: TaskPlaces

    /// Creates an empty queue.
    ///
    /// - Parameter maximumInFlight: The maximum number of tasks in flight. A value below 1 counts
    ///   as 1.
    public init(maximumInFlight: Int) {
        places = TaskPlaces(maximum: max(1, maximumInFlight))
    }

    deinit {
        places.cancelAll()
    }

    /// Adds a task, and resumes it when its turn comes.
    ///
    /// If fewer tasks than the maximum are in flight, the turn comes immediately, and the task is
    /// started on the calling thread. A task that was already resumed, or that is already in a
    /// queue, is not added.
    ///
    /// - Parameters:
    ///   - task: A task of any kind: a download, an upload, a request or a typed request.
    ///   - priority: The priority in the queue. Defaults to `nil`: the priority of the request.
    /// - Returns: The task.
    @discardableResult
    public func add<Value>(_ task: TypedTask<Value>, priority: Request.Priority? = nil) -> TypedTask<Value> {
        places.add(task.task, priority ?? task.request.options.priority)
        return task
    }

    /// Changes the priority of a waiting task. Has no effect on other tasks.
    public func setPriority<Value>(_ priority: Request.Priority, of task: TypedTask<Value>) {
        places.setPriority(priority, of: ObjectIdentifier(task.task))
    }

    /// Cancels all tasks, waiting or in flight. Tasks that are added later are not affected.
    public func cancelAll() {
        places.cancelAll()
    }
}
