import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("Events and timelines of a cache", .permit)
struct CacheTimelineTests {
    private func explanation(_ task: SessionTask) async -> [String] {
        _ = await task.data().validateNothing().result
        return task.timeline.explain().split(separator: "\n").map(String.init)
    }

    @Test("Fresh, stale, validated and refused responses of a cache are explained")
    func explanations() async {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60, stale-while-revalidate=60"], "x", tag: "\"1\"")
        _ = await explanation(fixture.service.GET("/a"))
        await fixture.cache.finishStoring()
        #expect(
            await explanation(fixture.service.GET("/a")) == [
                "The cache returned a stored response: 0 s old.", "The exchange ended with status 200, source: cache.",
            ])
        fixture.advance(by: 200)
        #expect(
            await explanation(fixture.service.GET("/a")) == [
                "GET https://h/v1/a was sent. The response had status 304, after 0.0 ms.",
                "The server confirmed that the stored response is still valid.",
                "The exchange ended with status 200, source: revalidated.",
            ])
        await fixture.cache.finishStoring()
        fixture.advance(by: 90)
        #expect(
            await explanation(fixture.service.GET("/a")).first
                == "The cache returned a stale response: 90 s old, validated in the background.")
        fixture.serve(["Cache-Control": "no-store"], "x")
        #expect(
            await explanation(fixture.service.GET("/b")).dropFirst().first
                == "The cache did not store the response: no-store in the response.")
    }

    @Test("A fresh, a validated and a stale response of a cache are events, and a validation is an exchange of its own")
    func events() async throws {
        let (fixture, recorder) = (CacheFixture(), EventRecorder())
        fixture.service.observers = [recorder]
        fixture.serve(["Cache-Control": "max-age=60, stale-while-revalidate=60"], "x", tag: "\"1\"")
        _ = try await fixture.get()
        await fixture.cache.finishStoring()
        #expect(recorder.lines().suffix(2) == ["attempt 1 ended 200 network", "ended 200 network"])
        _ = try await fixture.get()
        #expect(recorder.lines(1) == ["created GET https://h/v1/a", "cache: stored, 0 s old", "ended 200 cache"])

        fixture.advance(by: 90)
        _ = try await fixture.get()
        #expect(
            await recorder.ended(2) == [
                "created GET https://h/v1/a", "cache: stale, 90 s old, validated in the background",
                "ended 200 cache",
            ])
        #expect(
            await recorder.ended(3) == [
                "created GET https://h/v1/a", "attempt 1 started GET https://h/v1/a", "head 304",
                "attempt 1 ended 304 network", "cache: validated", "ended 200 revalidated",
            ])
        #expect(recorder.exchanges[3].parent == recorder.exchanges[2].id)

        await fixture.cache.finishStoring()
        fixture.advance(by: 200)
        _ = try await fixture.get()
        #expect(recorder.lines(4).contains("cache: validated"))
        #expect(recorder.lines(4).last == "ended 200 revalidated")
        #expect(recorder.exchanges.count == 5)
    }

    @Test("The times of a cache hit are relative to resume")
    func cacheHit() async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60"], "x")
        _ = try await fixture.service.GET("/x").data().value
        let task = fixture.service.GET("/x").data()
        #expect(try await task.response.source == .cache)
        let timeline = task.task.timeline
        #expect(!timeline.events.isEmpty)
        #expect(timeline.date != nil)
        #expect(timeline.events.allSatisfy { (.zero ..< .seconds(60)).contains($0.start) }, "\(timeline)")
    }
}
