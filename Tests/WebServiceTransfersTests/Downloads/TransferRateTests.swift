import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Rates of transfers", .permit)
struct TransferRateTests {
    private static let second: UInt64 = 1_000_000_000

    private func expect<Value: Equatable>(
        _ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(value == expected, sourceLocation: sourceLocation)
    }

    @Test("The rate is the average of the last three seconds, and unknown before a tenth of a second")
    func rate() {
        var rate = TransferRate()
        expect(rate.add(0, at: 5 * Self.second), nil)
        expect(rate.add(50, at: 5 * Self.second + Self.second / 20), nil)
        expect(rate.add(100, at: 5 * Self.second + Self.second / 10), 1_000)
        // 1,000 bytes per second for ten seconds, then 3,000.
        for tenth in UInt64(2)...100 {
            let value = rate.add(Int64(100 * tenth), at: 5 * Self.second + tenth * Self.second / 10) ?? 0
            #expect(abs(value - 1_000) < 1)
        }
        for tenth in UInt64(1)...40 {
            _ = rate.add(Int64(10_000 + 300 * tenth), at: 15 * Self.second + tenth * Self.second / 10)
        }
        let value = rate.add(22_300, at: 19 * Self.second + Self.second / 10) ?? 0
        #expect(abs(value - 3_000) < 1)
        expect(rate.add(22_000, at: 20 * Self.second), nil)
        expect(rate.add(22_100, at: 21 * Self.second), 100)
        rate.reset()
        expect(rate.add(22_100, at: 22 * Self.second), nil)
    }

    @Test("The estimate is the rest divided by the rate")
    func estimate() {
        let progress = TransferProgress(bytesReceived: 250, bytesToReceive: 1_000, bytesPerSecond: 50)
        #expect(progress.secondsRemaining == 15)
        #expect(TransferProgress(bytesReceived: 250, bytesToReceive: 1_000, bytesPerSecond: 0).secondsRemaining == nil)
        #expect(TransferProgress(bytesReceived: 250, bytesPerSecond: 50).secondsRemaining == nil)
        #expect(TransferProgress(bytesReceived: 9, bytesToReceive: 5, bytesPerSecond: 1).secondsRemaining == 0)
        let sent = TransferProgress(bytesSent: 250, bytesToSend: 1_000, bytesToReceive: 9, bytesPerSecond: 50)
        #expect(sent.secondsRemaining == 15)
    }

    @Test("A limit delays the bytes after those that exceed it, and makes up for long delays")
    func limit() {
        var limit = RateLimit(bytesPerSecond: 1_000, now: 0)
        expect(limit.take(500, at: 0), .milliseconds(500))
        expect(limit.take(500, at: Self.second / 2), .milliseconds(500))
        // 50 ms late: the time is made up for. Ten seconds late: a tenth of a second is.
        expect(limit.take(500, at: Self.second + Self.second / 20), .milliseconds(450))
        expect(limit.take(500, at: 11 * Self.second), .milliseconds(400))
        expect(limit.take(0, at: 20 * Self.second), .zero)
    }
}
