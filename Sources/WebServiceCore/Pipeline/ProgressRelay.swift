import Dispatch

/// What handlers are told while a task is under way, and what the handlers of its outcome wait for.
protocol Prelude: AnyObject, Sendable {
    /// Nothing more will come. `then` is called when the handlers know the last, here or in the background.
    func finish(_ then: @escaping @Sendable () -> Void)
}

/// Hands progress on to the handlers of a task: in the background, one call after another, always the latest news, and none after the end.
final class ProgressRelay: Prelude {
    typealias Handler = @Sendable (TransferProgress) -> Void

    private struct State {
        var handlers: [Handler] = []
        var news: TransferProgress?
        var isDelivering = false
        var isOver = false
        var end: (@Sendable () -> Void)?

        enum Step {
            case tell(TransferProgress, [Handler])
            /// Nothing to tell. The handlers come along at the end, to be freed outside the lock.
            case rest((@Sendable () -> Void)?, spent: [Handler])
        }

        mutating func next() -> Step {
            if let news = news.take() { return .tell(news, handlers) }
            isDelivering = false
            defer {
                if isOver { handlers = [] }
                end = nil
            }
            return .rest(end, spent: isOver ? handlers : [])
        }
    }

    private let state = Mutex(State())

    func add(_ handler: @escaping Handler) {
        state.withLock { $0.handlers.append(handler) }
    }

    /// Calls ``update(_:)``.
    var handler: Handler { { self.update($0) } }

    /// There is news. Returns at once.
    func update(_ progress: TransferProgress) {
        let begins = state.withLock { state in
            guard !state.isOver else { return false }
            state.news = progress
            defer { state.isDelivering = true }
            return !state.isDelivering
        }
        if begins { DispatchQueue.global().async { self.deliver() } }
    }

    func finish(_ then: @escaping @Sendable () -> Void) {
        let isDelivering = state.withLock { state in
            state.isOver = true
            if state.isDelivering { state.end = then }
            return state.isDelivering
        }
        if !isDelivering { then() }
    }

    private func deliver() {
        while true {
            switch state.withLock({ $0.next() }) {
            case .tell(let progress, let handlers): for handler in handlers { handler(progress) }
            case .rest(let end, _):
                end?()
                return
            }
        }
    }
}
