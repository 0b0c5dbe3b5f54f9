#if WEBSERVICE_CURL && os(Linux)
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

/// The memory of transfers, each in a process of its own. The full sizes require `WEBSERVICE_SOAK`.
@Suite(
    "Memory of streams and uploads",
    .disabled(if: isSanitized, "the sanitizer needs memory for each access"),
    .permit(minutes: 60))
struct StreamMemoryTests {

    /// Runs a measurement.
    ///
    /// - Returns: The numbers of its output.
    private func measure(_ mode: String, _ url: String, _ argument: String) async throws -> [String: Int] {
        let run = try await SessionProbe.run(["memory", mode, url, argument])
        try #require(run.status == 0, "\(run.output)")
        let lines = run.output.split(separator: "\n").map { $0.split(separator: " ") }.filter { $0.count == 2 }
        return Dictionary(lines.map { (String($0[0]), Int($0[1]) ?? 0) }, uniquingKeysWith: { $1 })
    }

    @Test("An idle stream needs at most 30 KB and no processor time")
    func idle() async throws {
        let count = isSoak ? 10_000 : 250
        let numbers = try await measure("idle", "http://127.0.0.1", "\(count)")
        print("\(count) idle streams: \(numbers)")
        #expect(numbers["ended"] == count + 1)
        #expect(try #require(numbers["read"]) <= (isSoak ? 30_000 : 45_000))
        #expect(try #require(numbers["processor"]) <= (isSoak ? 150 : 50))
    }

    @Test("Cancelled tasks leave no memory behind")
    func cancelledTasks() async throws {
        let count = amount(20_000, thorough: 60_000, soak: 2_000_000)
        let numbers = try await measure("cancelled", "http://127.0.0.1:1", "\(count)")
        print("\(count) cancelled tasks: \(numbers)")
        #expect(try #require(numbers["growth"]) <= 64 << 10)
        #expect(numbers["listed"] == 0)
    }

    @Test("A large file is sent with hardly more memory than a small one")
    func upload() async throws {
        let size = isSoak ? 5 << 30 : 64 << 20
        let file = TemporaryFolder.forTest().url.appendingPathComponent("upload")
        var peaks: [Int] = []
        for length in [1 << 20, size] {
            _ = FileManager.default.createFile(atPath: file.path, contents: nil)
            try #require(truncate(file.path, off_t(length)) == 0)
            let numbers = try await measure("upload", "http://127.0.0.1", file.path)
            #expect(numbers["bytes"] == length)
            peaks.append(try #require(numbers["peak"]))
        }
        print("peak memory of uploads of 1 MiB and \(size >> 20) MiB: \(peaks) KiB")
        #expect(peaks[1] - peaks[0] <= 2_048)
    }

    @Test("A part of a form that a sequence produces needs hardly more memory if it is large")
    func form() async throws {
        var peaks: [Int] = []
        for length in [1 << 20, isSoak ? 1 << 30 : 64 << 20] {
            let numbers = try await measure("form", "http://127.0.0.1", "\(length)")
            #expect(try #require(numbers["bytes"]) > length)
            peaks.append(try #require(numbers["peak"]))
        }
        print("peak memory of forms: \(peaks) KiB")
        #expect(peaks[1] - peaks[0] <= 2_048)
    }

    @Test("A slow reader of a large body needs hardly more memory than one of a small body")
    func slowReader() async throws {
        let sizes = [1 << 20, isSoak ? 1 << 30 : 32 << 20]
        let server = try MockServer.forTest { request in
            let size = request.path == "/0" ? sizes[0] : sizes[1]
            var response = MockResponse(statusCode: 200) { body in
                for _ in 0..<size >> 20 { try body.write(Data(count: 1 << 20)) }
            }
            response.headers[.contentLength] = "\(size)"
            return response
        }
        var peaks: [Int] = []
        for index in 0...1 {
            let rate = sizes[1] / (isSoak ? 60 : 2)
            let numbers = try await measure("read", server.baseURLString + "/\(index)", "\(rate)")
            #expect(numbers["bytes"] == sizes[index])
            peaks.append(try #require(numbers["peak"]))
        }
        print("peak memory of slow readers of \(sizes.map { $0 >> 20 }) MiB: \(peaks) KiB")
        #expect(peaks[1] - peaks[0] <= 2_048)
    }

    @Test("A compressed body of zeros is decoded with hardly more memory than a small one")
    func bomb() async throws {
        let sizes = [1 << 20, isSoak ? 1 << 30 : 64 << 20]
        let encoded = try sizes.map { size in
            let encoder = try GzipEncoder()
            let zeros = Data(count: 1 << 20)
            var encoded = Data()
            for _ in 0..<size >> 20 { encoded += try encoder.encode(zeros) }
            return encoded + (try encoder.finish())
        }
        let server = try MockServer.forTest { request in
            var response = MockResponse(statusCode: 200, data: encoded[request.path == "/0" ? 0 : 1])
            response.headers["Content-Encoding"] = "gzip"
            return response
        }
        var peaks: [Int] = []
        for index in 0...1 {
            let numbers = try await measure("read", server.baseURLString + "/\(index)", "0")
            #expect(numbers["bytes"] == sizes[index])
            peaks.append(try #require(numbers["peak"]))
        }
        print("peak memory of compressed bodies of \(sizes.map { $0 >> 20 }) MiB: \(peaks) KiB")
        #expect(peaks[1] - peaks[0] <= 2_048)
    }
}
#endif
