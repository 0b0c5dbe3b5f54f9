import ArgumentParser
import Foundation
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing
import Tracing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import Recipes

@Suite("Recipes with packages", .timeLimit(.minutes(2)))
struct RecipesTests {
    let mock = MockService()

    @Test("swift-log: an exchange is one entry with the template of its path, its status and its attempts")
    func swiftLog() async throws {
        let handler = InMemoryLogHandler()
        mock.service.observers = [.swiftLog(Logger(label: "client") { _ in handler })]
        mock.on(.GET, "/brewers/7", .status(204))
        _ = try await mock.service.GET("/brewers/{id}?token=canary", pathParameters: ["id": 7]).data().value
        let entry = try #require(handler.entries.first)
        #expect(handler.entries.count == 1)
        #expect(entry.level == .info)
        #expect(entry.metadata["method"] == "GET")
        #expect(entry.metadata["path"] == "/brewers/{id}")
        #expect(entry.metadata["status"] == "204")
        #expect(entry.metadata["attempt"] == "1")
        #expect(entry.metadata["error"] == nil)
        #expect(!"\(entry)".contains("canary"))
    }

    @Test("swift-log: a failed attempt and its exchange are entries with the error")
    func swiftLogFailure() async throws {
        let handler = InMemoryLogHandler()
        mock.service.observers = [.swiftLog(Logger(label: "client") { _ in handler })]
        mock.on(.GET, "/brewers", .error(URLError(.notConnectedToInternet)))
        await #expect(throws: URLError.self) { try await mock.service.GET("/brewers").data().value }
        #expect(handler.entries.map(\.level) == [.warning, .error])
        #expect(handler.entries.first?.metadata["error"] == "URLError -1009")
    }

    @Test("swift-metrics: each exchange records its duration with the attributes of OpenTelemetry")
    func swiftMetrics() async throws {
        let metrics = TestMetrics()
        mock.service.observers = [.swiftMetrics(factory: metrics)]
        mock.on(.path("/brewers/*"), [.status(200), .status(200), .status(404), .error(URLError(.timedOut))])
        for id in 0..<4 { _ = await mock.service.GET("/brewers/{id}", pathParameters: ["id": id]).data().result }
        let common = [
            ("http.request.method", "GET"), ("server.address", "mock.test"), ("server.port", "443"),
            ("url.template", "/brewers/{id}"),
        ]
        func count(_ others: [(String, String)]) throws -> Int {
            try metrics.expectTimer("http.client.request.duration", common + others).values.count
        }
        #expect(try count([("http.response.status_code", "200")]) == 2)
        #expect(try count([("http.response.status_code", "404"), ("error.type", "404")]) == 1)
        #expect(try count([("error.type", "URLError -1001")]) == 1)
    }

    @Test("swift-distributed-tracing: the span is a child of the caller's span and its context is sent")
    func tracing() async throws {
        let tracer = InMemoryTracer()
        mock.service.interceptors = [TracingInterceptor(tracer: tracer)]
        mock.on(.GET, "/brewers", .status(404))
        try await tracer.withSpan("screen") { _ in
            _ = try await mock.service.GET("/brewers").data().validateNothing().value
        }
        let spans = tracer.finishedSpans
        #expect(spans.map(\.operationName) == ["GET /brewers", "screen"])
        let client = try #require(spans.first)
        let screen = try #require(spans.last)
        #expect(client.traceID == screen.traceID)
        #expect(client.parentSpanID == screen.spanID)
        #expect(client.status?.code == .error)
        let request = try #require(mock.session.receivedRequests.first)
        #expect(request.headers[Headers.Name(InMemoryTracer.traceIDKey)] == client.traceID)
        #expect(request.headers[Headers.Name(InMemoryTracer.spanIDKey)] == client.spanID)
    }

    @Test("swift-distributed-tracing: each attempt is a span with the attributes of OpenTelemetry")
    func attributes() async throws {
        let tracer = InMemoryTracer()
        mock.service.interceptors = [.retry(baseDelay: .zero), TracingInterceptor(tracer: tracer)]
        mock.on(.GET, "/brewers/7", [.error(URLError(.cannotConnectToHost)), .status(503), .status(200)])
        _ = try await mock.service.GET("/brewers/{id}?token=canary", pathParameters: ["id": 7]).data().value
        let spans = tracer.finishedSpans.map { span in
            var values: [String: String] = [:]
            span.attributes.forEach { values[$0] = "\($1)" }
            return values
        }
        #expect(spans.count == 3)
        for span in spans {
            #expect(span["http.request.method"]?.contains("GET") == true)
            #expect(span["url.template"]?.contains("/brewers/{id}") == true)
            #expect(span["server.address"]?.contains("mock.test") == true)
            #expect(span["server.port"]?.contains("443") == true)
            #expect(span["url.full"]?.contains("https://mock.test/brewers/7?token=") == true)
            #expect(span["url.full"]?.contains("canary") == false)
        }
        #expect(spans[0]["error.type"]?.contains("URLError") == true)
        #expect(spans[0]["http.response.status_code"] == nil)
        #expect(spans[1]["error.type"]?.contains("503") == true)
        #expect(spans[2]["error.type"] == nil)
        #expect(spans[2]["http.response.status_code"]?.contains("200") == true)
    }

    @Test("Without arguments, the observer and the interceptor use those of the process")
    func installed() async throws {
        let service = mock.service
        mock.on(.GET, "/brewers", .status(204))
        service.observers = [.swiftMetrics()]
        service.interceptors = [.retry(), TracingInterceptor()]
        #expect(try await service.GET("/brewers").data().value.isEmpty)
    }

    @Test("swift-service-lifecycle: a request in flight ends before the group, and later ones are refused")
    func lifecycle() async throws {
        let server = try MockServer()
        defer { server.stop() }
        let (arrivals, arrival) = AsyncStream<Void>.makeStream()
        let (turns, turn) = AsyncStream<Void>.makeStream()
        server.on(.GET, "/slow") { _ in
            arrival.yield()
            for await _ in turns { break }
            return .status(204)
        }
        let client = WebService(baseURLString: server.baseURLString)
        let group = ServiceGroup(services: [ClientLifecycle(client)], logger: Logger(label: "group"))
        let running = Task { try await group.run() }
        let request = client.GET("/slow").empty().resume()
        for await _ in arrivals { break }
        await group.triggerGracefulShutdown()
        var refusal: WebServiceError?
        while refusal == nil {
            do { _ = try await client.GET("/other").data().validateNothing().value } catch {
                refusal = error as? WebServiceError
            }
        }
        #expect(refusal?.code == .serviceInvalidated)
        turn.yield()
        try await request.value
        try await running.value
    }

    @Test("swift-argument-parser: a command sends its request to the base URL of its option")
    func argumentParser() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.path("/brewers") && .query("state", "vermont"), .json([["name": "Long Trail"]]))
        let command = try #require(
            ListBrewers.parseAsRoot(["--url", server.baseURLString, "vermont"]) as? ListBrewers)
        #expect(try await command.names() == ["Long Trail"])
    }
}
