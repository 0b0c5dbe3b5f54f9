import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore

@Suite("Timeline", .permit)
struct TimelineTests {
    @Test("The timeline of a simple exchange has one attempt and, on request, its handlers")
    func plain() async throws {
        let task = WebService.make(HandSession(text: "{}"), timekeeper: nil).GET("/x?token=canary").recordHandlers()
            .responseJSON { _, _ in }.updateUI { _ in }
        _ = try await task.data().value
        let events = task.timeline.events
        #expect(events.map(\.kind) == [.attempt, .handler, .handler, .handler])
        #expect(events.dropFirst().map(\.detail) == ["responseJSON", "updateUI", "typed step"])
        #expect(events.first?.request == "GET https://h/v1/x")
        #expect(events.first?.status == 200)
        #expect(events.allSatisfy { ($0.duration ?? .seconds(-1)) >= .zero })
        #expect(events.allSatisfy { $0.start >= .zero })
        #expect(task.timeline.date != nil)
        #expect(WebService.make().GET("/x").timeline.events.isEmpty)
    }

    @Test("A timeline contains redirects and retries in order and has a readable description")
    func redirected() async throws {
        let session = ScriptedSession([
            .status(503, headers: ["Retry-After": "0"]), .status(302, headers: ["Location": "/v1/y?token=canary"]),
            .status(200, body: "x"),
        ])
        let service = WebService.make(session, timekeeper: nil)
        service.interceptors = [RetryPolicy(pause: { _ in })]
        let task = service.GET("/x").data()
        let response = try await task.response
        #expect(response.redirects.map(\.absoluteString) == ["https://h/v1/x"])
        let timeline = task.task.timeline
        #expect(timeline.events.map(\.kind) == [.attempt, .retry, .wait, .attempt, .redirect, .attempt])
        #expect(timeline.events.filter { $0.kind == .attempt }.map(\.status) == [503, 302, 200])
        let lines = timeline.description.split(separator: "\n")
        #expect(lines.count == 6)
        #expect(lines[0].hasSuffix("GET https://h/v1/x -> 503 "))
        #expect(lines[5].contains("GET https://h/v1/y -> 200"))
        #expect(!timeline.description.contains("canary"))
    }

    @Test("A timeline contains a failed attempt with the code of its error")
    func failed() async throws {
        let task = WebService.make(ScriptedSession([.error(.networkConnectionLost)]), timekeeper: nil).GET("/x").data()
        _ = await task.result
        let event = try #require(task.task.timeline.events.first)
        #expect(event.kind == .attempt)
        #expect(event.status == nil)
        #expect(event.detail == "URLError -1005")
    }

    // MARK: Start time

    @Test(
        "Times are relative to resume and include the time before the first attempt",
        arguments: ["provider", "interceptor"])
    func beginning(place: String) async throws {
        let clock = ManualTimekeeper()
        let service = WebService.make(HandSession(text: "{}"), timekeeper: clock)
        let task = service.POST("/x")
        if place == "provider" {
            task.setBody {
                clock.advance(by: .seconds(5))
                return Data()
            }
        } else {
            task.intercepted(
                by: .closure { request, next in
                    clock.advance(by: .seconds(5))
                    return try await next(request)
                })
        }
        let before = Date()
        _ = try await task.data().value
        let timeline = task.timeline
        #expect(timeline.events.map(\.kind) == [.attempt])
        #expect(timeline.events.first?.start == .seconds(5))
        let date = try #require(timeline.date)
        #expect(abs(date.timeIntervalSince(before)) < 30)
        let start = try #require(task.metrics.fetchStart)
        #expect(abs(start.timeIntervalSince(date) - 5) < 0.001)
        #expect(task.metrics.responseTime == .zero)
    }

    @Test("An exchange without an attempt has the date of its resume, and its times are relative to it")
    func withoutAttempt() async throws {
        let clock = ManualTimekeeper()
        let service = WebService.make(HandSession(text: "{}"), timekeeper: clock)
        service.interceptors = [
            .closure { request, next in
                clock.advance(by: .milliseconds(2500))
                next.record(.init("own"), "x")
                let url = try #require(request.url)
                return try #require(Response(status: 200, url: url, source: .cache))
            }
        ]
        let task = service.GET("/x").data()
        _ = try await task.value
        let timeline = task.task.timeline
        #expect(timeline.events.map(\.start) == [.milliseconds(2500)])
        #expect(timeline.date != nil)
        #expect(timeline.description.hasPrefix("   2500.0 ms  own"))
        let failed = service.GET("//h/{id}").data()
        _ = await failed.result
        #expect(failed.task.timeline.date != nil)
    }

    @Test("The timeline of a typed request is relative to its own resume and includes the time in the queue")
    func queued() async throws {
        struct Get: HTTPServiceRequest, Hashable {
            typealias Output = Data
            func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
        }
        let clock = ManualTimekeeper()
        let session = HandSession()
        let service = WebService.make(session, timekeeper: clock)
        let first = service.perform(Get(), duplicates: .queue).resume()
        await session.exchanges.wait()
        let second = service.perform(Get(), duplicates: .queue).resume()
        clock.advance(by: .seconds(3))
        let joined = service.perform(Get(), duplicates: .join).resume()
        session.exchanges.values[0].respond("a")
        await session.exchanges.wait(for: 2)[1].respond("b")
        _ = try await (first.value, second.value, joined.value)
        #expect(first.task.timeline.events.map(\.start) == [.zero])
        #expect(first.task.timeline.events.map(\.duration) == [.seconds(3)])
        #expect(second.task.timeline.events.map(\.kind) == [.queued, .attempt])
        #expect(second.task.timeline.events.map(\.start) == [.zero, .seconds(3)])
        // Its exchange began no later than the request itself, and times are never negative.
        #expect(joined.task.timeline.events.map(\.kind) == [.joined, .attempt])
        #expect(joined.task.timeline.events.map(\.start) == [.zero, .zero])
        #expect(joined.task.metrics.fetchStart != nil)
        #expect(joined.task.metrics.responseTime != nil)
    }
}
