#if WEBSERVICE_CURL && os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The memory of downloads with a cache, in a process of its own.
@Suite(
    "Memory of cached downloads",
    .disabled(if: isSanitized, "the sanitizer needs memory for each access"),
    .permit(minutes: 60))
struct CacheMemoryTests {
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
}
#endif
