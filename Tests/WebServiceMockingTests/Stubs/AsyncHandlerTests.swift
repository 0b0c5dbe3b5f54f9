import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@Suite("Asynchronous stubs", .permit) struct AsyncHandlerTests {
    private let gate = AsyncStream.makeStream(of: String.self)

    /// Waits for a text of the gate.
    private func text() async throws -> String {
        for await text in gate.stream { return text }
        throw CancellationError()
    }

    @Test("The response is that of the closure, after it has awaited")
    func session() async throws {
        let session = MockSession()
        let service = WebService("http://a.test", session: session)
        session.on(.GET, "/users/{id}") { request in
            .text("\(request.pathParameters["id"] ?? "") \(try await text())")
        }
        session.on(.method(.POST)) { _ in
            await Task.yield()
            throw URLError(.dnsLookupFailed)
        }
        let task = service.GET("/users/7").string().resume()
        gate.continuation.yield("ann")
        #expect(try await task.value == "7 ann")
        #expect((await service.POST("/").data().result.failure as? URLError)?.code == .dnsLookupFailed)
        #expect(throws: Never.self) { try session.verify() }
    }

    @Test("A body that is a sequence follows an asynchronous closure")
    func chunks() async throws {
        let session = MockSession()
        session.on(.GET, "/") { _ in
            await Task.yield()
            return MockResponse(
                statusCode: 200,
                chunks: AsyncStream<Data> {
                    $0.yield(Data("ale".utf8))
                    $0.finish()
                })
        }
        let service = WebService("http://a.test", session: session)
        #expect(try await service.GET("/").string().value == "ale")
        var bytes = Data()
        for try await chunk in try await service.GET("/").stream().value.body { bytes += chunk }
        #expect(bytes == Data("ale".utf8))
    }

    @Test("The closure is cancelled with the request and when it times out")
    func cancellation() async throws {
        let clock = TestClock()
        let session = MockSession(clock: clock)
        let service = WebService(baseURLString: "http://a.test", clock: clock)
        service.session = session
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        let calls = Collected<Void>()
        session.on(.GET, "/") { _ in
            calls.add(())
            let never = AsyncStream<Int>.makeStream()
            for await _ in never.stream {}
            end.yield(Task.isCancelled)
            return 200
        }
        var iterator = ends.makeAsyncIterator()
        let task = service.GET("/").data().resume()
        await eventually { calls.values.count == 1 }
        task.cancel()
        #expect((await task.result.failure as? URLError)?.code == .cancelled)
        #expect(await iterator.next() == true)
        let late = service.GET("/").data().resume()
        await eventually { calls.values.count == 2 }
        await clock.advance(by: .seconds(61))
        #expect((await late.result.failure as? URLError)?.code == .timedOut)
        #expect(await iterator.next() == true)
    }

    @Test("A server awaits the closure, and cancels it when the client closes the connection")
    func server() async throws {
        let server = try MockServer.forTest()
        let service = WebService(server.baseURLString, session: FoundationSession.shared)
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        server.on(.GET, "/a") { _ in .text(try await text()) }
        server.on(.GET, "/b") { _ in
            let never = AsyncStream<Int>.makeStream()
            for await _ in never.stream {}
            end.yield(Task.isCancelled)
            return 200
        }
        server.on(.GET, "/c") { _ in
            await Task.yield()
            throw URLError(.unknown)
        }
        gate.continuation.yield("ann")
        #expect(try await service.GET("/a").string().value == "ann")
        #expect(await (service.GET("/c").data().result.failure as? WebServiceError)?.response?.status == 500)
        let task = service.GET("/b").data().resume()
        _ = try await server.nextRequest()
        await eventually { server.receivedRequests.count == 3 }
        task.cancel()
        var iterator = ends.makeAsyncIterator()
        #expect(await iterator.next() == true)
    }
}
