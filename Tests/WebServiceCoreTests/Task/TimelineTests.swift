import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Timeline and HTTP archive", .timeLimit(.minutes(5)))
struct TimelineTests {
    private func archive(_ task: SessionTask) throws -> [[String: Any]] {
        let json = try JSONSerialization.jsonObject(with: task.httpArchive()) as? [String: Any]
        let log = try #require(json?["log"] as? [String: Any])
        #expect(log["version"] as? String == "1.2")
        #expect((log["creator"] as? [String: Any])?["name"] as? String == "WebService")
        return try #require(log["entries"] as? [[String: Any]])
    }

    @Test("a plain exchange has one attempt, and its handlers when they are asked for")
    func plain() async throws {
        let task = WebService.make(HandSession(text: "{}"), timekeeper: nil).GET("/x?token=canary").recordHandlers()
            .responseJSON { _, _ in }.updateUI { _ in }
        _ = try await task.data().value
        let events = task.timeline.events
        #expect(events.map(\.kind) == [.attempt, .handler, .handler, .handler, .handler])
        #expect(events.dropFirst().map(\.detail) == ["responseJSON", "updateUI", "typed step", "typed step"])
        #expect(events.first?.request == "GET https://h/v1/x" && events.first?.status == 200)
        #expect(events.allSatisfy { ($0.length ?? -1) >= 0 && $0.start >= 0 })
        #expect(task.timeline.date != nil)
        #expect(WebService.make().GET("/x").timeline.events.isEmpty)
    }

    @Test("redirects and retries are in it in order, and its text is readable")
    func redirected() async throws {
        let session = ScriptedSession([
            .status(503, headers: ["Retry-After": "0"]), .status(302, headers: ["Location": "/v1/y?token=canary"]), .status(200, body: "x"),
        ])
        let service = WebService.make(session, timekeeper: nil)
        service.interceptors = [RetryPolicy(sleep: { _ in })]
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

    @Test("C-66: the archive holds every message, and no planted secret")
    func archiveOfSecrets() async throws {
        let session = ScriptedSession([
            .status(302, headers: ["Location": "/v1/y?access_token=canary-location", "Set-Cookie": "s=canary-cookie"]),
            .status(200, headers: ["X-Api-Key": "canary-key", "Content-Type": "text/plain"], body: "canary-body"),
        ])
        let service = WebService.make(session, timekeeper: nil)
        let task = service.GET("/x?api_key=canary-query&page=2").setHeaders(["Authorization": "canary-auth", "Accept": "a/b"]).data()
        _ = try await task.value
        let entries = try archive(task.task)
        #expect(entries.count == 2)
        let text = String(decoding: task.task.httpArchive(), as: UTF8.self)
        #expect(!text.contains("canary"))
        let request = try #require(entries[0]["request"] as? [String: Any])
        #expect(request["url"] as? String == "https://h/v1/x?api_key=[redacted]&page=2")
        #expect((request["queryString"] as? [[String: String]])?.last == ["name": "page", "value": "2"])
        #expect((request["headers"] as? [[String: String]])?.contains(["name": "Accept", "value": "a/b"]) == true)
        let response = try #require(entries[1]["response"] as? [String: Any])
        #expect(response["status"] as? Int == 200 && response["bodySize"] as? Int == 11)
        for key in ["startedDateTime", "time", "request", "response", "cache", "timings"] {
            #expect(entries.allSatisfy { $0[key] != nil }, "\(key)")
        }
    }

    @Test("a failed attempt is in it with its error's code")
    func failed() async throws {
        let task = WebService.make(ScriptedSession([.error(.networkConnectionLost)]), timekeeper: nil).GET("/x").data()
        _ = await task.result
        let event = try #require(task.task.timeline.events.first)
        #expect(event.kind == .attempt && event.status == nil && event.detail == "URLError -1005")
        let entry = try #require(try archive(task.task).first)
        #expect(entry["comment"] as? String == "URLError -1005")
    }
}
