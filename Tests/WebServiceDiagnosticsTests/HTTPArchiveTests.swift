import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics

@Suite("HTTP archive of a task", .permit)
struct HTTPArchiveTests {
    private func archive(_ task: SessionTask) throws -> [[String: Any]] {
        let json = try JSONSerialization.jsonObject(with: task.httpArchive()) as? [String: Any]
        let log = try #require(json?["log"] as? [String: Any])
        #expect(log["version"] as? String == "1.2")
        #expect((log["creator"] as? [String: Any])?["name"] as? String == "WebService")
        return try #require(log["entries"] as? [[String: Any]])
    }

    @Test("An HTTP archive contains every request and response and no secret")
    func archiveOfSecrets() async throws {
        let session = ScriptedSession([
            .status(302, headers: ["Location": "/v1/y?access_token=canary-location", "Set-Cookie": "s=canary-cookie"]),
            .status(200, headers: ["X-Api-Key": "canary-key", "Content-Type": "text/plain"], body: "canary-body"),
        ])
        let service = WebService.make(session, timekeeper: nil)
        let task = service.GET("/x?api_key=canary-query&page=2").setHeaders([
            "Authorization": "canary-auth", "Accept": "a/b",
        ]).data()
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
        #expect(response["status"] as? Int == 200)
        #expect(response["bodySize"] as? Int == 11)
        for key in ["startedDateTime", "time", "request", "response", "cache", "timings"] {
            #expect(entries.allSatisfy { $0[key] != nil }, "\(key)")
        }
    }

    @Test("An entry of a failed attempt has the code of its error, and a typed task has the same archive")
    func failed() async throws {
        let task = WebService.make(ScriptedSession([.error(.networkConnectionLost)]), timekeeper: nil).GET("/x").data()
        _ = await task.result
        let entry = try #require(try archive(task.task).first)
        #expect(entry["comment"] as? String == "URLError -1005")
        #expect(task.httpArchive() == task.task.httpArchive())
    }

    @Test("The date of an entry includes the time before the first attempt")
    func beginning() async throws {
        let clock = ManualTimekeeper()
        let task = WebService.make(HandSession(text: "{}"), timekeeper: clock).POST("/x").setBody {
            clock.advance(by: .seconds(5))
            return Data()
        }
        _ = try await task.data().value
        let date = try #require(task.timeline.date)
        let archived = try #require(try archive(task).first?["startedDateTime"] as? String)
        let parsed = try Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(archived)
        #expect(abs(parsed.timeIntervalSince(date) - 5) < 0.01)
    }
}
