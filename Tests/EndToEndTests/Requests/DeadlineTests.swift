import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Timeouts of attempts and deadlines of scopes over every session that uses the network.
@Suite("Deadlines over a network", .permit)
struct DeadlineTests {
    private let clock = TestClock()

    private func service(_ server: MockServer, _ session: RealSession) throws -> WebService {
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try session.session()
        return service
    }

    private func expectDeadline(_ body: () async throws -> Void) async {
        let error = await #expect(throws: WebServiceError.self) { try await body() }
        #expect(error?.code == .deadline)
    }

    @Test(
        "An attempt without a response ends after its timeout, and a retry succeeds",
        arguments: RealSession.allCases)
    func attempts(session: RealSession) async throws {
        let server = try MockServer.forTest()
        var silent = MockResponse(statusCode: 200)
        silent.wire = .noResponse
        server.on(.GET, "/x", [silent, .text("second")])
        let service = try service(server, session)
        service.options.attemptTimeout = .seconds(3)
        service.interceptors = [.retry(baseDelay: .milliseconds(1))]
        let task = service.GET("/x").string().resume()
        await eventually { server.receivedRequests.count == 1 }
        await clock.advance(by: .seconds(4))
        #expect(try await task.value == "second")
        #expect(task.timeline.events.map(\.kind.description).filter { $0 == "attempt" }.count == 2)
    }

    @Test(
        "The timeout of an attempt does not apply to the body of a stream",
        arguments: RealSession.streaming)
    func streams(session: RealSession) async throws {
        let (chunks, feed) = AsyncStream<Data>.makeStream()
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, chunks: chunks) }
        let service = try service(server, session)
        service.options.attemptTimeout = .seconds(3)
        let log = try await service.GET("/log").stream().value
        await clock.advance(by: .seconds(20))
        feed.yield(Data("one".utf8))
        feed.finish()
        #expect(try await log.body.collect(upTo: 100) == Data("one".utf8))
    }

    @Test("A scope ends the streams that are opened in it", arguments: RealSession.streaming)
    func streamsInScope(session: RealSession) async throws {
        let (chunks, feed) = AsyncStream<Data>.makeStream()
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, chunks: chunks) }
        let service = try service(server, session)
        feed.yield(Data("one".utf8))
        let log = try await service.withDeadline(.seconds(5)) { try await service.GET("/log").stream().value }
        var iterator = log.body.makeAsyncIterator()
        #expect(try await iterator.next() == Data("one".utf8))
        await clock.advance(by: .seconds(5))
        await expectDeadline { _ = try await iterator.next() }
        feed.finish()
    }

    @Test("A scope ends the downloads that are begun in it", arguments: RealSession.streaming)
    func downloadsInScope(session: RealSession) async throws {
        let (chunks, feed) = AsyncStream<Data>.makeStream()
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, chunks: chunks) }
        let service = try service(server, session)
        let file = TemporaryFolder.forTest().url.appendingPathComponent("a")
        feed.yield(Data("one".utf8))
        let download = await service.withDeadline(.seconds(5)) { service.GET("/a").download(to: file).resume() }
        await eventually { server.receivedRequests.count == 1 }
        await clock.advance(by: .seconds(5))
        await expectDeadline { _ = try await download.value }
        feed.finish()
    }

    @Test("A scope ends an event stream, also while it waits for its next connection")
    func eventsInScope() async throws {
        let server = try MockServer.forTest { _ in .status(503) }
        let service = try service(server, .foundationSession)
        let reader = Task(executorPreference: clock.executor) {
            try await service.withDeadline(.seconds(5)) {
                for try await _ in service.GET("/events").events(.reconnecting(baseDelay: .seconds(60))) {}
            }
        }
        await eventually { server.receivedRequests.count == 1 && service.exchanges.first?.kind == .reconnection }
        await clock.advance(by: .seconds(5))
        await expectDeadline { try await reader.value }
        #expect(server.receivedRequests.count == 1)
    }
}
