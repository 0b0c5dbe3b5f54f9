import Foundation
import TestSupport

@testable import WebServiceCore
@testable import WebServicePagination

/// A paginated list that the test controls: it records each page request and waits for a response
/// from the test.
final class HandList: Sendable {
    final class Ask: Sendable {
        let position: Int?
        private let page: Once<Result<Page<Int, Int>, any Error>>
        let wasCancelled = Mutex(false)

        init(_ position: Int?, _ page: Once<Result<Page<Int, Int>, any Error>>) {
            self.position = position
            self.page = page
        }

        deinit { fail(TestError(name: "forgotten")) }

        var isCancelled: Bool { wasCancelled.withLock { $0 } }
        func respond(_ items: [Int], next: Int?) { page.set(.success(Page(items, next: next))) }
        func fail(_ error: any Error = TestError()) { page.set(.failure(error)) }

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
            let page = Once<Result<Page<Int, Int>, any Error>>()
            return try await withTaskCancellationHandler {
                current.withLock { $0 = Ask(position, page) }
                if Task.isCancelled { current.withLock { $0 }?.cancel(heedsCancel) }
                if let ask = current.withLock({ $0 }) { asks.add(ask) }
                return try await page.value.get()
            } onCancel: {
                current.withLock { $0 }?.cancel(heedsCancel)
                cancels.add(position)
            }
        }
    }
}
