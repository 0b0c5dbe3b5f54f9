import Dispatch
import Foundation
import Testing

/// A race on purpose: the thread sanitizer has to report it, or its silence about everything else
/// means nothing. `scripts/test` runs it alone.
@Suite(
    "Canary", .enabled(if: ProcessInfo.processInfo.environment["WEBSERVICE_CANARY"] != nil), .timeLimit(.minutes(10)))
struct ThreadSanitizerCanary {
    // Not safe at all, which is what it is for.
    private nonisolated(unsafe) static var racing = 0

    @Test("two threads write the same memory without a lock")
    func race() {
        DispatchQueue.concurrentPerform(iterations: 64) { _ in
            for _ in 0..<10_000 { Self.racing &+= 1 }
        }
        #expect(Self.racing > 0)
    }
}
