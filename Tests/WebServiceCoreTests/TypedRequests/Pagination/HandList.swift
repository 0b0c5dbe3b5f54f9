import Foundation
@testable import WebServiceCore

/// A paginated list that the test controls: it records each page request and waits for a response
/// from the test.
final class HandList: Sendable {
    final class Ask: Sendable {
        let position: Int?
        private let waiter: OneTimeContinuation<Page<Int, Int>>
        let wasCancelled = Mutex(false)

        init(_ position: Int?, _ waiter: OneTimeContinuation<Page<Int, Int>>) {
            self.position = position
            self.waiter = waiter
        }

        var isCancelled: Bool { wasCancelled.withLock { $0 } }
        func answer(_ items: [Int], next: Int?) { waiter.resume(with: .success(Page(items, next: next))) }
        func fail(_ error: any Error = TestError()) { waiter.resume(with: .failure(error)) }

        func cancel(_ isHeeded: Bool) {
            wasCancelled.withLock { $0 = true }
            if isHeeded { fail(CancellationError()) }
        }
    }

    let asks = Collected<Ask>()
    let cancels = Collected<Int?>()
    private let heedsCancel: Bool

    init(heedsCancel: Bool = true) {
        self.heedsCancel = heedsCancel
    }

    var paginator: Paginator<Int, Int> {
        Paginator { [asks, cancels, heedsCancel] position in
            let current = Mutex<Ask?>(nil)
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let ask = Ask(position, OneTimeContinuation(continuation, forgotten: TestError(name: "forgotten")))
                    current.withLock { $0 = ask }
                    if Task.isCancelled { ask.cancel(heedsCancel) }
                    asks.add(ask)
                }
            } onCancel: {
                current.withLock { $0 }?.cancel(heedsCancel)
                cancels.add(position)
            }
        }
    }
}
