import Dispatch
import Foundation
import TestSupport
import Testing

/// A deliberate data race. The thread sanitizer must report it; otherwise a run without reports
/// proves nothing. `scripts/test` runs this suite alone.
@Suite(
    "Canary", .enabled(if: ProcessInfo.processInfo.environment["WEBSERVICE_CANARY"] != nil), .permit)
struct ThreadSanitizerCanary {
    // Deliberately unsafe.
    private nonisolated(unsafe) static var racing = 0

    @Test("Two threads write the same memory without a lock")
    func race() {
        DispatchQueue.concurrentPerform(iterations: 64) { _ in
            for _ in 0..<10_000 { Self.racing &+= 1 }
        }
        #expect(Self.racing > 0)
    }
}
