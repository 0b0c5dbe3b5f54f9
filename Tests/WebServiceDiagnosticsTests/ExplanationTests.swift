import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceCore

@Suite("Explanations of timelines", .permit)
struct ExplanationTests {
    private struct Get: HTTPServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "get" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
    }

    private func explanation(_ task: SessionTask) async -> [String] {
        _ = await task.data().validateNothing().result
        return lines(task)
    }

    private func lines(_ task: SessionTask) -> [String] {
        task.timeline.explain().split(separator: "\n").map(String.init)
    }

    @Test("A response without decisions is explained in two sentences")
    func plain() async {
        let clock = ManualTimekeeper()
        let session = HandSession { exchange in
            clock.advance(by: .milliseconds(12))
            exchange.respond("abc")
        }
        let task = WebService.make(session, timekeeper: clock).GET("/x?token=canary")
        #expect(lines(task) == ["The task was not resumed."])
        #expect(
            await explanation(task) == [
                "GET https://h/v1/x was sent. The response had status 200, after 12.0 ms.",
                "The exchange ended with status 200.",
            ])
    }

    @Test("Retries, pauses and redirects are explained with their reasons")
    func retry() async {
        let session = ScriptedSession([
            .status(503), .error(.networkConnectionLost), .status(302, headers: ["Location": "https://other/y"]),
            .status(200),
        ])
        let service = WebService.make(session)
        service.interceptors = [RetryPolicy(random: { 1 }, pause: { _ in })]
        let task = service.GET("/x").setHeaderValue("canary", forName: "Authorization")
        #expect(
            await explanation(task) == [
                "GET https://h/v1/x was sent. The response had status 503, after 0.0 ms.",
                "The request was sent again: status 503, pause of 0.5 seconds.", "The exchange paused for 0.0 ms.",
                "GET https://h/v1/x was sent. It failed after 0.0 ms: URLError -1005.",
                "The request was sent again: URLError -1005, pause of 1.0 seconds.",
                "The exchange paused for 0.0 ms.",
                "GET https://h/v1/x was sent. The response had status 302, after 0.0 ms.",
                "The redirect was followed to another origin, without credentials.",
                "GET https://other/y was sent. The response had status 200, after 0.0 ms.",
                "The exchange ended with status 200.",
            ])
        let failing = WebService.make(ScriptedSession([.status(503)]))
        failing.interceptors = service.interceptors
        #expect(
            await explanation(failing.POST("/x")).suffix(2) == [
                "The request was not sent again: status 503, POST is not idempotent.",
                "The exchange ended with status 503.",
            ])
    }

    @Test("A refresh is explained")
    func refresh() async {
        let service = WebService.make(ScriptedSession([.status(401), .status(200)]))
        let source = TokenSource({ .bearer("canary-old") }, refresh: { _ in .bearer("canary-new") })
        service.interceptors = [Authentication(source)]
        #expect(
            await explanation(service.GET("/x")).dropFirst() == [
                "The exchange waited 0.0 ms for a newer credential: status 401.",
                "The request was sent again: with a newer credential.",
                "GET https://h/v1/x was sent. The response had status 200, after 0.0 ms.",
                "The exchange ended with status 200.",
            ])
    }

    @Test("Joined and queued requests, and access to a storage, are explained")
    func typed() async throws {
        let recorder = EventRecorder()
        let session = HandSession()
        let service = WebService.make(session)
        service.observers = [recorder]
        service.storages = [MemoryStorage()]
        let first = service.perform(Get()).resume()
        let joined = service.perform(Get(), duplicates: .join).resume()
        let queued = service.perform(Get(), duplicates: .queue).resume()
        await session.exchanges.wait()[0].respond("a")
        await session.exchanges.wait(for: 2)[1].respond("b")
        _ = try await (first.value, joined.value, queued.value)
        await service.finishStoring()
        let id = try #require(recorder.exchanges.first?.id)
        #expect(lines(joined.task).first == "The request shared the response of request #\(id).")
        #expect(lines(joined.task).last == "The exchange ended with status 200, source: joined.")
        #expect(lines(queued.task).first == "The request waited for the end of request #\(id).")
        #expect(lines(queued.task).contains("The response was stored."))
        let stored = service.stored(Get())
        _ = try await stored.value
        let read = lines(stored.task)
        #expect(read.count == 2)
        #expect(read.last == "The exchange ended, source: storage.")
        #expect(read.first?.wholeMatch(of: /The stored response was read: \d+ s old\./) != nil)
        let missing = WebService.make().stored(Get())
        _ = await missing.result
        #expect(
            lines(missing.task) == [
                "No stored response was read: no storage stores responses to Get; add one to 'storages'.",
                "The exchange failed: noStorage.",
            ])
    }

    @Test("Cancellation, the deadline and failures are explained")
    func ends() async {
        let clock = ManualTimekeeper()
        let service = WebService.make(HandSession(), timekeeper: clock)
        let unsent = service.GET("/x")
        unsent.cancel()
        #expect(lines(unsent) == ["The exchange was cancelled before a request was sent."])
        let cancelled = service.GET("/x")
        cancelled.resume()
        #expect(lines(cancelled) == ["The exchange has not ended."])
        cancelled.cancel()
        #expect(
            lines(cancelled) == [
                "GET https://h/v1/x was sent. It failed after 0.0 ms: URLError -999.", "The exchange was cancelled.",
            ])
        let late = service.GET("/x").configure { $0.options.deadline = .seconds(5) }
        late.resume()
        clock.advance(by: .seconds(5))
        #expect(
            await explanation(late)
                == [
                    "GET https://h/v1/x was sent. It failed after 5000.0 ms: deadline.",
                    "A handler, a step or the validation failed: deadline.", "The exchange exceeded its deadline.",
                ].filter { !$0.hasPrefix("A handler") })
        let failed = WebService.make(HandSession(text: "{")).GET("/x").responseJSON { _, _ in }
        #expect(
            await explanation(failed) == [
                "GET https://h/v1/x was sent. The response had status 200, after 0.0 ms.",
                "A handler, a step or the validation failed: decoding.", "The exchange ended with status 200.",
            ])
        #expect(await explanation(service.GET("/{id}")) == ["The exchange failed: invalidURL."])
    }
}
