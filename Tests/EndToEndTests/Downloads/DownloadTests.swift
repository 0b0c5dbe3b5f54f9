import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

@Suite("Downloads", .permit)
struct DownloadTests {
    @Test(
        "A download has the bytes of the body, and leaves no other file",
        arguments: RealSession.allCases)
    func whole(session: RealSession) async throws {
        let fixture = try DownloadFixture(3_000_000, over: session)
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(fixture.content))
        #expect(try fixture.names == ["a.iso"])
        #expect(file.url.path == fixture.destination.path)
        #expect(file.byteCount == 3_000_000)
        #expect(file.resumedFrom == 0)
        #expect(file.restarts == 0)
        #expect(file.response.status == 200)
        #expect(file.response.data.isEmpty)
        #expect(fixture.requests.map { $0.headers["Accept-Encoding"] } == ["identity"])
        #expect(fixture.ranges == [""])
    }

    @Test(
        "An interrupted download continues where it ended, also with another query that is ignored",
        arguments: RealSession.streaming, ["/a.iso", "/a.iso?token=2"])
    func resumed(session: RealSession, path: String) async throws {
        let fixture = try DownloadFixture(over: session)
        try await fixture.interrupt(after: 400_000)
        let file = try await fixture.service.GET(path)
            .download(to: fixture.destination, ignoresQuery: path.contains("?")).value
        #expect(try fixture.fileHas(fixture.content))
        #expect(try fixture.names == ["a.iso"])
        #expect(file.resumedFrom == 400_000)
        #expect(file.byteCount == 1_000_000)
        #expect(file.restarts == 0)
        #expect(file.response.status == 206)
        #expect(fixture.ranges == ["bytes=400000-"])
        #expect(fixture.requests.map { $0.headers["If-Range"] } == [DownloadFixture.tag])
    }

    @Test("A date of modification is a validator, and a weak entity tag is not")
    func validators() async throws {
        let (date, second) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT")
        for (fields, validator) in [
            (["Last-Modified": date, "Date": second], date), (["Last-Modified": date, "Date": date], nil),
            (["ETag": "W/\"1\""], nil), ([:], nil),
        ] as [([String: String], String?)] {
            let fixture = try DownloadFixture()
            try await fixture.interrupt(after: 400_000) { response in
                response.headers["ETag"] = nil
                for (name, value) in fields { response.headers[name] = value }
            }
            let file = try await fixture.download().value
            #expect(try fixture.fileHas(fixture.content))
            #expect(fixture.requests.map { $0.headers["If-Range"] } == [validator])
            // This server has an entity tag, and thus sends the whole file for a date.
            #expect(file.restarts == 1)
            #expect(file.resumedFrom == 0)
        }
    }

    @Test("A part that is shorter than requested is followed by a request for the rest")
    func shortParts() async throws {
        let fixture = try DownloadFixture(1_000_000)
        try await fixture.interrupt(after: 100_000)
        fixture.serve { [content = fixture.content] request, _ in
            let first = Int(request.headers["Range"]?.dropFirst(6).dropLast() ?? "") ?? 0
            let last = min(first + 250_000, 1_000_000) - 1
            var response = MockResponse(statusCode: 206, data: content[first...last])
            response.headers["Content-Range"] = "bytes \(first)-\(last)/1000000"
            response.headers["ETag"] = DownloadFixture.tag
            return response
        }
        let file = try await fixture.download().value
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.ranges == ["bytes=100000-", "bytes=350000-", "bytes=600000-", "bytes=850000-"])
        #expect(file.resumedFrom == 100_000)
    }

    @Test("An empty file is downloaded")
    func empty() async throws {
        let fixture = try DownloadFixture(0)
        #expect(try await fixture.download().value.byteCount == 0)
        #expect(try fixture.fileHas(Data()))
        #expect(try await fixture.download(connections: 4).value.byteCount == 0)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A download with POST is not continued, and one with HEAD is an error")
    func methods() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let file = try await fixture.service.POST("/a.iso").download(to: fixture.destination).value
        #expect(file.resumedFrom == 0)
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.ranges == [""])
        await fails(.download) { try await fixture.service.HEAD("/a.iso").download(to: fixture.destination).value }
        #expect(fixture.requests.count == 1)
    }

    @Test("A suggested name is one component in the folder")
    func names() async throws {
        for (disposition, path, name) in [
            ("attachment; filename=\"../../b.iso\"", "/x/a.iso", "b.iso"),
            ("attachment; filename*=UTF-8''%2e%2e%2f%c3%a4", "/x/a.iso", "ä"), (nil, "/x/a%20b.iso?c=d", "a b.iso"),
            (nil, "/", "download"), ("attachment; filename=\"..\"", "/x/.bashrc", "bashrc"),
        ] as [(String?, String, String)] {
            let fixture = try DownloadFixture(1_000) { request, _ in
                var response = MockResponse(statusCode: 200, data: Data("ale".utf8))
                response.headers["Content-Disposition"] = disposition
                return response
            }
            let file = try await fixture.service.GET(fixture.server.baseURLString + path)
                .download(into: fixture.folder).value
            #expect(file.url.lastPathComponent == name)
            #expect(try fixture.names == [name])
        }
    }

    @Test("A download with a suggested name continues after the name is known")
    func suggestedResume() async throws {
        let fixture = try DownloadFixture()
        try await fixture.interrupt(after: 400_000)
        let file = try await fixture.service.GET("/a.iso").download(into: fixture.folder).value
        #expect(file.resumedFrom == 400_000)
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.ranges == ["", "bytes=400000-"])
        let given = try await fixture.service.GET("/a.iso").download(into: fixture.folder, name: "../b").value
        #expect(given.url.path == fixture.folder.appendingPathComponent("b").path)
        await fails(.download) {
            try await fixture.service.GET("/a.iso").download(into: fixture.folder, name: "..").value
        }
    }

    @Test("Progress never decreases, begins at the existing bytes and ends at the length of the file")
    func progress() async throws {
        let fixture = try DownloadFixture(4_000_000)
        try await fixture.interrupt(after: 1_000_000)
        let reports = Mutex<[TransferProgress]>([])
        let task = fixture.download().onProgress { progress in reports.withLock { $0.append(progress) } }
        let updates = Task { [stream = task.progress] in await stream.reduce(into: []) { $0.append($1) } }
        _ = try await task.value
        let values = reports.withLock { $0 }
        #expect(values.map(\.bytesReceived) == values.map(\.bytesReceived).sorted())
        #expect(values.last?.bytesReceived == 4_000_000)
        #expect(values.last?.fractionReceived == 1)
        #expect(values.allSatisfy { $0.bytesReceived >= 1_000_000 })
        #expect(values.allSatisfy { $0.bytesToReceive == 4_000_000 })
        #expect(await updates.value.last?.bytesReceived == 4_000_000)
    }

    @Test("A limited download takes as long as its rate demands, and reports this rate")
    func limited() async throws {
        let fixture = try DownloadFixture(1_000_000)
        let clock = HurriedClock()
        let service = WebService(
            baseURLString: fixture.server.baseURLString, passthroughDelegate: nil, timekeeper: clock)
        service.session = fixture.service.session
        let rates = Mutex<[Double]>([])
        let start = clock.instant
        _ = try await service.GET("/a.iso").download(to: fixture.destination, bytesPerSecond: 500_000)
            .onProgress { progress in rates.withLock { $0.append(progress.bytesPerSecond ?? 0) } }.value
        #expect(try fixture.fileHas(fixture.content))
        let seconds = Double(clock.instant - start) / 1e9
        #expect(seconds > 1.85)
        #expect(seconds < 2.1)
        let last = try #require(rates.withLock { $0.last })
        #expect(last > 450_000)
        #expect(last < 650_000)
    }

    @Test("A redirect to another origin is followed for each part, without credentials")
    func redirected() async throws {
        let fixture = try DownloadFixture()
        let origin = try MockServer.forTest { [base = fixture.server.baseURLString] _ in
            var response = MockResponse(statusCode: 302)
            response.headers["Location"] = base + "/cdn/a.iso"
            return response
        }
        let service = try RealSession.best.service(origin)
        func download() -> TypedTask<DownloadedFile> {
            service.GET("/a.iso").setHeaderValue("Bearer canary", forName: "Authorization")
                .download(to: fixture.destination)
        }
        fixture.serve { [content = fixture.content] request, _ in
            MockResponse(file: content, eTag: DownloadFixture.tag, for: request).cut(content, after: 400_000)
        }
        await #expect(throws: URLError.self) { try await download().value }
        fixture.serve { [content = fixture.content] request, _ in
            MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
        }
        let file = try await download().value
        #expect(file.resumedFrom == 400_000)
        #expect(try fixture.fileHas(fixture.content))
        #expect(fixture.requests.map { $0.headers["Authorization"] } == [nil])
        #expect(origin.receivedRequests.map { $0.headers["Authorization"] } == ["Bearer canary", "Bearer canary"])
    }

    @Test("The timeline of a download has the requests of all its parts")
    func timeline() async throws {
        let fixture = try DownloadFixture { [content = DownloadFixture.content(1_000_000)] request, number in
            let response = MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
            return number == 0 ? response.cut(content, after: 400_000) : response
        }
        fixture.service.interceptors = [.continuing()]
        let task = fixture.download()
        _ = try await task.value
        let statuses = task.timeline.events.compactMap(\.status)
        #expect(statuses == [200, 206])
        #expect(task.timeline.events.contains { $0.kind == .retry })
        #expect(task.request.url?.path == "/a.iso")
    }
}

/// Expects that a task fails with a code.
func fails<Value>(
    _ code: WebServiceError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Value
) async {
    do {
        _ = try await body()
        Issue.record("there was no error", sourceLocation: sourceLocation)
    } catch let error as WebServiceError {
        #expect(error.code == code, sourceLocation: sourceLocation)
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
}

/// A clock that only advances while a task sleeps, by the duration of the sleep. Longer alarms, such
/// as deadlines, never fire.
private final class HurriedClock: Timekeeper {
    private let alarms = AlarmTimer()
    private let time = Mutex<UInt64>(1_000_000_000)

    var instant: UInt64 { time.withLock { $0 } }

    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        let end = instant.addingSaturated(delay)
        let alarm = alarms.add(at: end, target)
        guard delay < .seconds(10) else { return alarm }
        DispatchQueue.global().async { [self] in
            let now = time.withLock { time in
                time = max(time, end)
                return time
            }
            alarms.fire(at: now)
        }
        return alarm
    }

    func cancel(_ alarm: Alarm) { alarms.cancel(alarm) }
}
