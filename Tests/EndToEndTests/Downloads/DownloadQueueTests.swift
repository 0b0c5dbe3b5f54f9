import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceResilience
import WebServiceServer
import WebServiceTransfers

/// Downloads and uploads in a `TaskQueue`, over sockets.
@Suite("Queues of downloads", .permit)
struct DownloadQueueTests {
    /// The number of requests that a server has received and not responded to.
    private final class Load: Sendable {
        private let state = Mutex((now: 0, most: 0))

        var most: Int { state.withLock { $0.most } }

        /// Counts a request until its last byte is sent.
        func counting(_ response: MockResponse) -> MockResponse {
            state.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            var counted = response
            let body = response.data
            counted.headers[.contentLength] = "\(body.count)"
            counted.writer = { writer in
                writer.pause(for: .milliseconds(1))
                // The client may send its next request as soon as it has the last byte.
                self.state.withLock { $0.now -= 1 }
                try writer.write(body)
            }
            return counted
        }
    }

    @Test("Downloads and uploads beyond the maximum wait, and complete")
    func mixed() async throws {
        let load = Load()
        let fixture = try DownloadFixture(20_000)
        let content = fixture.content
        fixture.serve { request, _ in
            load.counting(MockResponse(file: content, eTag: DownloadFixture.tag, for: request))
        }
        let queue = TaskQueue(maximumInFlight: 4)
        let folder = fixture.folder.appendingPathComponent("new")
        let downloads = (0..<60).map { number in
            queue.add(
                fixture.service.GET("/\(number)").download(into: folder, name: "\(number)", createsFolders: true))
        }
        let uploads = (0..<20).map { _ in queue.add(fixture.service.POST("/up").setBody(content).data()) }
        for (number, download) in downloads.enumerated() {
            let file = try await download.value
            #expect(file.url.lastPathComponent == "\(number)")
            #expect(try Data(contentsOf: file.url) == content)
        }
        for upload in uploads { #expect(try await upload.value == content) }
        #expect(load.most <= 4)
        #expect(fixture.requests.count == 80)
        withExtendedLifetime(queue) {}
    }

    @Test("1,000 requests complete once each, with at most 8 at a time")
    func thousand() async throws {
        let load = Load()
        let fixture = try DownloadFixture(0) { request, _ in load.counting(.text(request.path)) }
        let queue = TaskQueue(maximumInFlight: 8)
        let completions = Collected<String>()
        for number in 0..<1_000 {
            queue.add(
                fixture.service.GET("/\(number)").string().onCompletion { result in
                    completions.add((try? result.get()) ?? "error")  // none is expected
                })
        }
        let values = await completions.wait(for: 1_000)
        #expect(Set(values) == Set((0..<1_000).map { "/\($0)" }))
        #expect(load.most <= 8)
        #expect(fixture.requests.count == 1_000)
        #expect(completions.values.count == 1_000)
        withExtendedLifetime(queue) {}
    }

    @Test("The end of a queue cancels its downloads, whose bytes remain")
    func end() async throws {
        let fixture = try DownloadFixture { _, _ in
            var response = MockResponse(statusCode: 200, data: DownloadFixture.content(1_000_000))
            response.headers["ETag"] = DownloadFixture.tag
            response.wire = .stall(after: 300_000)
            return response
        }
        var queue: TaskQueue? = TaskQueue(maximumInFlight: 1)
        let started = Collected<Int64>()
        let first = fixture.download().onProgress { if $0.bytesReceived > 0 { started.add($0.bytesReceived) } }
        let second = fixture.service.GET("/b.iso").download(into: fixture.folder)
        queue?.add(first)
        queue?.add(second)
        await started.wait()
        queue = nil
        for task in [first, second] {
            let error = await #expect(throws: URLError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
        #expect(fixture.requests.count == 1)
        let partials = try await DownloadedFile.Partial.list(in: fixture.folder)
        #expect(partials.count == 1)
        #expect(partials.first?.bytesReceived ?? 0 > 0)
        fixture.serve(nil)
        #expect(try await fixture.download().value.resumedFrom > 0)
    }
}
