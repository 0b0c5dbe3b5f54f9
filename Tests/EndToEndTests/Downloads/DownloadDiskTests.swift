#if os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Downloads to a full disk.
@Suite("Downloads to a small disk", .permit)
struct DownloadDiskTests {
    @Test(
        "A disk that becomes full is an error, and the download continues when there is space",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"),
        arguments: [1, 65_536, 200_000, 900_000])
    func full(free: Int) async throws {
        let mounted = try #require(SmallDisk(kilobytes: 2048))
        let disk = mounted.url
        defer { withExtendedLifetime(mounted) {} }
        let filler = disk.appendingPathComponent("filler")
        let fixture = try DownloadFixture(1_000_000)
        let content = fixture.content
        fixture.serve { request, number in
            var response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
            guard number == 0 else { return response }
            response.headers[.contentLength] = "1000000"
            response.writer = { writer in
                // The file system had enough space when the head was received.
                try writer.write(content.prefix(1))
                let part = disk.appendingPathComponent(".a.iso.webservice-part")
                for _ in 0..<60_000 where (try? Data(contentsOf: part))?.count != 1 {
                    writer.pause(for: .milliseconds(1))
                }
                var status = statvfs()
                guard statvfs(disk.path, &status) == 0 else { throw CancellationError() }
                try Data(count: max(0, Int(status.f_bavail) * Int(status.f_bsize) - free)).write(to: filler)
                try writer.write(content.dropFirst())
            }
            return response
        }
        let destination = disk.appendingPathComponent("a.iso")
        let error = await #expect(throws: WebServiceError.self) {
            try await fixture.service.GET("/a.iso").download(to: destination).value
        }
        #expect(error?.code == .download)
        #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
        let part = try Data(contentsOf: disk.appendingPathComponent(".a.iso.webservice-part"))
        let isPrefix = part == content.prefix(part.count)
        #expect(isPrefix)
        #expect(!part.isEmpty)
        #expect(part.count < 1_000_000)
        try FileManager.default.removeItem(at: filler)
        let file = try await fixture.service.GET("/a.iso").download(to: destination).value
        #expect(file.resumedFrom == Int64(part.count))
        let isWhole = try Data(contentsOf: destination) == content
        #expect(isWhole)
    }
}
#endif
