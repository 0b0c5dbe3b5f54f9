import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

/// Downloads from a server whose versions, responses and faults are random.
///
/// `WEBSERVICE_SOAK=1` runs the full number of combinations.
@Suite("Random range responses", .permit(minutes: 60))
struct RangeModelTests {
    @Test("In a model of a download, no short or mixed file is complete, whatever the responses are")
    func model() {
        let count = amount(1_000, thorough: 3_000, soak: 1_000_000)
        var complete = 0
        for seed in 0..<UInt64(count) {
            var server = RangeModel(seed: seed)
            var client = RangeClient(usesPieces: seed % 2 == 0)
            for _ in 0..<3 {
                guard let file = client.download(from: &server) else { continue }
                complete += 1
                if !server.isVersion(file) { Issue.record("seed \(seed): \(file.count) bytes\n\(client.log)") }
            }
        }
        // The faults are not so frequent that the test proves nothing.
        #expect(complete > count / 3)
    }

    private static let count = amount(100, thorough: 300, soak: 20_000)

    @Test("No download reports a short or mixed file, whatever the responses are")
    func downloads() async throws {
        let complete = try await withThrowingTaskGroup(of: Int.self) { group in
            let workers = 4
            for worker in 0..<workers {
                group.addTask {
                    let folder = TemporaryFolder(inMemory: true)
                    defer { withExtendedLifetime(folder) {} }
                    var complete = 0
                    for number in stride(from: worker, to: Self.count, by: workers) {
                        complete += try await Self.run(UInt64(number), in: folder.url)
                    }
                    return complete
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(complete > Self.count / 3)
    }

    @Test(
        "A transformed body (status 203 or a content coding) is not continued after an interruption",
        arguments: [(203, nil), (200, "gzip")] as [(Int, String?)])
    func transformed(status: Int, coding: String?) async throws {
        let folder = TemporaryFolder(inMemory: true)
        defer { withExtendedLifetime(folder) {} }
        let content = Data((0..<100).map { UInt8($0) })
        let requests = Collected<Headers>()
        let service = WebService(
            "https://h",
            session: ReplySession { request in
                requests.add(request)
                var reply = ReplySession.Reply(headers: ["ETag": "\"v1\""], body: content)
                guard requests.values.count == 1 else { return reply }
                reply.status = status
                reply.headers["Content-Encoding"] = coding
                reply.body = content.prefix(50)
                reply.failure = URLError(.networkConnectionLost)
                return reply
            })
        service.interceptors = [.retry(baseDelay: .zero)]
        let file = folder.url.appendingPathComponent("a")
        let downloaded = try await service.GET("/a").download(to: file).value
        #expect(requests.values.map { $0["Range"] } == [nil, nil])
        #expect(downloaded.restarts == 1)
        #expect(try Data(contentsOf: file) == content)
    }

    /// Downloads a file up to three times.
    ///
    /// - Returns: The number of downloads that reported a complete file.
    private static func run(_ seed: UInt64, in folder: URL) async throws -> Int {
        let model = Mutex(RangeModel(seed: seed))
        let responses = Collected<String>()
        let service = WebService(
            "https://h",
            session: ReplySession { request in
                let reply = model.withLock { $0.reply(to: request) }
                responses.add(
                    "\(request["Range"] ?? "all") \(request["If-Range"] ?? "") -> \(reply.status) "
                        + reply.headers.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
                        + " (\(reply.body.count) bytes\(reply.failure == nil ? "" : ", lost"))")
                return reply
            })
        if seed % 3 > 0 { service.interceptors = [.retry(maximumAttempts: 4, baseDelay: .zero)] }
        let file = folder.appendingPathComponent("\(seed)")
        var complete = 0
        for number in 0..<3 {
            let task = service.GET("/\(seed)")
            let download =
                seed % 5 == 0
                ? task.download(into: folder, connections: number + 1)
                : task.download(to: file, connections: Int(seed % 2) + 1)
            // A server that violates the protocol is an error.
            guard let downloaded = try? await download.value else { continue }
            complete += 1
            let content = try Data(contentsOf: downloaded.url)
            if !model.withLock({ $0.isVersion(content) }) || downloaded.byteCount != content.count {
                Issue.record("seed \(seed): \(content.count) bytes\n\(responses.values.joined(separator: "\n"))")
            }
            try FileManager.default.removeItem(at: downloaded.url)
        }
        for name in [".\(seed).webservice-part", ".\(seed).webservice-state"] {
            try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))  // most runs leave none
        }
        return complete
    }
}
