import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite("The next request of a mock server", .permit) struct NextRequestTests {
    private func client(_ server: MockServer) -> WebService {
        WebService(server.baseURLString, session: FoundationSession.shared)
    }

    @Test("Requests that have arrived are returned in order")
    func arrived() async throws {
        let server = try MockServer.forTest { _ in 204 }
        for path in ["/a", "/b"] { _ = try await client(server).GET(path).data().value }
        #expect(try await server.nextRequest().path == "/a")
        #expect(try await server.nextRequest().path == "/b")
        #expect(server.receivedRequests.count == 2)
    }

    @Test("Several waiters receive the requests in the order of their calls")
    func waiters() async throws {
        let server = try MockServer.forTest { _ in 204 }
        var waiters: [Task<String, any Error>] = []
        for count in 1...3 {
            waiters.append(Task { try await server.nextRequest().path })
            await eventually { server.stubTable.state.withLock { $0.readers.count } == count }
        }
        for path in ["/1", "/2", "/3"] { _ = try await client(server).POST(path).data().value }
        for (number, waiter) in waiters.enumerated() { #expect(try await waiter.value == "/\(number + 1)") }
    }

    @Test("A cancelled waiter ends and takes no request, and the others end with the server")
    func ends() async throws {
        let server = try MockServer.forTest { _ in 204 }
        let first = Task { try await server.nextRequest().path }
        await eventually { server.stubTable.state.withLock { $0.readers.count } == 1 }
        let second = Task { try await server.nextRequest().path }
        let third = Task { try await server.nextRequest().path }
        await eventually { server.stubTable.state.withLock { $0.readers.count } == 3 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        _ = try await client(server).GET("/a").data().value
        await eventually { server.stubTable.state.withLock { $0.readers.count } == 1 }
        server.stop()
        let results = [await second.result, await third.result]
        #expect(results.compactMap { try? $0.get() } == ["/a"])
        for result in results {
            if case .failure(let error) = result { #expect((error as? WebServiceError)?.code == .mockServer) }
        }
        await #expect(throws: WebServiceError.self) { try await server.nextRequest() }
    }
}
