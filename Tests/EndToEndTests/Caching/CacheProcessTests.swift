#if WEBSERVICE_CURL && os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

@testable import WebServiceCaching

/// Downloads with a cache, in a process of its own.
@Suite(
    "Cached downloads of other processes",
    .disabled(if: isSanitized, "the sanitizer needs memory for each access"),
    .permit(minutes: 60))
struct CacheProcessTests {
    @Test("A large download is stored in a cache and served from it with at most 4 MiB more memory")
    func download() async throws {
        let size = amount(64 << 20, thorough: 1 << 30)
        let server = try MockServer.forTest { request in
            let count = request.path == "/small" ? 4 << 20 : size
            var response = MockResponse(statusCode: 200) { body in
                for _ in 0..<count >> 20 { try body.write(Data(count: 1 << 20)) }
            }
            response.headers = ["Content-Length": "\(count)", "ETag": "\"1\"", "Cache-Control": "max-age=3600"]
            return response
        }
        let folder = TemporaryFolder.forTest().url
        let run = try await SessionProbe.run(["memory", "cache", server.baseURLString, folder.path])
        try #require(run.status == 0, "\(run.output)")
        let lines = run.output.split(separator: "\n").map { $0.split(separator: " ") }.filter { $0.count == 2 }
        let numbers = Dictionary(lines.map { (String($0[0]), Int($0[1]) ?? 0) }, uniquingKeysWith: { $1 })
        print("growth of the peak memory of cached downloads of \(size >> 20) MiB, in KiB: \(numbers)")
        for mode in ["download-stored", "download-served", "stream-served"] {
            #expect(try #require(numbers[mode]) <= 4_096, "\(mode)")
            #expect(numbers["\(mode)-bytes"] == size)
        }
        #expect(numbers["download-stored-sent"] == 1)
        #expect(numbers["download-served-sent"] == 0)
        #expect(server.receivedRequests.count == 2)
    }

    @Test("The file that another process is writing remains, and is removed after that process was killed")
    func kill() async throws {
        let isOver = ThreadSignal()
        defer { isOver.signal() }
        let server = try MockServer.forTest { request in
            let isSmall = request.path == "/small"
            var response = MockResponse(statusCode: 200) { body in
                try body.write(Data(count: 1 << 20))
                if !isSmall { isOver.wait() }
            }
            response.headers = ["Content-Length": "\(isSmall ? 1 << 20 : 8 << 20)", "Cache-Control": "max-age=3600"]
            return response
        }
        let folder = TemporaryFolder.forTest().url
        let bodies = folder.appendingPathComponent("bodies")
        let process = ChildProcess(
            SessionProbe.path, ["memory", "cache", server.baseURLString, folder.path],
            environment: ["SWIFT_BACKTRACE": "enable=no"], input: .null, output: .null, errors: .null)
        try process.run()
        func names() -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: bodies.path)) ?? [] }
        await eventually("the process writes the second file") {
            Set(names().map { $0.suffix(5) }) == [".body", ".part"]
        }
        func cache() async throws -> ResponseCache {
            let cache = ResponseCache(
                storage: try FileStorage(folder: folder.appendingPathComponent("entries")),
                bodies: try BodyFolder(bodies, maximumBytes: 1 << 30))
            await cache.removeOrphans()
            await cache.finishStoring()
            return cache
        }
        _ = try await cache()
        #expect(names().map { $0.suffix(5) }.sorted() == [".body", ".part"])
        process.send(SIGKILL)
        process.waitUntilExit()
        let service = WebService(server.baseURLString, session: MockSession())
        service.interceptors = [try await cache()]
        #expect(names().map { $0.suffix(5) } == [".body"])
        let response = try await service.GET("/small").stream().value
        #expect(response.response.source == .cache)
        #expect(try await response.body.collect(upTo: .max).count == 1 << 20)
    }
}
#endif
