extension TypedTask {
    /// Changes the request with a closure; see ``SessionTask/configure(_:)``.
    @discardableResult
    public func configure(_ change: (inout Request) -> Void) -> Self {
        task.configure(change)
        return self
    }

    /// The request with the changes of all setters, before the interceptors change it.
    public var request: Request { task.request }

    /// The events so far; see ``SessionTask/timeline``.
    public var timeline: Timeline { task.timeline }

    /// The metrics so far; see ``SessionTask/metrics``.
    public var metrics: ServiceTaskMetrics { task.metrics }

    /// The state, the metrics, the progress and the request at one instant; see
    /// ``SessionTask/status``.
    public var status: SessionTask.Status { task.status }
}
