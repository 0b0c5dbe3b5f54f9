import TestSupport
import Testing
@testable import WebServiceTransfers

/// The count of requests without progress.
@Suite("Uploads without progress", .permit)
struct UploadStallTests {
    @Test("Small steps count together, and 64 KiB or a whole piece begin the count again")
    func stalls() {
        var stalls = FruitlessRequests(now: 0)
        for index in 1...7 { stalls.add(Int64(index), countsAgain: true, now: 5) }
        #expect(stalls.count == 7)
        #expect(stalls.spent(12) == .nanoseconds(12))
        stalls.add(64 << 10, countsAgain: true, now: 9)
        #expect(stalls.count == 0)
        #expect(stalls.attempt == 1)
        #expect(stalls.spent(12) == .nanoseconds(3))
        stalls.add(64 << 10, countsAgain: true, now: 10)
        #expect(stalls.count == 1)
        stalls.add(65 << 10, isWhole: true, countsAgain: true, now: 10)
        #expect(stalls.count == 0)
        // The upload has started over.
        stalls.add(0, countsAgain: true, now: 10)
        stalls.add(64 << 10, countsAgain: true, now: 10)
        #expect(stalls.count == 0)
    }
}
