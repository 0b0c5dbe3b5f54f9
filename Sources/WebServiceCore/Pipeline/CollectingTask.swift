import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Collects a streamed body and then sends it, for a session that cannot send a body while it is
/// produced.
final class CollectingTask: DataTask {
    private enum Phase {
        case created
        case collecting(Task<Void, Never>?)
        case sending(any DataTask)
        case complete
    }

    private let phase = Mutex(Phase.created)
    private let stream: StreamedBody
    private let clock: TaskClock
    private let fail: @Sendable (any Error) -> Void
    private let send: @Sendable (Data) -> any DataTask

    /// - Parameters:
    ///   - fail: Called with the error if the request is not sent.
    ///   - send: Returns the task that sends the bytes, which is then resumed.
    init(
        _ stream: StreamedBody, _ clock: TaskClock, fail: @escaping @Sendable (any Error) -> Void,
        send: @escaping @Sendable (Data) -> any DataTask
    ) {
        self.stream = stream
        self.clock = clock
        self.fail = fail
        self.send = send
    }

    var state: DataTaskState {
        phase.withLock { phase in
            switch phase {
            case .created: .suspended
            case .collecting: .running
            case .sending(let task): task.state
            case .complete: .completed
            }
        }
    }

    func resume() {
        let isFirst = phase.withLock { phase in
            guard case .created = phase else { return false }
            phase = .collecting(nil)
            return true
        }
        guard isFirst else { return }
        let collection = Task(executorPreference: clock.executor) { [self] in
            do { begin(try await stream.collected()) } catch { end(error) }
        }
        let isNeeded = phase.withLock { phase in
            if case .collecting = phase { phase = .collecting(collection) }
            if case .complete = phase { return false }
            return true
        }
        if !isNeeded { collection.cancel() }
    }

    private func begin(_ body: Data) {
        guard state == .running else { return }
        let task = send(body)
        let isNeeded = phase.withLock { phase in
            guard case .collecting = phase else { return false }
            phase = .sending(task)
            return true
        }
        if isNeeded { task.resume() } else { task.cancel() }
    }

    /// Completes the task without a request.
    private func end(_ error: any Error) {
        let wasOpen = phase.withLock { phase in
            switch phase {
            case .created, .collecting:
                phase = .complete
                return true
            case .sending, .complete: return false
            }
        }
        if wasOpen { fail(error) }
    }

    /// Has no effect: a task that has not been resumed sends nothing.
    func suspend() {}

    func cancel() {
        switch phase.withLock({ $0 }) {
        case .created: end(URLError(.cancelled))
        case .collecting(let collection):
            end(URLError(.cancelled))
            collection?.cancel()
        case .sending(let task): task.cancel()
        case .complete: break
        }
    }
}
