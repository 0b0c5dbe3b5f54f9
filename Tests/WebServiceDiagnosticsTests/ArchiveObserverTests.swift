import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore
@testable import WebServiceDiagnostics

@Suite("Archive and metrics of a service", .permit)
struct ArchiveObserverTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }
    private var file: URL { folder.appendingPathComponent("session.har") }

    private func log() throws -> (entries: [[String: Any]], comment: String?) {
        let json = try JSONSerialization.jsonObject(with: try Data(contentsOf: file)) as? [String: Any]
        let log = try #require(json?["log"] as? [String: Any])
        #expect(log["version"] as? String == "1.2")
        return (try #require(log["entries"] as? [[String: Any]]), log["comment"] as? String)
    }

    @Test(
        "All requests of a service are in one archive without secrets, which is complete at any time")
    func archive() async throws {
        let archive = try ArchiveObserver(file: file, bodyLimit: 100)
        #expect(try log().entries.isEmpty)
        let permissions = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions]
        #expect(permissions as? Int == 0o600)
        let service = WebService.make(
            ScriptedSession([
                .status(302, headers: ["Location": "/v1/y?access_token=canary-location"]),
                .status(
                    200, headers: ["Content-Type": "application/json", "Set-Cookie": "canary-cookie"],
                    body: #"{"token":"canary-body","ok":1}"#),
                .error(.networkConnectionLost),
            ]))
        service.observers = [archive]
        _ = try await service.POST("/x?api_key=canary-query").setJSON(["password": "canary-json"])
            .setHeaderValue("canary-auth", forName: "Authorization").data().value
        await archive.finish()
        #expect(try log().entries.count == 2)
        _ = await service.GET("/z").data().result
        await archive.finish()
        let (entries, comment) = try log()
        let requests = entries.compactMap { $0["request"] as? [String: Any] }
        #expect(
            requests.map { $0["url"] as? String } == [
                "https://h/v1/x?api_key=[redacted]", "https://h/v1/y?access_token=[redacted]", "https://h/v1/z",
            ])
        let post = try #require(requests[0]["postData"] as? [String: String])
        #expect(post == ["mimeType": "application/json", "text": #"{"password":"[redacted]"}"#])
        let responses = entries.compactMap { $0["response"] as? [String: Any] }
        #expect(responses.map { $0["status"] as? Int } == [302, 200, 0])
        let content = try #require(responses[1]["content"] as? [String: Any])
        #expect(content["text"] as? String == #"{"token":"[redacted]","ok":1}"#)
        #expect(content["size"] as? Int == 30)
        #expect(entries[2]["comment"] as? String == "URLError -1005")
        #expect(comment == nil)
        #expect(!String(decoding: try Data(contentsOf: file), as: UTF8.self).contains("canary"))
    }

    @Test("Bodies are not archived by default, and an existing file is replaced")
    func defaults() async throws {
        try Data(repeating: 0x61, count: 10_000).write(to: file)
        let service = WebService.make(HandSession(text: "body"))
        let archive: ArchiveObserver = try .archive(to: file)
        service.observers = [archive]
        _ = try await service.GET("/x").data().value
        await archive.finish()
        #expect(try log().entries.count == 1)
        #expect(!String(decoding: try Data(contentsOf: file), as: UTF8.self).contains("body\""))
    }

    @Test("An archive that has reached its size omits further requests, and contains their number")
    func size() async throws {
        let archive = try ArchiveObserver(file: file, maximumBytes: 2_000)
        let service = WebService.make(HandSession(text: "x"))
        service.observers = [archive]
        for index in 0..<20 { _ = try await service.GET("/\(index)").data().value }
        await archive.finish()
        let (entries, comment) = try log()
        #expect((1..<20).contains(entries.count))
        #expect(comment == "\(20 - entries.count) requests are not included")
        #expect(try Data(contentsOf: file).count <= 2_100)
    }

    @Test("An archive in a folder that does not exist is an error")
    func missingFolder() {
        #expect(throws: (any Error).self) {
            try ArchiveObserver(file: URL(fileURLWithPath: "/nonexistent/folder/session.har"))
        }
        try? FileManager.default.removeItem(at: folder)  // best effort
    }

    private enum Feature: RequestTagKey {
        static let defaultValue = "unknown"
    }

    @Test("Metrics are reported once for each exchange that sends requests, with its tags")
    func metrics() async throws {
        struct Get: HTTPServiceRequest {
            typealias Output = Data
            func request(for service: WebService) -> Request {
                var request = service.request(.GET, path: "/typed")
                request.options[Feature.self] = "typed"
                return request
            }
        }
        let lines = Collected<String>()
        let clock = ManualTimekeeper()
        let session = ScriptedSession([.status(503), .status(201, body: "abc"), .error(.cannotConnectToHost)])
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [RetryPolicy(random: { 1 }, pause: { clock.advance(by: $0) })]
        service.observers = [
            .metrics { metrics in
                lines.add(
                    "\(metrics.exchange[Feature.self]) \(metrics.exchange.name) \(metrics.duration) "
                        + "\(metrics.attempts) \(metrics.status ?? 0) \(metrics.failure ?? "-") "
                        + "\(metrics.source?.description ?? "-") \(metrics.byteCount)")
            }
        ]
        _ = try await service.perform(Get()).value
        service.interceptors = []
        _ = await service.GET("/x").data().result
        #expect(
            lines.values == [
                "typed GET https://h/v1/typed 0.5 seconds 2 201 - network 3",
                "unknown GET https://h/v1/x 0.0 seconds 1 0 URLError -1004 - 0",
            ])
    }

    @Test(
        "An entry has the HTTP version that the session reports, and none if it reports none",
        arguments: ["HTTP/1.0", "HTTP/2", "HTTP/3", nil])
    func versions(version: String?) throws {
        let metrics = version.map { TransportMetrics(total: .seconds(1), networkProtocol: $0) }
        let entry = HTTPArchive(.standard).entry(
            try Request(url: "https://h/x").encode(), .success(Response(body: Data(), source: .network)), metrics,
            date: Date(timeIntervalSince1970: 0), duration: .seconds(1), bodyLimit: 0)
        let json = try #require(try JSONSerialization.jsonObject(with: entry) as? [String: Any])
        for message in ["request", "response"] {
            let object = try #require(json[message] as? [String: Any])
            #expect(object["httpVersion"] as? String == version ?? "", "\(message)")
        }
    }

    @Test("An entry has the server's address and the phases that the session reports")
    func phases() throws {
        let seconds = { (value: Int) in Duration.seconds(value) }
        let metrics = TransportMetrics(
            nameLookup: seconds(1), connect: seconds(2), secureConnect: seconds(3), firstByte: seconds(10),
            total: seconds(15), remoteAddress: "192.0.2.7")
        let entry = HTTPArchive(.standard).entry(
            try Request(url: "https://h/x").encode(), .success(Response(body: Data(), source: .network)), metrics,
            date: Date(timeIntervalSince1970: 0), duration: seconds(15), bodyLimit: 0)
        let json = try #require(try JSONSerialization.jsonObject(with: entry) as? [String: Any])
        #expect(json["serverIPAddress"] as? String == "192.0.2.7")
        let timings = try #require(json["timings"] as? [String: Double])
        #expect(
            timings == [
                "blocked": -1, "dns": 1000, "connect": 5000, "ssl": 3000, "send": 0, "wait": 4000, "receive": 5000,
            ])
    }

    @Test(
        "The time of an entry is the sum of its phases, and the rest of the duration is blocked",
        arguments: [
            ((1, 2, 3, 10, 15), 20, 20_000, 5_000), ((1, 2, 3, 10, 15), 15, 15_000, -1),
            ((nil, nil, nil, 4, 5), 6, 6_000, 1_000), ((nil, nil, 3, 4, 5), 5, 5_000, -1),
            ((1, 2, 3, 10, 15), 3, 15_000, -1), ((1, 2, 3, 4, 2), 0, 6_000, -1), ((1, nil, nil, nil, 2), 4, 4_000, nil),
        ] as [((Int?, Int?, Int?, Int?, Int), Int, Double, Double?)])
    func times(phases: (Int?, Int?, Int?, Int?, Int), duration: Int, time: Double, blocked: Double?) throws {
        let seconds = { (value: Int?) in value.map { Duration.seconds($0) } }
        let metrics = TransportMetrics(
            nameLookup: seconds(phases.0), connect: seconds(phases.1), secureConnect: seconds(phases.2),
            firstByte: seconds(phases.3), total: .seconds(phases.4))
        let entry = HTTPArchive(.standard).entry(
            try Request(url: "https://h/x").encode(), .success(Response(body: Data(), source: .network)), metrics,
            date: Date(timeIntervalSince1970: 0), duration: .seconds(duration), bodyLimit: 0)
        let json = try #require(try JSONSerialization.jsonObject(with: entry) as? [String: Any])
        let timings = try #require(json["timings"] as? [String: Double])
        let sum = timings.filter { $0.key != "ssl" && $0.value > 0 }.values.reduce(0, +)
        #expect(json["time"] as? Double == time)
        #expect(abs(sum - time) < 0.001)
        #expect(timings["blocked"] == blocked)
    }
}
