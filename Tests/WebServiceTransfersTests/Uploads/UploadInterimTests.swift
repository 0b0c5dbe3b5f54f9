#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Interim responses to the request that creates an upload of the draft, over `CurlSession`.
@Suite("Interim responses to uploads", .permit)
struct UploadInterimTests {
    /// A server that sends an interim response when the head of a creation has arrived, stores what
    /// it receives of the body, and closes the connection after a number of bytes.
    private final class PartialServer: Sendable {
        private final class Store: Sendable {
            let state = Mutex((data: Data(), log: [String]()))
        }

        private let store = Store()
        private let server: RawServer

        /// - Parameters:
        ///   - length: The length of the file.
        ///   - cut: The number of bytes after which the creation is interrupted.
        ///   - interim: The head of the interim response.
        ///   - onOptions: Called when the client asks for support.
        init(length: Int, cut: Int?, interim: String, onOptions: @escaping @Sendable () -> Void = {}) throws {
            let store = store
            server = try RawServer { connection in
                store.state.withLock { $0.log.append(connection.method) }
                switch connection.method {
                case "OPTIONS":
                    onOptions()
                    return connection.answer("HTTP/1.1 405 No\r\nContent-Length: 0")
                case "DELETE": return connection.answer("HTTP/1.1 204 No Content")
                case "HEAD":
                    let count = store.state.withLock { $0.data.count }
                    return connection.answer(
                        "HTTP/1.1 204 No Content\r\nUpload-Offset: \(count)\r\nUpload-Complete: ?0\r\n"
                            + "Upload-Length: \(length)")
                default: break
                }
                let isCreation = connection.method == "POST"
                if isCreation {
                    store.state.withLock { $0.data = Data() }
                    if !connection.answer(interim) { return false }
                }
                let isRead = connection.readBody { bytes in
                    let count = store.state.withLock { state in
                        state.data += bytes
                        return state.data.count
                    }
                    return !isCreation || count < cut ?? .max
                }
                return isRead && connection.answer("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nContent-Length: 0")
            }
        }

        var url: String { server.url }
        var log: [String] { store.state.withLock { $0.log } }
        var data: Data { store.state.withLock { $0.data } }
    }

    private static func interim(_ fields: String, version: String = "8") -> String {
        "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: \(version)\r\n\(fields)"
    }

    private let folder = TemporaryFolder()
    private let content = UploadFixture.content(3_000_000)

    private func task(_ server: PartialServer, retries: Bool) throws -> (WebService, SessionTask) {
        let service = WebService(server.url, session: try UploadSession.curl.session())
        if retries { service.interceptors = [.retry(baseDelay: .zero)] }
        let file = try folder.file("a.iso", content)
        return (service, service.POST("/files").setBody(file: file))
    }

    @Test("A whole file continues after the bytes that the server has, also a POST request")
    func continues() async throws {
        let server = try PartialServer(
            length: content.count, cut: 1_000_000, interim: Self.interim("Location: /uploads/1"))
        let (service, task) = try task(server, retries: true)
        let file = try await task.upload(resuming: .draft, pieceSize: 4_000_000).value
        withExtendedLifetime(service) {}
        let isStored = server.data == content
        #expect(isStored)
        #expect(server.log.prefix(2) == ["POST", "HEAD"])
        #expect(server.log.count == 3)
        #expect(file.location?.path == "/uploads/1")
        #expect(try names(in: folder.url) == ["a.iso"])
    }

    @Test("The URL in an interim response is stored while the file is sent")
    func stored() async throws {
        let server = try PartialServer(
            length: content.count, cut: 1_000_000, interim: Self.interim("Location: /uploads/1"))
        let (service, task) = try task(server, retries: false)
        await #expect(throws: URLError.self) { try await task.upload(resuming: .draft, pieceSize: 4_000_000).value }
        #expect(try names(in: folder.url).count == 2)
        let again = service.POST("/files").setBody(file: folder.url.appendingPathComponent("a.iso"))
        let file = try await again.upload(resuming: .draft, pieceSize: 4_000_000).value
        #expect(file.resumedFrom >= 1_000_000)
        let isStored = server.data == content
        #expect(isStored)
    }

    @Test(
        "An interim response of another version, of another status or without a URL is ignored",
        arguments: [
            UploadInterimTests.interim("Location: /uploads/1", version: "7"),
            UploadInterimTests.interim("Upload-Offset: 7"),
            "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /uploads/1",
            "HTTP/1.1 103 Early Hints\r\nUpload-Draft-Interop-Version: 8\r\nLocation: /uploads/1",
        ])
    func ignored(_ interim: String) async throws {
        let server = try PartialServer(length: content.count, cut: 1_000_000, interim: interim)
        let (service, task) = try task(server, retries: true)
        await #expect(throws: URLError.self) { try await task.upload(resuming: .draft, pieceSize: 4_000_000).value }
        withExtendedLifetime(service) {}
        #expect(server.log == ["POST"])
        #expect(try names(in: folder.url) == ["a.iso"])
    }

    @Test(
        "An interim response whose limit excludes the file, or with another URL, ends the upload",
        arguments: [
            UploadInterimTests.interim("Location: /uploads/1\r\nUpload-Limit: max-size=2999999"),
            UploadInterimTests.interim("Location: /uploads/1\r\n\r\n")
                + UploadInterimTests.interim("Location: /uploads/2"),
        ])
    func excluded(_ interim: String) async throws {
        let server = try PartialServer(length: content.count, cut: nil, interim: interim)
        let (service, task) = try task(server, retries: true)
        let error = await #expect(throws: WebServiceError.self) {
            try await task.upload(resuming: .draft, pieceSize: 4_000_000).value
        }
        withExtendedLifetime(service) {}
        #expect(error?.code == .upload)
        #expect(server.log == ["POST", "DELETE"])
        #expect(try names(in: folder.url) == ["a.iso"])
    }

    @Test("A final response with another URL than the interim one ends the upload")
    func otherURL() async throws {
        let location = ScriptedServer.Step(
            "POST /files", length: 3_000_000, status: 201, ["Location": "/uploads/2", "Upload-Complete": "?0"])
        let server = try ScriptedServer([
            ScriptedServer.Step(location, interim: [["Location": "/uploads/1"]]),
            ScriptedServer.Step("DELETE /uploads/1", status: 204),
        ])
        let service = WebService(server.server.baseURLString, session: try UploadSession.curl.session())
        let file = try folder.file("a.iso", content)
        let error = await #expect(throws: WebServiceError.self) {
            try await service.POST("/files").setBody(file: file).upload(resuming: .draft).value
        }
        #expect(error?.code == .upload)
        #expect(server.failures == [])
        #expect(try names(in: folder.url) == ["a.iso"])
    }

    /// Leaves an interrupted upload of a file whose permissions were changed afterwards.
    ///
    /// The file was sent in one ordinary request, so it is unknown whether the bytes that the
    /// server has are unchanged, and the next upload starts over.
    private func interruptedUpload(_ server: PartialServer) async throws -> WebService {
        let (service, task) = try task(server, retries: false)
        await #expect(throws: URLError.self) { try await task.upload(resuming: .draft, pieceSize: 2_000_000).value }
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o640], ofItemAtPath: folder.url.appendingPathComponent("a.iso").path)
        return service
    }

    private func upload(over service: WebService) -> TypedTask<UploadedFile> {
        service.POST("/files").setBody(file: folder.url.appendingPathComponent("a.iso"))
            .upload(resuming: .draft, pieceSize: 2_000_000)
    }

    @Test("An upload that has started over is continued after an interruption")
    func continuesAfterRestart() async throws {
        let server = try PartialServer(
            length: content.count, cut: 1_000_000, interim: Self.interim("Location: /uploads/1"))
        let service = try await interruptedUpload(server)
        service.interceptors = [.retry(baseDelay: .zero)]
        let file = try await upload(over: service).value
        withExtendedLifetime(service) {}
        #expect(server.log == ["OPTIONS", "POST", "HEAD", "OPTIONS", "POST", "HEAD", "PATCH"])
        #expect(file.restarts == 1)
        let isStored = server.data == content
        #expect(isStored)
    }

    @Test("An upload that has started over is continued by a later upload")
    func continuesLaterAfterRestart() async throws {
        let server = try PartialServer(
            length: content.count, cut: 1_000_000, interim: Self.interim("Location: /uploads/1"))
        let service = try await interruptedUpload(server)
        await #expect(throws: URLError.self) { try await upload(over: service).value }
        let file = try await upload(over: service).value
        withExtendedLifetime(service) {}
        #expect(server.log == ["OPTIONS", "POST", "HEAD", "OPTIONS", "POST", "HEAD", "PATCH"])
        #expect(file.restarts == 0)
        #expect(file.resumedFrom >= 1_000_000)
        let isStored = server.data == content
        #expect(isStored)
    }

    @Test("A file that is replaced by one of the same size and date is not mixed into the upload")
    func replaced() async throws {
        let replacement = Data(content.reversed())
        let other = try folder.file("b.iso", replacement)
        let path = folder.url.appendingPathComponent("a.iso").path
        let server = try PartialServer(
            length: content.count, cut: 1_000_000, interim: Self.interim("Location: /uploads/1")
        ) { _ = rename(other.path, path) }
        let (service, task) = try task(server, retries: true)
        for file in [other.path, path] {
            let date = Date(timeIntervalSince1970: 1_700_000_000)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file)
        }
        let error = await #expect(throws: WebServiceError.self) {
            try await task.upload(resuming: .draft, pieceSize: 2_000_000).value
        }
        withExtendedLifetime(service) {}
        #expect(error?.message.contains("changed while it was uploaded") == true)
        #expect(server.log == ["OPTIONS", "POST", "HEAD"])
        let isPrefix = replacement.starts(with: server.data)
        #expect(isPrefix)
    }
}
#endif
