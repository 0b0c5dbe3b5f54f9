import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Curl session: limits of the rate, real time", .permit)
struct CurlRateRealTimeTests {
    private static let body = Data((0..<384 << 10).map { UInt8($0 % 251) })

    private func seconds(since start: ContinuousClock.Instant) -> Double { (ContinuousClock.now - start) / .seconds(1) }

    @Test("A response is received at the configured rate, and other requests are not delayed by it")
    func reception() async throws {
        let server = try MockServer.forTest { $0.path == "/small" ? MockResponse("ale") : MockResponse(Self.body) }
        let service = WebService(server, try CurlSession { $0.maximumBytesPerSecondReceived = 128 << 10 })
        var start = ContinuousClock.now
        let task = service.GET("/").resume()
        #expect(try await service.GET("/small").string().value == "ale")
        #expect(try await task.data().value == Self.body)
        #expect(seconds(since: start) >= 1.2)
        start = .now
        var received = Data()
        for try await chunk in try await service.GET("/").stream().value.body { received.append(chunk) }
        #expect(received == Self.body)
        #expect(seconds(since: start) >= 1.2)
    }

    @Test("A request body is sent at the configured rate")
    func sending() async throws {
        let server = try MockServer.forTest { MockResponse($0.body) }
        let service = WebService(server, try CurlSession { $0.maximumBytesPerSecondSent = 128 << 10 })
        let start = ContinuousClock.now
        #expect(try await service.POST("/").setBody(Self.body).data().value == Self.body)
        #expect(seconds(since: start) >= 1.2)
    }

    @Test("A rate out of range is clamped, and never traps or stops a transfer", arguments: [Int.min, -1, 0, 1, .max])
    func range(rate: Int) async throws {
        let server = try MockServer.forTest { MockResponse($0.body) }
        let service = WebService(
            server,
            try CurlSession {
                $0.maximumBytesPerSecondReceived = rate
                $0.maximumBytesPerSecondSent = rate
            })
        let body = Data(count: 8_000)
        #expect(try await service.POST("/").setBody(body).data().value == body)
    }
}
