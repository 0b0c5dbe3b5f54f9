import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// How soon tasks of Foundation end.
@Suite("Sessions of Foundation: real time", .permit)
struct FoundationRealTimeTests {
    @Test(
        "The server sees the connection end after a cancellation",
        arguments: FoundationBacked.allCases)
    func cancelReachesTheWire(kind: FoundationBacked) async throws {
        let listener = try SilentListener()
        let service = WebService("http://127.0.0.1:\(listener.port)", session: kind.session)
        var delays: [Duration] = []
        for _ in 0..<20 {
            let task = service.GET("/").data()
            async let ended = listener.serveOne { task.resume() }
            let connection = try await ended
            let start = ContinuousClock.now
            task.cancel()
            try await connection.end()
            delays.append(start.duration(to: .now))
            let result = await task.result
            #expect(throws: URLError(.cancelled)) { try result.get() }
        }
        print(
            "cancellation to close over \(kind): median \(delays.sorted()[10]), longest \(delays.max() ?? .zero)"
        )
        #expect(delays.sorted()[10] < realTimeLimit(.seconds(1)))
    }

    @Test("A timeout of less than a second does not end a request at once", arguments: FoundationBacked.allCases)
    func shortTimeout(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in MockResponse.text("ale").after(.milliseconds(50)) }
        let service = WebService(server.baseURLString, session: kind.session)
        var text: String?
        // A busy machine may need longer than the timeout, so one of up to three requests counts.
        for _ in 0..<3 where text == nil {
            text = try? await service.GET("/").setTimeout(.milliseconds(900)).string().value
        }
        #expect(text == "ale")
    }

    @Test("A request without a response ends at its timeout", arguments: FoundationBacked.allCases)
    func timeout(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in MockResponse.text("ale").after(.seconds(50)) }
        let task = WebService(server.baseURLString, session: kind.session).GET("/")
        let result = await task.setTimeout(.seconds(1)).setDeadline(.seconds(40)).delivered()
        #expect(result.urlErrorCode == .timedOut)
    }

    @Test(
        "Cancellation, deadline and timeout are prompt while a TLS handshake hangs",
        arguments: FoundationBacked.allCases)
    func hangingHandshake(kind: FoundationBacked) async throws {
        let listener = try SilentListener()
        let service = WebService("https://127.0.0.1:\(listener.port)", session: kind.session)
        let start = ContinuousClock.now
        let late = await service.GET("/").setDeadline(.milliseconds(200)).delivered()
        #expect((late.error as? WebServiceError)?.code == .deadline)
        let errors = Collected<URLError.Code?>()
        let task = service.GET("/").responseError { errors.add(($0 as? URLError)?.code) }
        _ = try await listener.serveOne { task.resume() }
        task.cancel()
        #expect(await errors.wait() == [.cancelled])
        #expect(start.duration(to: .now) < realTimeLimit(.seconds(5)))
        if kind == .foundationSession {
            #expect(await service.GET("/").setTimeout(.milliseconds(200)).delivered().urlErrorCode == .timedOut)
        }
    }
}
