import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Curl session: multipart bodies", .permit)
struct CurlMultipartTests {
    static let content = Data((0..<300_000).map { UInt8($0 % 251) })

    private static func body(_ parts: [(head: String, content: Data)], in request: ReceivedRequest) throws -> Data {
        let boundary = try #require(request.headers[.contentType]?.split(separator: "boundary=", maxSplits: 1).last)
        var body = Data()
        for part in parts {
            body += Data("--\(boundary)\r\n\(part.head)\r\n\r\n".utf8) + part.content + Data("\r\n".utf8)
        }
        return body + Data("--\(boundary)--\r\n".utf8)
    }

    @Test(
        "Strings, bytes and files arrive in order, with an exact length and no coding, also with a delegate",
        arguments: [false, true])
    func arrives(hasDelegate: Bool) async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append("Söhne", name: "name")
        form.append(file: try folder.file("bière.bin", Self.content), name: "photo", contentType: "image/png")
        form.append(file: try folder.file("empty", Data()), name: "photo")
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        let delegate = hasDelegate ? Tagging() : nil
        let service = WebService(baseURLString: server.baseURLString, passthroughDelegate: delegate)
        service.session = try CurlSession()
        #expect(try await service.POST("/a").setMultipart(form).string().value == "ok")
        let arrived = try #require(server.receivedRequests.first)
        let expected = try Self.body(
            [
                ("Content-Disposition: form-data; name=\"name\"", Data("Söhne".utf8)),
                (
                    "Content-Disposition: form-data; name=\"photo\"; filename=\"bière.bin\"\r\nContent-Type: image/png",
                    Self.content
                ),
                (
                    "Content-Disposition: form-data; name=\"photo\"; filename=\"empty\"\r\nContent-Type: application/octet-stream",
                    Data()
                ),
            ], in: arrived)
        #expect(arrived.body == expected)
        #expect(arrived.headers.values(for: .contentLength) == ["\(expected.count)"])
        #expect(arrived.headers.values(for: .contentType) == [form.contentType])
        #expect(arrived.headers["Transfer-Encoding"] == nil)
        #expect(arrived.headers["Expect"] == nil)
        #expect(arrived.headers["X-Tag"] == (hasDelegate ? "1" : nil))
    }

    @Test("Forms without files arrive: empty, with 10,000 parts and with large parts")
    func inMemory() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        let service = WebService(server, try CurlSession())
        for (count, content) in [(0, Data()), (10_000, Data("x".utf8)), (3, Self.content)] {
            var form = MultipartFormData()
            for _ in 0..<count { form.append(content, name: "n") }
            #expect(try await service.PUT("/a").setMultipart(form).string().value == "ok")
            let arrived = try #require(server.receivedRequests.last)
            let part = (
                head: "Content-Disposition: form-data; name=\"n\"\r\nContent-Type: application/octet-stream",
                content: content
            )
            let expected = try Self.body(Array(repeating: part, count: count), in: arrived)
            #expect(arrived.body == expected)
            #expect(arrived.headers.values(for: .contentLength) == ["\(expected.count)"])
        }
    }

    @Test("A retry and a 307 redirect send the same bytes again, files included")
    func replay() async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append(file: try folder.file("a", Self.content), name: "a")
        let attempts = Box(0)
        let server = try MockServer.forTest()
        server.on(.PUT, "/a") { _ in
            attempts.change { $0 += 1 }
            var response = MockResponse(statusCode: attempts.value == 1 ? 503 : 307)
            response.headers["Location"] = "/b"
            return response
        }
        server.on(.PUT, "/b", MockResponse("ok"))
        let service = WebService(server, try CurlSession())
        let task = service.PUT("/a").setMultipart(form).intercepted(by: .retry(baseDelay: .milliseconds(1)))
        #expect(try await task.string().value == "ok")
        let received = server.receivedRequests
        #expect(received.map(\.path) == ["/a", "/a", "/b"])
        #expect(received.allSatisfy { $0.body == received[0].body })
        #expect(received.allSatisfy { $0.headers[.contentType] == form.contentType })
        #expect(received[0].body.count > 300_000)
    }

    @Test("A body with files is sent again from its start if the reused connection was closed")
    func rewinds() async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append(file: try folder.file("a", Self.content), name: "a")
        let server = try MockServer.forTest()
        let times = Box(0)
        server.on(.GET, "/", MockResponse("ok"))
        server.on(.PUT, "/") { _ in
            times.change { $0 += 1 }
            var response = MockResponse("ok")
            if times.value == 1 { response.wire = .disconnect }
            return response
        }
        let service = WebService(server, try CurlSession { $0.idleConnectionLifetime = .seconds(3600) })
        _ = try await service.GET("/").data().value
        #expect(try await service.PUT("/").setMultipart(form).string().value == "ok")
        let received = server.receivedRequests
        #expect(received.map(\.method) == [.GET, .PUT, .PUT])
        #expect(received[1].body == received[2].body)
        #expect(received[1].connection == received[0].connection)
    }

    @Test("Progress counts the bytes of a multipart body, with and without files", arguments: [false, true])
    func progress(hasFile: Bool) async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        if hasFile {
            form.append(file: try folder.file("a", Self.content), name: "a")
        } else {
            form.append(Self.content, name: "a")
        }
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        var request = Request(.POST, url: server.baseURL)
        request.multipart = form
        let heard = Box([TransferProgress]())
        let session = try CurlSession()
        let encoded = try request.encode()
        let isAnswered = await withCheckedContinuation { continuation in
            session.responseTask(request: encoded, progress: { progress in heard.change { $0.append(progress) } }) {
                result, _ in
                continuation.resume(returning: result.error == nil)
            }.resume()
        }
        let sent = heard.value.map(\.bytesSent)
        #expect(isAnswered)
        #expect(sent == sent.sorted())
        #expect(sent.count > 2)
        #expect(sent.last == Int64(encoded.bodyCount))
        #expect(heard.value.allSatisfy { $0.bytesToSend == Int64(encoded.bodyCount) })
    }

    /// Returns the body of a request with parts, read from its stream.
    static func bytes(of request: Request) throws -> Data {
        let stream = try #require(try request.urlRequest().httpBodyStream)
        stream.open()
        defer { stream.close() }
        var (body, room) = (Data(), [UInt8](repeating: 0, count: 1 << 16))
        while case let count = stream.read(&room, maxLength: room.count), count > 0 { body += room.prefix(count) }
        return body
    }

    @Test(
        "Cancelling an upload of files ends the task once, sends no complete request and leaves the session usable"
    )
    func cancelled() async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append(file: try folder.sparse("a", 64 << 20), name: "a")
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        let service = WebService(server, try CurlSession())
        let task = service.POST("/a").setMultipart(form)
        let ends = Box([URLError.Code?]())
        await withCheckedContinuation { continuation in
            task.onProgress { if $0.bytesSent > 0 { task.cancel() } }
                .response { _, _ in .empty }
                .responseError { error in ends.change { $0.append((error as? URLError)?.code) } }
                .metricsCollected { _ in continuation.resume() }
                .resume()
        }
        _ = try await service.GET("/b").data().value
        #expect(ends.value == [.cancelled])
        #expect(server.receivedRequests.map(\.path) == ["/b"])
    }

    @Test("A file that is missing or changes before it is sent is an error, and no request is sent")
    func unusable() async throws {
        let folder = TemporaryFolder()
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        let session = try CurlSession()
        var missing = MultipartFormData()
        missing.append(file: folder.url.appendingPathComponent("missing"), name: "photo")
        let result = await WebService(server, session).POST("/a").setMultipart(missing).data().result
        #expect(result.code == .encoding)
        #expect("\(String(describing: result.error))".contains("'photo'"))

        let file = try folder.file("a", Self.content)
        var request = Request(.POST, url: server.baseURL)
        request.multipart = MultipartFormData()
        request.multipart?.append(file: file, name: "photo")
        let encoded = try request.encode()
        try #require(truncate(file.path, 100_000) == 0)
        let error = await withCheckedContinuation { continuation in
            session.dataTask(request: encoded) { _, _, error in continuation.resume(returning: error) }.resume()
        }
        #expect((error as? WebServiceError)?.code == .encoding)
        #expect("\(String(describing: error))".contains("'photo'"))
        #expect((error as? WebServiceError)?.request != nil)
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("A file that shrinks while it is sent fails the exchange, and no complete request reaches the server")
    func shrinks() async throws {
        let folder = TemporaryFolder()
        let file = try folder.sparse("a", 8 << 20)
        let server = try MockServer.forTest { _ in MockResponse("ok") }
        let session = try CurlSession()
        var request = Request(.POST, url: server.baseURL)
        request.multipart = MultipartFormData()
        request.multipart?.append(file: file, name: "photo")
        let encoded = try request.encode()
        // Progress is reported on the loop's thread, between two pieces.
        let error = await withCheckedContinuation { continuation in
            session.responseTask(request: encoded, progress: { _ in _ = truncate(file.path, 1 << 20) }) { result, _ in
                continuation.resume(returning: result.error)
            }.resume()
        }
        #expect((error as? WebServiceError)?.code == .encoding)
        #expect("\(String(describing: error))".contains("changed"))
        var ok = Request(.GET, url: server.baseURL)
        ok.headers["X-Last"] = "1"
        _ = try await WebService(server, session).sessionTask(request: ok).data().value
        #expect(server.receivedRequests.map(\.method) == [.GET])
    }
}

private final class Tagging: PartialDelegate {
    func modifiedRequest(request: URLRequest) -> URLRequest? {
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Tag")
        return request
    }
}
