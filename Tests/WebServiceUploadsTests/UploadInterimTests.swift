#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceUploads

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// Interim responses to the request that creates an upload of the draft, over `CurlSession`.
@Suite("Interim responses to uploads", .permit)
struct UploadInterimTests {
    /// A server that sends an interim response when the head of a creation has arrived, stores what
    /// it receives of the body, and closes the connection after a number of bytes.
    private final class PartialServer: Sendable {
        struct State {
            var data = Data()
            var log: [String] = []
            var cut: Int?
            var interim: String
        }

        private let listener: LoopbackListener
        private let state: Mutex<State>
        let length: Int

        init(length: Int, cut: Int?, interim: String) throws {
            self.length = length
            let state = Mutex(State(cut: cut, interim: interim))
            self.state = state
            listener = try LoopbackListener()
            listener.serve { client in
                while Self.serve(client, state, length) {}
                close(client)
            }
            Permit.atEnd { [listener] in listener.stop() }
        }

        var url: String { "http://127.0.0.1:\(listener.port)" }
        var log: [String] { state.withLock { $0.log } }
        var data: Data { state.withLock { $0.data } }

        /// Serves one request.
        ///
        /// - Returns: Whether the connection stays open.
        private static func serve(_ client: Int32, _ state: borrowing Mutex<State>, _ length: Int) -> Bool {
            var bytes = Data()
            let end = Data("\r\n\r\n".utf8)
            var room = [UInt8](repeating: 0, count: 16 << 10)
            while bytes.firstRange(of: end) == nil {
                let count = recv(client, &room, room.count, 0)
                guard count > 0 else { return false }
                bytes += room[..<count]
            }
            guard let range = bytes.firstRange(of: end) else { return false }
            let lines = String(decoding: bytes[..<range.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
            var body = Data(bytes[range.upperBound...])
            let fields = Dictionary(
                lines.dropFirst().map { line in
                    let parts = line.split(separator: ":", maxSplits: 1)
                    return (parts[0].lowercased(), parts[1].trimmingCharacters(in: .whitespaces))
                }, uniquingKeysWith: { $1 })
            let method = lines[0].split(separator: " ")[0]
            state.withLock { $0.log.append("\(method) \(fields["upload-offset"] ?? "")") }
            let count = Int(fields["content-length"] ?? "") ?? 0
            func answer(_ text: String) -> Bool {
                let bytes = Data((text + "\r\n\r\n").utf8)
                return bytes.withUnsafeBytes { send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) } > 0
            }
            if method == "OPTIONS" { return answer("HTTP/1.1 405 No\r\nContent-Length: 0") }
            if method == "DELETE" { return answer("HTTP/1.1 204 No Content") }
            if method == "HEAD" {
                return answer(
                    "HTTP/1.1 204 No Content\r\nUpload-Offset: \(state.withLock { $0.data.count })\r\n"
                        + "Upload-Complete: ?0\r\nUpload-Length: \(length)")
            }
            if method == "POST", !answer(state.withLock { $0.interim }) { return false }
            while body.count < count {
                let cut = state.withLock { $0.cut }
                if let cut, method == "POST", body.count >= cut { break }
                let more = recv(client, &room, room.count, 0)
                guard more > 0 else { break }
                body += room[..<more]
            }
            let whole = state.withLock { state in
                state.data += body
                return state.data.count == length
            }
            guard whole else { return false }
            return answer("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nContent-Length: 0")
        }
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

    @Test("A whole file continues after the bytes that the server has, also a POST request", .covers("U-422"))
    func continues() async throws {
        let server = try PartialServer(
            length: content.count, cut: 1_000_000, interim: Self.interim("Location: /uploads/1"))
        let (service, task) = try task(server, retries: true)
        let file = try await task.upload(resuming: .draft, pieceSize: 4_000_000).value
        withExtendedLifetime(service) {}
        let isStored = server.data == content
        #expect(isStored)
        #expect(server.log.prefix(2) == ["POST ", "HEAD "])
        #expect(server.log.count == 3)
        #expect(file.location?.path == "/uploads/1")
        #expect(try names(in: folder.url) == ["a.iso"])
    }

    @Test("The URL in an interim response is stored while the file is sent", .covers("U-422"))
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
        "An interim response of another version, of another status or without a URL is ignored", .covers("U-422"),
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
        #expect(server.log == ["POST "])
        #expect(try names(in: folder.url) == ["a.iso"])
    }

    @Test(
        "An interim response whose limit excludes the file, or with another URL, ends the request", .covers("U-422"),
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
    }
}
#endif
