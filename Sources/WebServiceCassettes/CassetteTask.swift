import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task that replays an exchange on a background thread after `resume()`.
final class CassetteReplayTask: DataTask {
    private let phase = Mutex(TaskPhase.suspended(()))
    private let delivery: BodyDelivery
    private let clock: TaskClock
    private let find: @Sendable () throws -> Cassette.Exchange

    /// - Parameter find: Returns the exchange, or throws the error of the request.
    init(_ delivery: BodyDelivery, _ clock: TaskClock, find: @escaping @Sendable () throws -> Cassette.Exchange) {
        self.delivery = delivery
        self.clock = clock
        self.find = find
    }

    var state: DataTaskState { phase.withLock { $0.state } }

    func resume() {
        guard phase.withLock({ $0.resume() }) != nil else { return }
        clock.async { [self] in
            guard state == .running else { return }
            do { try replay(find()) } catch { delivery.finish(.failure(error)) }
            cancel()
        }
    }

    func suspend() {}

    /// Cancels the replay. `DeliveringTask` then completes the delivery with
    /// `URLError.cancelled`.
    func cancel() { _ = phase.withLock { $0.complete() } }

    private func replay(_ exchange: Cassette.Exchange) {
        let error = exchange.urlError
        if exchange.response == nil, let error { return delivery.finish(.failure(error)) }
        guard let response = exchange.response, let head = response.head(url: exchange.request.url ?? "") else {
            return delivery.finish(.failure(URLError(.badServerResponse)))
        }
        let sent = Int64(exchange.request.body.count)
        if sent > 0 { delivery.send(sent, of: sent) }
        let body = response.body
        let length = response.length ?? Int64(body.count)
        delivery.receive(head, length: length < 0 ? nil : length)
        for start in stride(from: 0, to: body.count, by: 64 << 10) {
            delivery.receive(Data(body[start..<min(start + 64 << 10, body.count)]))
        }
        delivery.finish(error.map { .failure($0) } ?? .success(response.trailerFields))
    }
}

/// A task that selects another task for its request. The selection takes place on a background
/// thread, after `resume()`.
final class CassetteChoiceTask: StreamTask {
    private enum Phase {
        case suspended
        case selecting
        case selected(any StreamTask)
        case cancelled
    }

    private let phase = Mutex(Phase.suspended)
    private let clock: TaskClock
    private let cancelled: any StreamTask
    private let select: @Sendable () -> any StreamTask

    /// - Parameters:
    ///   - cancelled: The task to cancel if this task is cancelled before the selection.
    ///   - select: Returns a task that has not been resumed.
    init(_ clock: TaskClock, cancelled: any StreamTask, select: @escaping @Sendable () -> any StreamTask) {
        self.clock = clock
        self.cancelled = cancelled
        self.select = select
    }

    private var selected: (any StreamTask)? {
        phase.withLock { if case .selected(let task) = $0 { task } else { nil } }
    }

    var state: DataTaskState {
        let (state, task): (DataTaskState, (any StreamTask)?) = phase.withLock { phase in
            switch phase {
            case .suspended: (.suspended, nil)
            case .selecting: (.running, nil)
            case .selected(let task): (.running, task)
            case .cancelled: (.completed, nil)
            }
        }
        return task?.state ?? state
    }

    func resume() {
        let (begins, task): (Bool, (any StreamTask)?) = phase.withLock { phase in
            switch phase {
            case .suspended:
                phase = .selecting
                return (true, nil)
            case .selected(let task): return (false, task)
            case .selecting, .cancelled: return (false, nil)
            }
        }
        task?.resume()
        guard begins else { return }
        clock.async { [self] in
            guard state == .running else { return }
            let task = select()
            let isCurrent = phase.withLock { phase in
                guard case .selecting = phase else { return false }
                phase = .selected(task)
                return true
            }
            if isCurrent { task.resume() }
        }
    }

    func suspend() { selected?.suspend() }
    func receiveMore() { selected?.receiveMore() }

    func cancel() {
        let task: (any StreamTask)? = phase.withLock { phase in
            switch phase {
            case .suspended, .selecting:
                phase = .cancelled
                return cancelled
            case .selected(let task): return task
            case .cancelled: return nil
            }
        }
        task?.cancel()
    }
}
