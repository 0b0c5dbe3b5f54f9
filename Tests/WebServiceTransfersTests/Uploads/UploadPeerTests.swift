import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

private enum Tuspyserver {
    /// The folder of its modules; `nil` if it is not installed.
    static let modules = ProcessInfo.processInfo.environment["WEBSERVICE_TUSPYSERVER"]
}

/// Sends other requests in place of OPTIONS, which the server rejects with status 405.
private struct RejectedOptions: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Response {
        var request = request
        if request.method == .OPTIONS { request.method = "LINK" }
        return try await next(request)
    }
}

/// Uploads to tuspyserver, an independent server of tus.
///
/// `scripts/test` installs it if possible; `Support/tus-server.py` starts it.
@Suite(
    "Uploads to tuspyserver", .permit,
    .enabled(if: Tuspyserver.modules != nil, "requires tuspyserver (WEBSERVICE_TUSPYSERVER)"))
struct UploadPeerTests {
    /// Starts the server, and returns its URL.
    private func start(_ folder: URL) async throws -> String {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Support/tus-server.py")
        var environment = ProcessInfo.processInfo.environment
        environment["PYTHONPATH"] = Tuspyserver.modules
        let (input, output) = (Pipe(), Pipe())
        let process = ChildProcess(
            "/usr/bin/env", ["python3", script.path, folder.path], environment: environment, input: .pipe(input),
            output: .pipe(output), errors: .null)
        Permit.atEnd {
            process.send(SIGKILL)
            process.waitUntilExit()
            withExtendedLifetime(input) {}
        }
        let line = try await blocking {
            try process.run()
            var line = Data()
            while line.last != 0x0A, let byte = try output.fileHandleForReading.read(upToCount: 1) { line += byte }
            return String(decoding: line.dropLast(), as: UTF8.self)
        }
        return "http://127.0.0.1:\(try #require(Int(line)))"
    }

    @Test(
        "A file arrives, is continued after a cancellation, and is ended",
        arguments: UploadSession.allCases)
    func peer(_ session: UploadSession) async throws {
        let files = TemporaryFolder()
        let service = WebService(try await start(files.url), session: try session.session())
        let content = UploadFixture.content(1_000_000)
        let file = try TemporaryFolder.forTest().file("a.iso", content)
        // The server requires the name "a.iso" and the type "a/b", encoded with Base64.
        let metadata = ["Upload-Metadata": "filename YS5pc28=,filetype YS9i"]
        let request = { service.POST("/files/").setBody(file: file).setHeaders(metadata) }
        let whole = try await request().upload(resuming: .tus, pieceSize: 100_000).value
        #expect(whole.byteCount == 1_000_000)
        let name = try #require(whole.location?.lastPathComponent)
        let isStored = try Data(contentsOf: files.url.appendingPathComponent(name)) == content
        #expect(isStored)

        let task = request().upload(resuming: .tus, pieceSize: 100_000)
        task.onProgress { if $0.bytesSent >= 500_000, $0.bytesSent < 1_000_000 { task.cancel() } }
        _ = await task.result
        let continued = try await request().upload(resuming: .tus, pieceSize: 100_000).value
        #expect(continued.resumedFrom > 0)
        let second = try #require(continued.location?.lastPathComponent)
        let isEqual = try Data(contentsOf: files.url.appendingPathComponent(second)) == content
        #expect(isEqual)

        let ended = request().upload(resuming: .tus, pieceSize: 100_000)
        ended.onProgress { if $0.bytesSent >= 500_000, $0.bytesSent < 1_000_000 { ended.cancel() } }
        _ = await ended.result
        #expect(try await request().endUpload(resuming: .tus).value)
        #expect(try await request().endUpload(resuming: .tus).value == false)
    }

    @Test(
        "A file with metadata, and without OPTIONS, is continued, listed and ended",
        arguments: UploadSession.allCases, [true, false])
    func metadata(_ session: UploadSession, _ sendsOptions: Bool) async throws {
        let files = TemporaryFolder()
        let service = WebService(try await start(files.url), session: try session.session())
        let content = UploadFixture.content(1_000_000)
        let folder = TemporaryFolder.forTest()
        let file = try folder.file("a.iso", content)
        let upload = {
            service.POST("/files/").setBody(file: file).upload(
                resuming: .tus, metadata: ["filename": "wörld.iso", "filetype": "a/b", "empty": ""],
                pieceSize: 100_000, sendsOptions: sendsOptions)
        }
        let interrupt = {
            let task = upload()
            task.onProgress { if $0.bytesSent >= 500_000, $0.bytesSent < 1_000_000 { task.cancel() } }
            _ = await task.result
        }
        await interrupt()
        let listed = try #require(try await UploadedFile.Partial.list(in: folder.url).first)
        let continued = try await upload().value
        #expect(continued.resumedFrom > 0)
        #expect(continued.location == listed.location)
        let name = try #require(continued.location?.lastPathComponent)
        let isStored = try Data(contentsOf: files.url.appendingPathComponent(name)) == content
        #expect(isStored)
        let info = try Data(contentsOf: files.url.appendingPathComponent(name + ".info"))
        let metadata = (try JSONSerialization.jsonObject(with: info) as? [String: Any])?["metadata"]
        #expect(metadata as? [String: String] == ["filename": "wörld.iso", "filetype": "a/b", "empty": ""])

        await interrupt()
        let second = try #require(try await UploadedFile.Partial.list(in: folder.url).first)
        // Without the state, the URL is sufficient.
        try await second.remove()
        let given = try await service.POST("/files/").setBody(file: file)
            .upload(resuming: .tus, at: second.location, pieceSize: 100_000).value
        #expect(given.resumedFrom > 0)
        #expect(given.location == second.location)

        await interrupt()
        try FileManager.default.removeItem(at: file)
        let third = try #require(try await UploadedFile.Partial.list(in: folder.url).first)
        #expect(try await third.task(with: service).endUpload(resuming: .tus).value)
        #expect(try names(in: folder.url) == [])
    }

    @Test("A file arrives although OPTIONS is rejected", arguments: UploadSession.allCases)
    func rejectedOptions(_ session: UploadSession) async throws {
        let files = TemporaryFolder()
        let service = WebService(try await start(files.url), session: try session.session())
        service.interceptors = [RejectedOptions()]
        let content = UploadFixture.content(250_000)
        let file = try TemporaryFolder.forTest().file("a.iso", content)
        let uploaded = try await service.POST("/files/").setBody(file: file)
            .upload(resuming: .tus, metadata: ["filename": "a.iso"], pieceSize: 100_000).value
        let name = try #require(uploaded.location?.lastPathComponent)
        let isStored = try Data(contentsOf: files.url.appendingPathComponent(name)) == content
        #expect(isStored)
    }
}
