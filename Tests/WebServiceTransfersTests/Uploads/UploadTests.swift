import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Uploads without and after interruptions, over real sockets and a strict server.
@Suite("Uploads that resume", .permit)
struct UploadTests {
    static let combinations = UploadProtocol.allCases.flatMap { kind in UploadSession.allCases.map { (kind, $0) } }

    @Test("A file arrives whole, in pieces, and leaves no state", arguments: combinations)
    func whole(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, over: session)
        let progress = Collected<TransferProgress>()
        let file = try await fixture.upload().onProgress { progress.add($0) }.value
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
        #expect(file.byteCount == 350_000)
        #expect(file.resumedFrom == 0)
        #expect(file.restarts == 0)
        #expect(file.location?.path == "/uploads/1")
        #expect(try fixture.names == ["a.iso"])
        #expect(fixture.server.current.requests.allSatisfy { $0.body.count <= UploadFixture.pieceSize })
        #expect(progress.values.last?.bytesSent == 350_000)
        #expect(progress.values.allSatisfy { $0.bytesToSend == 350_000 })
    }

    @Test("The draft delivers the response of the resource, and its fields and type are sent once")
    func response() async throws {
        let fixture = try UploadFixture(.draft)
        let file = try await fixture.upload().value
        #expect(file.response.data == Data("350000".utf8))
        #expect(file.response.headers["Upload-Complete"] == "?1")
        let upload = try #require(fixture.server.upload)
        #expect(upload.fields["Content-Type"] == "application/x-iso")
        #expect(
            fixture.server.log == [
                "OPTIONS /files/1", "PUT /files/1", "PATCH /uploads/1", "PATCH /uploads/1", "PATCH /uploads/1",
            ])
    }

    @Test("A file of at most one piece is one request of the draft", arguments: [0, 1, 100_000])
    func small(_ count: Int) async throws {
        let fixture = try UploadFixture(.draft, count)
        let file = try await fixture.upload().value
        #expect(file.byteCount == Int64(count))
        #expect(fixture.server.log == ["PUT /files/1"])
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("An empty file and one of a single byte are uploads of tus", arguments: [0, 1])
    func smallTus(_ count: Int) async throws {
        let fixture = try UploadFixture(.tus, count)
        let file = try await fixture.upload().value
        #expect(file.byteCount == Int64(count))
        #expect(fixture.server.log == ["OPTIONS /files/1", "POST /files/1"])
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test(
        "Without the extension, the creation of tus has no content", arguments: UploadSession.allCases
    )
    func creation(_ session: UploadSession) async throws {
        let fixture = try UploadFixture(
            .tus, 350_000, UploadServer.Settings(extensions: "creation"), over: session)
        _ = try await fixture.upload().value
        #expect(fixture.server.violations == [])
        #expect(fixture.server.current.requests.first { $0.method == .POST }?.body.isEmpty == true)
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("A later upload continues at the server's offset", arguments: combinations)
    func resumed(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, over: session)
        try await fixture.interrupt(after: 2)
        #expect(try fixture.state != nil)
        fixture.server.forgetRequests()
        let file = try await fixture.upload().value
        #expect(file.resumedFrom == 200_000)
        #expect(fixture.server.log.prefix(2) == ["HEAD /uploads/1", "PATCH /uploads/1"])
        #expect(fixture.server.current.requests.map(\.body.count).reduce(0, +) == 150_000)
        #expect(fixture.server.violations == [])
        let isStored = fixture.isStored
        #expect(isStored)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("An upload whose last response was lost is complete", arguments: UploadProtocol.allCases)
    func lostResponse(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        let server = fixture.server
        try await fixture.interrupt(after: 3)
        // The server has stored the piece whose response was lost.
        let path = try #require(server.current.uploads.keys.first)
        server.complete(path, fixture.content)
        server.forgetRequests()
        let file = try await fixture.upload().value
        #expect(file.resumedFrom == 350_000)
        #expect(server.log == ["HEAD /uploads/1"])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A whole file that the draft's server has not completed is completed without content")
    func uncompleted() async throws {
        let fixture = try UploadFixture(.draft)
        try await fixture.interrupt(after: 3)
        let path = try #require(fixture.server.current.uploads.keys.first)
        fixture.server.complete(path, fixture.content, isComplete: false)
        fixture.server.forgetRequests()
        let file = try await fixture.upload().value
        #expect(file.response.data == Data("350000".utf8))
        #expect(fixture.server.log == ["HEAD /uploads/1", "PATCH /uploads/1"])
        #expect(fixture.server.current.requests.last?.body.isEmpty == true)
        #expect(fixture.server.violations == [])
    }

    @Test(
        "With a retry policy, an upload continues after a lost connection and a transient status",
        arguments: UploadProtocol.allCases)
    func retried(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        fixture.service.interceptors = [.retry(baseDelay: .zero)]
        let failures = Mutex(0)
        fixture.server.set { request, _ in
            guard request.method == .PATCH else { return nil }
            return failures.withLock { failures in
                failures += 1
                return failures == 1 ? .lost : failures == 3 ? MockResponse(statusCode: 503) : nil
            }
        }
        let file = try await fixture.service.POST("/files/1").setBody(file: fixture.file)
            .upload(resuming: kind, pieceSize: UploadFixture.pieceSize).value
        #expect(file.resumedFrom == 0)
        #expect(fixture.server.violations == [])
        #expect(fixture.server.current.conflicts == 0)
        let isStored = fixture.isStored
        #expect(isStored)
        #expect(fixture.server.log.filter { $0.hasPrefix("HEAD") }.count == 2)
    }

    @Test("The attempts of a retry policy end the upload, and the state remains")
    func attempts() async throws {
        let fixture = try UploadFixture(.tus)
        fixture.service.interceptors = [.retry(maximumAttempts: 3, baseDelay: .zero)]
        fixture.server.set { request, _ in request.method == .PATCH ? .lost : nil }
        await #expect(throws: URLError.self) { try await fixture.upload().value }
        #expect(fixture.server.log.filter { $0.hasPrefix("PATCH") }.count == 3)
        #expect(try fixture.state != nil)
    }

    @Test("A cancelled upload leaves its state and continues later", arguments: combinations)
    func cancelled(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, over: session)
        let task = fixture.upload()
        let pieces = Mutex(0)
        fixture.server.set { request, _ in
            guard !request.body.isEmpty,
                pieces.withLock({ value in
                    defer { value += 1 }; return value
                }) == 2
            else { return nil }
            task.cancel()
            return .lost
        }
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        fixture.server.set(nil)
        let file = try await fixture.upload().value
        #expect(file.resumedFrom == 200_000)
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("The second upload of a file to a URL fails while the first is in progress")
    func conflict() async throws {
        let fixture = try UploadFixture(.tus)
        let other = fixture.upload()
        let codes = Collected<WebServiceError.Code?>()
        fixture.server.set { _, number in
            guard number == 1 else { return nil }
            let signal = DispatchSemaphore(value: 0)
            Task {
                do { _ = try await other.value } catch { codes.add((error as? WebServiceError)?.code) }
                signal.signal()
            }
            signal.wait()
            return nil
        }
        _ = try await fixture.upload().value
        #expect(codes.values == [.uploadInProgress])
        let isStored = fixture.isStored
        #expect(isStored)
    }

    @Test("An upload is ended on the server, and the next one begins anew", arguments: combinations)
    func ended(_ kind: UploadProtocol, _ session: UploadSession) async throws {
        let fixture = try UploadFixture(kind, over: session)
        #expect(try await fixture.request.endUpload(resuming: kind).value == false)
        #expect(fixture.server.log == [])
        try await fixture.interrupt(after: 2)
        fixture.server.forgetRequests()
        #expect(try await fixture.request.endUpload(resuming: kind).value)
        #expect(fixture.server.log == ["DELETE /uploads/1"])
        #expect(fixture.server.violations == [])
        #expect(try fixture.names == ["a.iso"])
        #expect(try await fixture.upload().value.resumedFrom == 0)
    }

    @Test("An upload that the server no longer has is ended", arguments: UploadProtocol.allCases)
    func endedTwice(_ kind: UploadProtocol) async throws {
        let fixture = try UploadFixture(kind)
        try await fixture.interrupt(after: 2)
        fixture.server.forgetUploads()
        #expect(try await fixture.request.endUpload(resuming: kind).value)
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A request without a file, or whose body is compressed, fails before anything is sent")
    func refused() async throws {
        let fixture = try UploadFixture(.draft)
        let requests: [SessionTask] = [
            fixture.service.PUT("/files/1"), fixture.service.PUT("/files/1").setBody(Data("ale".utf8)),
            fixture.service.PUT("/files/1").setBody(file: fixture.folder.url),
            fixture.service.PUT("/files/1").setBody(file: fixture.folder.url.appendingPathComponent("none")),
            fixture.service.GET("/files/1").setBody(file: fixture.file),
        ]
        for request in requests {
            let error = await #expect(throws: WebServiceError.self) {
                try await request.upload(resuming: .draft).value
            }
            #expect(error?.code == .upload)
        }
        #expect(fixture.server.log == [])
        #expect(try fixture.names == ["a.iso"])
    }

    @Test("A task that uploads is listed as an upload")
    func listed() async throws {
        let fixture = try UploadFixture(.tus)
        let kinds = Collected<String>()
        fixture.server.set { _, number in
            if number == 1 { for exchange in fixture.service.exchanges { kinds.add("\(exchange.kind)") } }
            return nil
        }
        _ = try await fixture.upload().value
        #expect(kinds.values == ["upload"])
    }
}

extension UploadServer {
    /// Sets the content of an upload.
    func complete(_ path: String, _ content: Data, isComplete: Bool = true) {
        change(path) { ($0.data, $0.isComplete) = (content, isComplete) }
    }
}
