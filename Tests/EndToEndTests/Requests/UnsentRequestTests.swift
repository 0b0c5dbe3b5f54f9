import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceResilience
import WebServiceServer

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// Requests to ports without a listener, over the sessions that report that nothing was sent.
@Suite("Requests that were not sent", .permit)
struct UnsentRequestTests {
    enum Transport: CaseIterable, Sendable {
        case foundation
        #if WEBSERVICE_CURL
        case curl
        #endif

        /// A session without connections.
        func session() throws -> any Session {
            switch self {
            case .foundation: FoundationSession()
            #if WEBSERVICE_CURL
            case .curl: try CurlSession()
            #endif
            }
        }
    }

    /// Returns the URL of a port without a listener.
    private func vacant() throws -> String {
        let server = try MockServer()
        server.stop()
        return server.baseURLString
    }

    /// Sends a POST to a port without a listener.
    private func post(_ service: WebService) async throws -> (error: URLError?, attempts: Int) {
        service.interceptors = [.retry(baseDelay: .nanoseconds(1))]
        let task = service.POST(try vacant() + "/orders").setBody(Data("ale".utf8)).string().resume()
        let error = await #expect(throws: URLError.self) { try await task.value }
        return (error, task.timeline.events.count { $0.kind == .attempt })
    }

    @Test("A POST whose connection is refused is retried", arguments: Transport.allCases)
    func refused(transport: Transport) async throws {
        let (error, attempts) = try await post(WebService("", session: try transport.session()))
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.requestWasNotSent == true)
        #expect(attempts == 3)
    }

    @Test("A POST to a host that does not exist is retried", arguments: Transport.allCases)
    func unknownHost(transport: Transport) async throws {
        let service = WebService("", session: try transport.session())
        service.interceptors = [.retry(maximumAttempts: 2, baseDelay: .nanoseconds(1))]
        let task = service.POST("http://nothing.invalid/orders").string().resume()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cannotFindHost)
        #expect(task.timeline.events.count { $0.kind == .attempt } == 2)
    }

    @Test("A POST whose connection is refused is sent to the next endpoint", arguments: Transport.allCases)
    func failOver(transport: Transport) async throws {
        let server = try MockServer.forTest { _ in .text("ordered") }
        let dead = try vacant()
        let service = WebService(dead, session: try transport.session())
        let origins = [dead, server.baseURLString].compactMap(Origin.init)
        service.interceptors = [.retry(baseDelay: .nanoseconds(1)), .endpoints(origins)]
        #expect(try await service.POST("/orders").setBody(Data("ale".utf8)).string().value == "ordered")
        #expect(server.receivedRequests.map(\.body) == [Data("ale".utf8)])
    }

    @Test(
        "A hedged request is sent to the next endpoint as soon as a connection is refused",
        arguments: Transport.allCases)
    func hedging(transport: Transport) async throws {
        let server = try MockServer.forTest { _ in .text("beer") }
        let dead = try vacant()
        let service = WebService(dead, session: try transport.session())
        let origins = [dead, server.baseURLString].compactMap(Origin.init)
        service.interceptors = [
            .hedging(after: .fixed(.seconds(1_000)), hedgesFailures: true), .endpoints(origins),
        ]
        let task = service.GET("/beer").string()
        #expect(try await task.value == "beer")
        #expect(
            task.timeline.events.first { $0.kind == .hedging }?.detail
                == "second request, because the first one failed")
    }

    @Test("A POST that the server has received is not sent again", arguments: Transport.allCases)
    func received(transport: Transport) async throws {
        var silent = MockResponse(statusCode: 200)
        silent.wire = .disconnect
        let server = try MockServer.forTest { [silent] _ in silent }
        let service = WebService(server.baseURLString, session: try transport.session())
        service.interceptors = [.retry(baseDelay: .nanoseconds(1))]
        let error = await #expect(throws: URLError.self) {
            try await service.POST("/orders").setBody(Data("ale".utf8)).string().value
        }
        #expect(error?.requestWasNotSent == false)
        #expect(server.receivedRequests.count == 1)
    }

    @Test("A FoundationSession that has had a connection does not report that nothing was sent")
    func earlierConnection() async throws {
        let server = try MockServer.forTest { _ in .text("first") }
        let service = WebService("", session: FoundationSession())
        #expect(try await service.GET(server.baseURLString).string().value == "first")
        let (error, attempts) = try await post(service)
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.requestWasNotSent == false)
        #expect(attempts == 1)
    }

    #if WEBSERVICE_CURL
    @Test("A CurlSession that has had a connection reports that nothing was sent")
    func earlierCurlConnection() async throws {
        let server = try MockServer.forTest { _ in .text("first") }
        let service = WebService("", session: try CurlSession())
        #expect(try await service.GET(server.baseURLString).string().value == "first")
        #expect(try await post(service).attempts == 3)
    }

    @Test("A body that can be read only once is sent after a refused connection, because none of it was read")
    func unreadBody() async throws {
        let server = try MockServer.forTest { _ in .text("ordered") }
        let dead = try vacant()
        let service = WebService(dead, session: try CurlSession())
        let origins = [dead, server.baseURLString].compactMap(Origin.init)
        service.interceptors = [.retry(baseDelay: .nanoseconds(1)), .endpoints(origins)]
        let (chunks, feed) = AsyncStream<Data>.makeStream()
        feed.yield(Data("ale".utf8))
        feed.finish()
        let task = service.POST("/orders").setBody(.stream(chunks, length: 3, contentType: "text/plain"))
        #expect(try await task.string().value == "ordered")
        #expect(server.receivedRequests.map(\.body) == [Data("ale".utf8)])
    }
    #endif
}
