import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A service with a clock of the system.
@Suite(.permit) struct ServiceClockRealTimeTests {
    @Test("A clock of the system is that of the service")
    func identity() {
        #expect(WebService(baseURLString: "", clock: ContinuousClock()).clock is ContinuousClock)
        #expect(WebService(baseURLString: "", clock: SuspendingClock()).clock is SuspendingClock)
        #expect(WebService(baseURLString: "").clock is SuspendingClock)
    }

    @Test("A continuous clock measures the pauses of retries, and its date is that of the system")
    func continuous() async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/brewers", [.status(503), .status(503), .text("ale")])
        let service = WebService(baseURLString: server.baseURLString, clock: ContinuousClock())
        service.interceptors = [RetryPolicy(maximumAttempts: 3, baseDelay: .milliseconds(20))]
        let task = service.GET("/brewers").setDeadline(.seconds(30)).string()
        let start = ContinuousClock.now
        #expect(try await task.value == "ale")
        #expect(ContinuousClock.now - start < .seconds(10))
        #expect(server.receivedRequests.count == 3)
    }
}
