import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// The partial files that downloads leave.
@Suite("Partial files of downloads", .permit)
struct DownloadPartialTests {
    private static func list(_ fixture: DownloadFixture) async throws -> [DownloadedFile.Partial] {
        try await DownloadedFile.Partial.list(in: fixture.folder)
    }

    @Test("An interrupted download is listed, and after its removal the next one starts over")
    func interrupted() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let partial = try #require(try await Self.list(fixture).first)
        #expect(partial.destination.path == fixture.destination.path)
        #expect(partial.bytesReceived == 400_000)
        #expect(partial.bytesToReceive == 1_000_000)
        try await partial.remove()
        #expect(try fixture.names == [])
        #expect(try await fixture.download().value.resumedFrom == 0)
        #expect(try await Self.list(fixture).isEmpty)
    }

    @Test("An interrupted download that cannot be continued is listed as well")
    func withoutValidator() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000) { $0.headers["ETag"] = nil }
        let partial = try #require(try await Self.list(fixture).first)
        #expect(partial.bytesReceived == 400_000)
        #expect(try await fixture.download().value.resumedFrom == 0)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A download in progress is not removed, and completes")
    func inProgress() async throws {
        let fixture = try DownloadFixture()
        let (content, gate) = (fixture.content, DispatchSemaphore(value: 0))
        fixture.serve { _, _ in
            var response = MockResponse(statusCode: 200)
            response.headers["ETag"] = DownloadFixture.tag
            response.headers[.contentLength] = "\(content.count)"
            response.writer = { writer in
                try writer.write(content.prefix(400_000))
                _ = gate.wait(timeout: .now() + 60)
                try writer.write(content.dropFirst(400_000))
            }
            return response
        }
        let download = fixture.download().resume()
        try await eventually { try await Self.list(fixture).first?.bytesReceived ?? 0 > 0 }
        let partial = try #require(try await Self.list(fixture).first)
        #expect(partial.isInProgress)
        await fails(.downloadInProgress) { try await partial.remove() }
        gate.signal()
        _ = try await download.value
        #expect(try fixture.fileHas(content))
        try await partial.remove()
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A download of another process is in progress until the process is killed")
    func otherProcess() async throws {
        let fixture = try DownloadFixture { _, _ in
            var response = MockResponse(statusCode: 200, data: Data(count: 1_000_000))
            response.headers["ETag"] = DownloadFixture.tag
            response.wire = .stall(after: 300_000)
            return response
        }
        let process = ChildProcess(
            SessionProbe.path,
            ["download", fixture.server.baseURLString + "/a.iso", fixture.destination.path, "1"],
            environment: ["SWIFT_BACKTRACE": "enable=no"], input: .null, output: .null)
        try process.run()
        try await eventually { try await Self.list(fixture).first?.bytesReceived ?? 0 > 0 }
        let partial = try #require(try await Self.list(fixture).first)
        #expect(partial.isInProgress)
        await fails(.downloadInProgress) { try await partial.remove() }
        process.send(SIGKILL)
        _ = try await blocking { process.waitUntilExit() }
        let abandoned = try #require(try await Self.list(fixture).first)
        #expect(!abandoned.isInProgress)
        try await abandoned.remove()
        #expect(try fixture.names == [])
    }
}
