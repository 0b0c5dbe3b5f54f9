import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFields
import WebServiceMocking
import WebServiceTransfers

// Every snippet about uploads that resume of the Guide, the Cookbook and the article of
// WebServiceTransfers, with its expected behavior. `DocumentationTests` verifies that none is missing.

@Suite("Snippets about uploads that resume", .permit)
struct UploadSnippets {
    private let mock = MockService()
    private var service: WebService { mock.service }
    private let folder = TemporaryFolder()

    private func show(_ values: Double...) {}

    /// Stubs a tus server that has the first bytes of an upload.
    private func serve(_ path: String = "/files/1") {
        mock.on(.OPTIONS, path, MockResponse(statusCode: 204, headers: ["Tus-Version": "1.0.0"]))
        mock.on(
            .POST, path,
            MockResponse(statusCode: 201, headers: ["Location": "/uploads/7", "Tus-Resumable": "1.0.0"]))
        mock.on(.PATCH, "/uploads/7", MockResponse(statusCode: 204, headers: ["Upload-Offset": "3"]))
    }

    @Test("A file is uploaded")
    func upload() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        mock.on(.PUT, "/files/1", MockResponse(statusCode: 200, headers: ["Upload-Complete": "?1"]))
        let file = try await service.PUT("/files/1").setBody(file: video).upload(resuming: .draft).value
        print("\(file.byteCount) bytes, \(file.resumedFrom) of them from an earlier upload")
        #expect(file.byteCount == 3)
    }

    @Test("A film is uploaded")
    func film() async throws {
        let film = try folder.file("film.mp4", Data("ale".utf8))
        mock.on(.PUT, "/films/1", .status(204))
        mock.on(.OPTIONS, "/films/1", .status(405))
        let uploaded = try await service.PUT("/films/1")
            .setBody(file: film).upload(resuming: .tus).value
        print("\(uploaded.byteCount) bytes, \(uploaded.resumedFrom) of them from an earlier upload")
        #expect(uploaded.byteCount == 3)
    }

    @Test("The progress is shown")
    func progress() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        serve()
        service.interceptors = [.retry(maximumAttempts: 5)]
        let task = service.PUT("/files/1").setBody(file: video).upload(resuming: .tus)
        for await progress in task.resume().progress {
            show(progress.fractionSent ?? 0, progress.bytesPerSecond ?? 0)
        }
        let file = try await task.value
        #expect(file.location?.path == "/uploads/7")
    }

    @Test("The server verifies the pieces of an upload")
    func digests() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        mock.on(.PUT, "/files/1") { request in
            let digest = "sha-256=:\(Data(SHA2.sha256.hash(Data("ale".utf8))).base64EncodedString()):"
            return MockResponse(statusCode: request.headers["Content-Digest"] == digest ? 200 : 400)
        }
        service.interceptors = [.contentDigest(), .retry(maximumAttempts: 5)]
        let file = try await service.PUT("/files/1").setBody(file: video).upload(resuming: .draft).value
        #expect(file.response.status == 200)
    }

    @Test("An upload is ended")
    func end() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        let wasEnded = try await service.PUT("/files/1")
            .setBody(file: video).endUpload(resuming: .tus).value
        #expect(!wasEnded)
    }

    @Test("A recipe uploads a video with its name, and continues it")
    func recipe() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        let states = folder.url
        serve()
        let file = try await service.POST("/files/1")
            .setBody(file: video)
            .upload(resuming: .tus, metadata: ["filename": video.lastPathComponent], state: states)
            .value
        print(file.location?.absoluteString ?? "", file.resumedFrom)
        let creation = mock.receivedRequests.first { $0.method == .POST }
        #expect(creation?.headers["Upload-Metadata"] == "filename dmlkZW8ubXA0")
    }

    @Test("A server without OPTIONS receives an upload")
    func withoutOptions() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        serve("/files")
        let file = try await service.POST("/files").setBody(file: video)
            .upload(resuming: .tus, sendsOptions: false).value
        #expect(file.byteCount == 3)
        #expect(mock.receivedRequests.map(\.method) == [.POST, .PATCH])
    }

    @Test("A video has metadata")
    func metadata() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        serve("/files")
        let file = try await service.POST("/files").setBody(file: video)
            .upload(resuming: .tus, metadata: ["filename": "ale.mp4", "filetype": "video/mp4"]).value
        #expect(file.byteCount == 3)
        let fields = mock.receivedRequests.compactMap { $0.headers["Upload-Metadata"] }
        #expect(fields == ["filename YWxlLm1wNA==,filetype dmlkZW8vbXA0"])
    }

    @Test("A video of the draft has a name")
    func disposition() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        mock.on(.PUT, "/files/1", MockResponse(statusCode: 200, headers: ["Upload-Complete": "?1"]))
        let file = try await service.PUT("/files/1").setBody(file: video, contentType: "video/mp4")
            .setHeaderValue("inline; filename=\"ale.mp4\"", forName: "Content-Disposition")
            .upload(resuming: .draft).value
        #expect(file.byteCount == 3)
        #expect(mock.receivedRequests.first?.headers["Content-Disposition"] == "inline; filename=\"ale.mp4\"")
    }

    @Test("An upload that exists is continued")
    func known() async throws {
        let video = try folder.file("video.mp4", Data("ale".utf8))
        serve()
        mock.on(.HEAD, "/uploads/7", MockResponse(statusCode: 200, headers: ["Upload-Offset": "1"]))
        let url = try service.absoluteURL("/uploads/7")
        let file = try await service.POST("/files").setBody(file: video)
            .upload(resuming: .tus, at: url).value
        #expect(file.resumedFrom == 1)
    }

    @MainActor final class InterruptedUploads {
        private(set) var uploads: [UploadedFile.Partial] = []
        let service: WebService
        let states: URL

        init(_ service: WebService, states: URL) {
            (self.service, self.states) = (service, states)
        }

        func reload() async throws {
            uploads = try await UploadedFile.Partial.list(in: states).filter { !$0.isInProgress }
        }

        func resume(_ upload: UploadedFile.Partial) -> TypedTask<UploadedFile> {
            upload.task(with: service).upload(resuming: upload.protocol, state: states)
        }

        func discard(_ upload: UploadedFile.Partial) async throws {
            _ = try await upload.task(with: service)
                .endUpload(resuming: upload.protocol, state: states).value
        }
    }

    /// Leaves an interrupted upload of each file.
    private func interrupt(_ files: [URL], _ states: URL) async {
        mock.on(.OPTIONS, "/files/1", MockResponse(statusCode: 204, headers: ["Tus-Version": "1.0.0"]))
        mock.on(.POST, "/files/1", MockResponse(statusCode: 201, headers: ["Location": "/uploads/7"]))
        let whole = MockResponse(statusCode: 204, headers: ["Upload-Offset": "3"])
        mock.on(.PATCH, "/uploads/7", files.map { _ in .status(500) } + [whole])
        mock.on(.HEAD, "/uploads/7", MockResponse(statusCode: 200, headers: ["Upload-Offset": "1"]))
        mock.on(.DELETE, "/uploads/7", .status(204))
        for file in files {
            _ = await service.POST("/files/1").setBody(file: file).upload(resuming: .tus, state: states).result
        }
    }

    @Test("A model resumes and discards uploads")
    func model() async throws {
        let states = folder.url
        let files = [try folder.file("a.mp4", Data("ale".utf8)), try folder.file("b.mp4", Data("ale".utf8))]
        await interrupt(files, states)
        let model = await InterruptedUploads(service, states: states)
        try await model.reload()
        let uploads = await model.uploads
        #expect(Set(uploads.map(\.file.path)) == Set(files.map(\.path)))
        let resumed = try #require(uploads.first)
        #expect(try await model.resume(resumed).value.resumedFrom == 1)
        try await model.discard(try #require(uploads.last))
        try await model.reload()
        #expect(await model.uploads.isEmpty)
    }

    @Test("Earlier uploads are continued or ended")
    func list() async throws {
        let states = folder.url
        let files = [try folder.file("a.mp4", Data("ale".utf8)), try folder.file("b.mp4", Data("ale".utf8))]
        await interrupt(files, states)
        try FileManager.default.removeItem(at: files[1])
        for upload in try await UploadedFile.Partial.list(in: states) where !upload.isInProgress {
            let task = upload.task(with: service)
            if FileManager.default.fileExists(atPath: upload.file.path) {
                _ = try await task.upload(resuming: upload.protocol, state: states).value
            } else {
                _ = try await task.endUpload(resuming: upload.protocol, state: states).value
            }
        }
        #expect(try await UploadedFile.Partial.list(in: states).isEmpty)
        #expect(mock.receivedRequests.map(\.method).filter { $0 == .DELETE }.count == 1)
    }
}
