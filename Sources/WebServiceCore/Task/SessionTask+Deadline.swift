import Foundation

/// The deadline of the exchange.
extension SessionTask {
    /// Sets the duration after which the task fails with ``WebServiceError/Code/deadline``.
    func scheduleDeadline(_ deadline: Duration) {
        guard hasDeadline else { return }
        hold(context.clock.schedule(after: deadline, self))
    }

    /// Applies the scope in which the task is resumed.
    ///
    /// - Throws: ``WebServiceError/Code/deadline`` if the scope has ended.
    func enterScope(_ start: TaskState.Start) throws(WebServiceError) -> TaskState.Start {
        // A passive task has neither a request nor a type.
        guard let scope = DeadlineScope.current, start.hasRequest || type != nil else { return start }
        shared.withLock { $0.scope = scope }
        var start = start
        let rest = scope.rest
        start.request.options.scopeDeadline = rest
        guard rest > .zero else {
            if start.hasRequest { context.begin(.unencoded(start.request)) }
            throw WebServiceError.deadline(rest, of: start.hasRequest ? start.request : nil)
        }
        // The exchange of a typed request may be shared.
        guard !start.hasRequest else { return start }
        hold(
            context.clock.schedule(after: rest) { [self] in
                complete(.failure(WebServiceError.deadline(rest)), isInterrupted: true)
            })
        return start
    }

    private func hold(_ alarm: Alarm) {
        if !shared.withLock({ $0.setAlarm(alarm) }) {
            context.clock.cancel(alarm)
            // The task was cancelled before the service listed it.
            if isListed { service.end(workID) }
        }
    }
}

extension SessionTask: AlarmTarget {
    /// Ends the task at its deadline. After the head of a streamed response,
    /// ``ResponseReceiver/ring()`` ends the body instead.
    package func ring() {
        complete(.failure(WebServiceError.deadline(of: request)), isInterrupted: true)
    }
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
