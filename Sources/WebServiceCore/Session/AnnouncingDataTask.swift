import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A data task that says so before it is first resumed.
final class AnnouncingDataTask: DataTask {
    private enum Phase { case created, resumed, cancelled }

    private let phase = Mutex(Phase.created)
    private let inner: (any DataTask)?
    private let announce: @Sendable () -> Void

    /// - Parameter inner: What is resumed; `nil` when there is nothing but the announcement.
    init(_ inner: (any DataTask)?, announce: @escaping @Sendable () -> Void) {
        self.inner = inner
        self.announce = announce
    }

    var state: DataTaskState {
        inner?.state ?? (phase.withLock { $0 } == .created ? .suspended : .completed)
    }

    func resume() {
        let isFirst = phase.withLock { phase in
            guard phase == .created else { return false }
            phase = .resumed
            return true
        }
        if isFirst { announce() }
        inner?.resume()
    }

    func suspend() {
        inner?.suspend()
    }

    func cancel() {
        let hasNothingToCancel = phase.withLock { phase in
            defer { if phase == .created { phase = .cancelled } }
            return phase == .created && inner == nil
        }
        if hasNothingToCancel { announce() } else { inner?.cancel() }
    }
}
