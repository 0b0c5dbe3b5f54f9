import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

/// Bodies that are written to files while they arrive, and their progress.
@Suite("Streams to files", .permit)
struct StreamFileTests {
    private let folder = TemporaryFolder.forTest()

    private func body(_ server: MockServer, _ session: RealSession, _ path: String = "/") async throws -> ResponseBody {
        try await session.service(server).GET(path).stream().value.body
    }

    @Test(
        "The file has every byte and replaces an earlier one", arguments: RealSession.allCases)
    func complete(session: RealSession) async throws {
        let content = DownloadFixture.content(3 << 20)
        let server = try MockServer.forTest { request in
            MockResponse(statusCode: 200, data: request.path == "/none" ? Data() : content)
        }
        let file = try folder.file("export", Data("earlier".utf8))
        #expect(try await body(server, session).write(to: file) == Int64(content.count))
        #expect(try Data(contentsOf: file) == content)
        #expect(try names(in: folder.url) == ["export"])
        #expect(try await body(server, session, "/none").write(to: folder.url.appendingPathComponent("none")) == 0)
        #expect(try names(in: folder.url) == ["export", "none"])
        let other = try folder.file("other")
        #expect(try mode(of: file) == mode(of: other))
    }

    @Test(
        "A truncated body and a cancellation leave the earlier file and no other",
        arguments: RealSession.streaming, [true, false])
    func interrupted(session: RealSession, isCancelled: Bool) async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200) { body in
                try body.write(Data(count: 300_000))
                if isCancelled { body.pause(for: .seconds(60)) }
                throw TestError()  // closes the connection
            }
            response.headers[.contentLength] = "400000"
            return response
        }
        let file = try folder.file("export", Data("earlier".utf8))
        let body = try await body(server, session)
        let writing = Task { try await body.write(to: file) }
        if isCancelled {
            try await eventually("bytes are written") {
                try names(in: folder.url).contains { name in
                    let size = try? folder.url.appendingPathComponent(name).resourceValues(forKeys: [.fileSizeKey])
                    return name != "export" && size?.fileSize ?? 0 > 100_000
                }
            }
            writing.cancel()
        }
        let error = await #expect(throws: URLError.self) { try await writing.value }
        #expect((error?.code == .cancelled) == isCancelled)
        #expect(try names(in: folder.url) == ["export"])
        #expect(try Data(contentsOf: file) == Data("earlier".utf8))
    }

    @Test("A destination that cannot be a file is an error, and the body can still be read")
    func unusable() async throws {
        let mock = MockSession()
        mock.addStub(MockResponse(statusCode: 200, data: Data("ale".utf8)))
        let body = try await WebService("https://h", session: mock).GET("/").stream().value.body
        let file = try folder.file("file")
        for destination in [
            folder.url, folder.url.appendingPathComponent("none/file"), file.appendingPathComponent("below"),
            URL(string: "https://h/file"), URL(fileURLWithPath: "/"), folder.url.appendingPathComponent("a\0b"),
        ].compactMap(\.self) {
            let error = await #expect(throws: WebServiceError.self) { try await body.write(to: destination) }
            #expect(error?.code == .download)
        }
        let link = folder.url.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        #expect(try await body.write(to: link) == 3)
        #expect(try Data(contentsOf: link) == Data("ale".utf8))
        #expect(try Data(contentsOf: file) == Data())  // the link was replaced
        let again = await #expect(throws: WebServiceError.self) { try await body.write(to: link) }
        #expect(again?.code == .streamConsumed)
        #expect(try names(in: folder.url) == ["file", "link"])
        #expect(try Data(contentsOf: link) == Data("ale".utf8))
    }

    @Test(
        "A full disk is an error, and the temporary file is removed",
        .enabled(if: SmallDisk.canMount, "only a privileged user can mount a file system"))
    func fullDisk() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, data: Data(count: 2 << 20)) }
        try await SmallDisk.with(kilobytes: 512) { disk in
            let body = try await body(server, .foundationSession)
            let error = await #expect(throws: WebServiceError.self) {
                try await body.write(to: disk.appendingPathComponent("export"))
            }
            #expect(error?.code == .download)
            #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
            #expect(try names(in: disk) == [])
        }
    }

    @Test(
        "The progress of a stream has its length, rate and remaining time",
        arguments: RealSession.streaming)
    func progress(session: RealSession) async throws {
        let gate = StreamTests.Gate()
        let server = try MockServer.forTest { request in
            var response = MockResponse(statusCode: 200) { body in
                try body.write(Data(count: 1_000))
                gate.wait()
                try body.write(Data(count: 4_000))
                gate.wait()
                try body.write(Data(count: 5_000))
            }
            if request.path == "/known" { response.headers[.contentLength] = "10000" }
            return response
        }
        for path in ["/known", "/unknown"] {
            let clock = ManualTimekeeper()
            let service = WebService.make(try session.session(), base: server.baseURLString, timekeeper: clock)
            let latest = Mutex(TransferProgress())
            let task = service.GET(path).onProgress { progress in latest.withLock { $0 = progress } }.stream()
            let body = try await task.value.body
            let file = folder.url.appendingPathComponent("export")
            async let count = body.write(to: file)
            await eventually("the first bytes are reported") { latest.withLock { $0.bytesReceived } == 1_000 }
            #expect(latest.withLock { $0.bytesPerSecond } == nil)
            #expect(latest.withLock { $0.secondsRemaining } == nil)
            clock.advance(by: .seconds(2))
            gate.open()
            await eventually("the next bytes are reported") { latest.withLock { $0.bytesReceived } == 5_000 }
            #expect(latest.withLock { $0.bytesPerSecond } == 2_000)
            #expect(latest.withLock { $0.secondsRemaining } == (path == "/known" ? 2.5 : nil))
            #expect(latest.withLock { $0.bytesToReceive } == (path == "/known" ? 10_000 : nil))
            gate.open()
            #expect(try await count == 10_000)
            await eventually("all bytes are reported") { latest.withLock { $0.bytesReceived } == 10_000 }
        }
    }

    #if WEBSERVICE_CURL
    @Test("The progress of an upload has its length, rate and remaining time")
    func uploadProgress() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, data: Data(count: 10)) }
        for length in [10_000, nil] as [Int64?] {
            let clock = ManualTimekeeper()
            let service = WebService.make(
                try RealSession.curlSession.session(), base: server.baseURLString, timekeeper: clock)
            let latest = Mutex(TransferProgress())
            let chunks = Fed()
            let task = service.POST("/").setBody(.stream(chunks, length: length))
                .onProgress { progress in latest.withLock { $0 = progress } }.data().resume()
            chunks.send(String(repeating: "a", count: 1_000))
            await eventually("the first bytes are reported") { latest.withLock { $0.bytesSent } == 1_000 }
            #expect(latest.withLock { $0.bytesPerSecond } == nil)
            clock.advance(by: .seconds(2))
            chunks.send(String(repeating: "a", count: 4_000))
            await eventually("the next bytes are reported") { latest.withLock { $0.bytesSent } == 5_000 }
            #expect(latest.withLock { $0.bytesPerSecond } == 2_000)
            #expect(latest.withLock { $0.secondsRemaining } == (length == nil ? nil : 2.5))
            #expect(latest.withLock { $0.bytesToSend } == length)
            chunks.send(String(repeating: "a", count: 5_000))
            chunks.finish()
            #expect(try await task.value.count == 10)
        }
    }
    #endif
}
