import ArgumentParser
import Foundation
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Testing
import Tracing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import Recipes

@Suite("Recipes with packages", .timeLimit(.minutes(2)))
struct RecipesTests {
    let mock = MockService()

    @Test("swift-log: an exchange is one entry with method, path and status, and without the query")
    func swiftLog() async throws {
        let handler = InMemoryLogHandler()
        mock.service.interceptors = [LoggingInterceptor(logger: Logger(label: "client") { _ in handler })]
        mock.on(.GET, "/brewers", .status(204))
        _ = try await mock.service.GET("/brewers?token=canary").data().value
        let entry = try #require(handler.entries.first)
        #expect(handler.entries.count == 1)
        #expect(entry.level == .info)
        #expect(entry.metadata["method"] == "GET")
        #expect(entry.metadata["path"] == "/brewers")
        #expect(entry.metadata["status"] == "204")
    }

    @Test("swift-log: a failed exchange is an entry with the error")
    func swiftLogFailure() async throws {
        let handler = InMemoryLogHandler()
        mock.service.interceptors = [LoggingInterceptor(logger: Logger(label: "client") { _ in handler })]
        mock.on(.GET, "/brewers", .error(URLError(.notConnectedToInternet)))
        await #expect(throws: URLError.self) { try await mock.service.GET("/brewers").data().value }
        #expect(handler.entries.map(\.level) == [.error])
    }

    @Test("swift-metrics: each exchange records its duration by method and status")
    func swiftMetrics() async throws {
        let metrics = TestMetrics()
        mock.service.interceptors = [MetricsInterceptor(factory: metrics)]
        mock.on(.GET, "/brewers", [.status(200), .status(200), .error(URLError(.timedOut))])
        for _ in 0..<3 { _ = await mock.service.GET("/brewers").data().result }
        let accepted = try metrics.expectTimer(
            "http_client_request_duration", [("method", "GET"), ("status", "200")])
        let failed = try metrics.expectTimer(
            "http_client_request_duration", [("method", "GET"), ("status", "error")])
        #expect(accepted.values.count == 2)
        #expect(failed.values.count == 1)
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
        #expect(spans.map(\.operationName) == ["GET", "screen"])
        let client = try #require(spans.first)
        let screen = try #require(spans.last)
        #expect(client.traceID == screen.traceID)
        #expect(client.parentSpanID == screen.spanID)
        #expect(client.status?.code == .error)
        let request = try #require(mock.session.receivedRequests.first)
        #expect(request.headers[Headers.Name(InMemoryTracer.traceIDKey)] == client.traceID)
        #expect(request.headers[Headers.Name(InMemoryTracer.spanIDKey)] == client.spanID)
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
