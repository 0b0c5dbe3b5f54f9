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
    private func serve() {
        mock.on(.OPTIONS, "/files/1", MockResponse(statusCode: 204, headers: ["Tus-Version": "1.0.0"]))
        mock.on(
            .POST, "/files/1",
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
        let name = Data(video.lastPathComponent.utf8).base64EncodedString()
        let file = try await service.POST("/files/1")
            .setBody(file: video)
            .setHeaderValue("filename \(name)", forName: "Upload-Metadata")
            .upload(resuming: .tus, state: states).value
        print(file.location?.absoluteString ?? "", file.resumedFrom)
        let creation = mock.receivedRequests.first { $0.method == .POST }
        #expect(creation?.headers["Upload-Metadata"] == "filename dmlkZW8ubXA0")
    }
}
