import Foundation

/// The deadline of the exchange.
extension SessionTask {
    /// Sets the duration after which the task fails with ``WebServiceError/Code/deadline``.
    func scheduleDeadline(_ deadline: Duration) {
        let alarm = context.clock.schedule(after: deadline, self)
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
