import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// Interruptions, cancellation, destinations that cannot be used and hashes.
@Suite("Downloads that fail", .permit)
struct DownloadFailureTests {
    private static let content = DownloadFixture.content(1_000_000)

    private static func part(_ request: ReceivedRequest) -> MockResponse {
        MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
    }

    @Test(
        "A connection that is lost every 64 KiB is continued by a retry policy",
        arguments: RealSession.streaming)
    func cuts(session: RealSession) async throws {
        let fixture = try DownloadFixture(over: session) { request, _ in
            let response = Self.part(request)
            return response.data.count > 65_536 ? response.cut(response.data, after: 65_536) : response
        }
        fixture.service.interceptors = [.continuing(maximumAttempts: 2)]
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(Self.content))
        #expect(file.byteCount == 1_000_000)
        let offsets = fixture.ranges.dropFirst().map { Int($0.dropFirst(6).dropLast()) ?? -1 }
        #expect(offsets == offsets.sorted())
        #expect(offsets.count >= 15)
        #expect(offsets.last.map { $0 >= 1_000_000 - 65_536 } == true)
        if session.isCurl { #expect(offsets == (1...15).map { $0 * 65_536 }) }
    }

    @Test("Attempts without any bytes are limited by the retry policy")
    func fruitless() async throws {
        let fixture = try DownloadFixture { request, number in
            let response = Self.part(request)
            return response.cut(response.data, after: number == 0 ? 65_536 : 0)
        }
        fixture.service.interceptors = [
            .continuing(baseDelay: .milliseconds(2))
        ]
        let task = fixture.download()
        await #expect(throws: URLError.self) { try await task.value }
        #expect(fixture.requests.count == 4)
        let pauses = task.timeline.events.filter { $0.kind == .retry }.map { $0.detail.suffix(22) }
        #expect(pauses == ["pause of 0.002 seconds", "pause of 0.002 seconds", "pause of 0.004 seconds"])
        #expect(try fixture.part.count == 65_536)
    }

    @Test("A server that does not serve parts is not asked again and again")
    func restartsAreLimited() async throws {
        let fixture = try DownloadFixture { _, _ in MockResponse(statusCode: 200).cut(Self.content, after: 65_536) }
        fixture.service.interceptors = [.continuing()]
        await #expect(throws: URLError.self) { try await fixture.download().value }
        #expect(fixture.requests.count == 4)
    }

    @Test("An error status is an error with its body, and leaves no file")
    func status() async throws {
        let fixture = try DownloadFixture { _, _ in MockResponse(statusCode: 404, data: Data("no such file".utf8)) }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.download().value }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.body == Data("no such file".utf8))
        #expect(try fixture.names == [])
        try await fixture.interrupt(after: 400_000)
        fixture.serve { _, _ in MockResponse(statusCode: 503, data: Data("later".utf8)) }
        await fails(.unacceptableStatus) { try await fixture.download().value }
        #expect(try fixture.part.count == 400_000)
    }

    @Test("A status without a body is not a file", arguments: [204, 304])
    func noContent(status: Int) async throws {
        let fixture = try DownloadFixture { _, _ in MockResponse(statusCode: status) }
        await fails(.unacceptableStatus) { try await fixture.download().value }
        #expect(try fixture.names == [])
    }

    @Test("A destination that cannot be used is an error before the request")
    func destinations() async throws {
        let fixture = try DownloadFixture()
        try FileManager.default.createDirectory(at: fixture.destination, withIntermediateDirectories: false)
        await fails(.download) { try await fixture.download().value }
        let missing = fixture.folder.appendingPathComponent("missing/a.iso")
        await fails(.download) { try await fixture.service.GET("/a.iso").download(to: missing).value }
        let remote = try #require(URL(string: "https://h/a"))
        await fails(.download) { try await fixture.service.GET("/a.iso").download(to: remote).value }
        await fails(.download) {
            try await fixture.service.GET("/a.iso").download(into: fixture.folder, name: "b", checksum: .sha256("0"))
                .value
        }
        #expect(fixture.requests.isEmpty)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A folder that is removed during the download is an error")
    func removedFolder() async throws {
        let fixture = try DownloadFixture()
        let folder = fixture.folder
        fixture.serve { request, _ in
            var response = Self.part(request)
            response.headers[.contentLength] = "1000000"
            response.writer = { writer in
                try writer.write(Self.content.prefix(500_000))
                try FileManager.default.removeItem(at: folder)
                try writer.write(Self.content.dropFirst(500_000))
            }
            return response
        }
        await fails(.download) { try await fixture.download().value }
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("A file that appears during the download is not replaced")
    func appearing() async throws {
        let fixture = try DownloadFixture()
        let destination = fixture.destination
        fixture.serve { request, _ in
            #expect((try? Data("other".utf8).write(to: destination)) != nil)
            return Self.part(request)
        }
        await fails(.download) { try await fixture.download(existing: .fail).value }
        #expect(try fixture.fileHas(Data("other".utf8)))
        #expect(try fixture.names == ["a.iso"])
        await fails(.download) { try await fixture.download(existing: .fail).value }
        #expect(fixture.requests.count == 1)
        try FileManager.default.removeItem(at: destination)
        fixture.serve(nil)
        _ = try await fixture.download(existing: .fail).value
        #expect(try fixture.fileHas(fixture.content))
    }

    @Test("One of two downloads to a destination is refused")
    func twice() async throws {
        let fixture = try DownloadFixture()
        let gate = DispatchSemaphore(value: 0)
        fixture.serve { request, _ in
            var response = Self.part(request)
            response.headers[.contentLength] = "1000000"
            response.writer = { writer in
                _ = gate.wait(timeout: .now() + 60)
                try writer.write(Self.content)
            }
            return response
        }
        let first = fixture.download().resume()
        await eventually { fixture.requests.count == 1 }
        await fails(.downloadInProgress) { try await fixture.download().value }
        gate.signal()
        _ = try await first.value
        #expect(fixture.requests.count == 1)
        #expect(try fixture.fileHas(Self.content))
    }

    @Test("A cancelled download leaves its bytes for the next one, which may begin at once")
    func cancelled() async throws {
        let fixture = try DownloadFixture(10_000_000)
        var refetched = 0
        for round in 1...10 {
            let task = fixture.service.GET("/a.iso").download(to: fixture.destination, bytesPerSecond: 4_000_000)
            let target = refetched + 100_000 * (round % 3)
            let reached = task.onProgress { if $0.bytesReceived >= target { task.cancel() } }
            let error = await #expect(throws: URLError.self) { try await reached.value }
            #expect(error?.code == .cancelled)
            refetched = try fixture.part.count
            #expect(try fixture.partHas(fixture.content.prefix(refetched)))
            #expect(refetched >= target)
        }
        let file = try await fixture.download().value
        #expect(file.resumedFrom == Int64(refetched))
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.requests.count == 11)
        #expect(fixture.ranges.last == "bytes=\(refetched)-")
    }

    @Test("A suspended download sends no further request until it is resumed")
    func suspended() async throws {
        let fixture = try DownloadFixture()
        let slot = Mutex<TypedTask<DownloadedFile>?>(nil)
        fixture.serve { request, number in
            if number == 0 { slot.withLock { $0 }?.task.suspend() }
            let response = Self.part(request)
            return number == 0 ? response.cut(response.data, after: 65_536) : response
        }
        fixture.service.interceptors = [.continuing()]
        let task = fixture.download()
        slot.withLock { $0 = task }
        task.resume()
        await eventually { task.timeline.events.contains { $0.kind == .wait } }
        #expect(fixture.requests.count == 1)
        #expect(task.task.state == .suspended)
        task.task.resume()
        #expect(try await task.value.byteCount == 1_000_000)
        #expect(fixture.requests.count == 2)
    }

    @Test("The deadline that a request sets ends the whole download")
    func deadline() async throws {
        let fixture = try DownloadFixture { request, _ in
            var response = Self.part(request)
            response.wire = .stall(after: 500_000)
            return response
        }
        let clock = TestClock()
        let service = WebService(baseURLString: fixture.server.baseURLString, clock: clock)
        service.session = fixture.service.session
        let received = Mutex<Int64>(0)
        let task = service.GET("/a.iso").setDeadline(.seconds(2)).download(to: fixture.destination)
            .onProgress { progress in received.withLock { $0 = progress.bytesReceived } }
        task.resume()
        await eventually { received.withLock { $0 } > 0 }
        await clock.advance(by: .seconds(2))
        await fails(.deadline) { try await task.value }
        #expect(try fixture.partHas(Self.content.prefix(fixture.part.count)))
        await fails(.responseTooLarge) {
            try await fixture.service.GET("/a.iso").configure { $0.options.maximumResponseBytes = 999_999 }.download(
                to: fixture.destination
            )
            .value
        }
    }

    @Test("A wrong hash of the file or a part removes it, and a right one does not")
    func digests() async throws {
        let right = "sha-256=:\(Data(Self.sha256).base64EncodedString()):"
        let wrong = "sha-256=:\(Data(repeating: 0, count: 32).base64EncodedString()):"
        for (name, value, isRight) in [
            ("Repr-Digest", right, true), ("Repr-Digest", wrong, false), ("Content-Digest", right, true),
            ("Content-Digest", wrong, false), ("Repr-Digest", "md5=:AAAA:", true), ("Repr-Digest", "sha-256", true),
            ("Repr-Digest", right + ", sha-512=:\(Data(count: 64).base64EncodedString()):", false),
        ] {
            let fixture = try DownloadFixture { request, _ in
                var response = Self.part(request)
                response.headers[name] = value
                return response
            }
            if isRight {
                _ = try await fixture.download().value
                #expect(try fixture.fileHas(Self.content))
            } else {
                await fails(.digestMismatch) { try await fixture.download().value }
                #expect(try fixture.names == [])
            }
        }
    }

    @Test("A hash in the trailer fields is verified")
    func trailers() async throws {
        for isRight in [true, false] {
            let digest = Data(isRight ? Self.sha256 : [UInt8](repeating: 0, count: 32)).base64EncodedString()
            let fixture = try DownloadFixture { _, _ in
                var response = MockResponse(statusCode: 200) { try $0.write(Self.content) }
                response.trailers["Repr-Digest"] = "sha-256=:\(digest):"
                return response
            }
            if isRight || !RealSession.best.isCurl {
                _ = try await fixture.download().value
                #expect(try fixture.fileHas(Self.content))
            } else {
                await fails(.digestMismatch) { try await fixture.download().value }
                #expect(try fixture.names == [])
            }
        }
    }

    @Test("A given hash is that of the whole file, also if it was continued")
    func checksum() async throws {
        let hex = Self.sha256.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        for isRight in [true, false] {
            let fixture = try DownloadFixture()
            try await fixture.interrupt(after: 400_000)
            let checksum = Checksum.sha256(isRight ? hex : String(repeating: "0", count: 64))
            let task = fixture.service.GET("/a.iso").download(to: fixture.destination, checksum: checksum)
            if isRight {
                #expect(try await task.value.resumedFrom == 400_000)
                #expect(try fixture.fileHas(fixture.content))
            } else {
                await fails(.digestMismatch) { try await task.value }
                #expect(try fixture.names == [])
            }
        }
    }

    /// The hash of the content, by another implementation.
    private static let sha256: [UInt8] = [
        0xB5, 0x23, 0x7A, 0x73, 0xFE, 0xC6, 0x66, 0x3F, 0x44, 0x71, 0x3E, 0x63, 0x2E, 0x2D, 0x87, 0xC9,
        0x2F, 0x19, 0x35, 0x2C, 0x26, 0xD7, 0x0E, 0xE8, 0x0C, 0x33, 0xB8, 0xB9, 0x54, 0x8D, 0x0E, 0xE9,
    ]

    @Test("A file that is larger than the disk is refused before anything is written")
    func space() async throws {
        let fixture = try DownloadFixture { _, _ in
            var response = MockResponse(statusCode: 200)
            response.headers[.contentLength] = "4611686018427387904"
            response.headers["ETag"] = DownloadFixture.tag
            response.writer = { try $0.write(Data(count: 1_000)) }
            return response
        }
        let error = await #expect(throws: WebServiceError.self) { try await fixture.download().value }
        #expect(error?.code == .download)
        #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
        #expect(try fixture.names == [])
    }

    @Test(
        "A length that is too large for the disk or for an integer is an error, and no bytes are written",
        arguments: ["9223372036854775807", "9223372036854775808", "100000000000000000000000"])
    func hugeLength(length: String) async throws {
        // Foundation on Linux traps on the first of these lengths.
        for session in RealSession.allCases where session.isCurl {
            let fixture = try DownloadFixture(0, over: session) { _, _ in
                var response = MockResponse(statusCode: 200)
                response.wire = .raw(Data("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nbytes".utf8))
                return response
            }
            let error = await #expect(throws: (any Error).self) { try await fixture.download().value }
            #expect(error is URLError || (error as? WebServiceError)?.code == .download, "\(session), \(error as Any)")
            #expect(!FileManager.default.fileExists(atPath: fixture.destination.path))
        }
    }
}
