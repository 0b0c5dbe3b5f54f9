import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking
import WebServiceResilience
import WebServiceServer

@testable import WebServiceCore

/// Plain requests that share one exchange over every session that uses the network.
@Suite("Shared exchanges over a network", .permit)
struct SharedExchangeTests {
    @Test(
        "Joined tasks send one request, and cancelling one leaves the others",
        arguments: RealSession.allCases)
    func join(session: RealSession) async throws {
        let gate = StreamTests.Gate()
        let server = try MockServer.forTest { _ in
            gate.wait()
            return .text("shared")
        }
        let service = try session.service(server)
        let tasks = (0..<4).map { _ in service.GET("/x").setDuplicates(.join).string().resume() }
        await eventually { server.receivedRequests.count == 1 }
        tasks[0].cancel()
        gate.open()
        for task in tasks.dropFirst() { #expect(try await task.value == "shared") }
        let error = await #expect(throws: URLError.self) { try await tasks[0].value }
        #expect(error?.code == .cancelled)
        #expect(server.receivedRequests.count == 1)
    }

    @Test(
        "Coalesced tasks send one request, and cancelling the first one leaves the others",
        arguments: RealSession.allCases)
    func coalescing(session: RealSession) async throws {
        let gate = StreamTests.Gate()
        let server = try MockServer.forTest { _ in
            gate.wait()
            return .text("shared")
        }
        let service = try session.service(server).withoutDataSource
        service.interceptors = [.coalescing(), .retry()]
        let first = service.GET("/x").string().resume()
        await eventually { server.receivedRequests.count == 1 }
        let others = (0..<3).map { _ in service.GET("/x").string().resume() }
        await eventually { others.allSatisfy { $0.timeline.events.contains { $0.kind == .coalescing } } }
        first.cancel()
        gate.open()
        for task in others { #expect(try await task.value == "shared") }
        let error = await #expect(throws: URLError.self) { try await first.value }
        #expect(error?.code == .cancelled)
        #expect(server.receivedRequests.count == 1)
    }

    @Test(
        "A coalesced request is cancelled when no task waits for it, and the next one is sent",
        arguments: RealSession.allCases)
    func abandonedCoalescing(session: RealSession) async throws {
        let gate = StreamTests.Gate()
        let server = try MockServer.forTest { request in
            if request.headers["X-Number"] == nil { gate.wait() }
            return .text("shared")
        }
        let service = try session.service(server).withoutDataSource
        service.interceptors = [.coalescing { $0.url?.path }]
        let tasks = (0..<2).map { _ in service.GET("/x").string().resume() }
        await eventually { server.receivedRequests.count == 1 }
        // Otherwise, one of them could begin after the other one was cancelled, and send its request.
        await eventually { tasks.contains { $0.timeline.events.contains { $0.kind == .coalescing } } }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        let next = service.GET("/x").setHeaderValue("2", forName: "X-Number").string()
        #expect(try await next.value == "shared")
        #expect(server.receivedRequests.count == 2)
        gate.open()
    }

    @Test("A queued request is sent after the first one has ended", arguments: RealSession.allCases)
    func queue(session: RealSession) async throws {
        let server = try MockServer.forTest()
        server.on(.POST, "/x", [.text("1"), .text("2"), .text("3")])
        let service = try session.service(server)
        let tasks = (0..<3).map { _ in service.POST("/x").setDuplicates(.queue).string().resume() }
        var texts: [String] = []
        for task in tasks { texts.append(try await task.value) }
        #expect(texts == ["1", "2", "3"])
        // One connection suffices for requests that follow each other.
        #expect(server.receivedRequests.count == 3)
    }
}

extension WebService {
    /// A service that ignores the data source of delegates, which other tests of the process have.
    fileprivate var withoutDataSource: WebService {
        WebService(owning: ServiceCore(copying: core, suppliesDelegate: false))
    }
}
