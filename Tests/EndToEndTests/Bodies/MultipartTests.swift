import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

@Suite("Multipart bodies over real sockets", .permit)
struct MultipartTests {
    /// Bytes with many line breaks and hyphens.
    static func dense(_ count: Int) -> Data {
        Data(
            (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 11) }.map {
                [13, 10, 45, 45, $0][Int($0 % 5)]
            })
    }

    static func expected(_ parts: [(head: String, content: Data)], in request: ReceivedRequest) throws -> Data {
        let type = try #require(request.headers[.contentType])
        let boundary = try #require(type.split(separator: "boundary=", maxSplits: 1).last)
        var body = Data()
        for part in parts {
            body += Data("--\(boundary)\r\n\(part.head)\r\n\r\n".utf8) + part.content + Data("\r\n".utf8)
        }
        return body + Data("--\(boundary)--\r\n".utf8)
    }

    /// Returns the number of temporary files that hold a body of this length.
    private static func temporaryFiles(ofSize size: Int) throws -> Int {
        let folder = FileManager.default.temporaryDirectory
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasPrefix("webservice-body-")
        }
        return names.count { name in
            // The file was removed in the meantime.
            let attributes = try? FileManager.default.attributesOfItem(atPath: folder.appendingPathComponent(name).path)
            return attributes?[.size] as? Int == size
        }
    }

    @Test("An exchange leaves no temporary file", arguments: FoundationBacked.allCases)
    func temporaryFile(kind: FoundationBacked) async throws {
        let folder = TemporaryFolder()
        var request = Request(.POST, url: "http://h")
        request.multipart = MultipartFormData()
        request.multipart?.append(file: try folder.file("a", Data(count: .random(in: 100_000...10_000_000))), name: "a")
        let size = try request.encode().bodyCount
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        request.url = server.baseURL
        #expect(await kind.service(server).sessionTask(request: request).delivered().status == 201)
        #expect(server.receivedRequests.first?.body.count == size)
        #expect(try Self.temporaryFiles(ofSize: size) == 0)
    }

    @Test(
        "Strings, bytes and files arrive in order, with an exact length and no transfer coding",
        arguments: FoundationBacked.allCases)
    func arrives(kind: FoundationBacked) async throws {
        let folder = TemporaryFolder()
        let content = Self.dense(300_000)
        var form = MultipartFormData()
        form.append("Trashboat Brewing & Söhne", name: "name")
        form.append(file: try folder.file("bière 🍺.bin", content), name: "photo", contentType: "image/png")
        form.append(
            file: try folder.file("empty", Data()), name: "photo", fileName: "nothing", headers: ["X-Kind": "empty"])
        form.append(Data([0, 255, 13]), name: "bytes")
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        #expect(await kind.service(server).POST("/a").setMultipart(form).delivered().status == 201)
        let arrived = try #require(server.receivedRequests.first)
        let expected = try Self.expected(
            [
                ("Content-Disposition: form-data; name=\"name\"", Data("Trashboat Brewing & Söhne".utf8)),
                (
                    "Content-Disposition: form-data; name=\"photo\"; filename=\"bière 🍺.bin\"\r\nContent-Type: image/png",
                    content
                ),
                (
                    "Content-Disposition: form-data; name=\"photo\"; filename=\"nothing\"\r\nContent-Type: application/octet-stream\r\nX-Kind: empty",
                    Data()
                ),
                (
                    "Content-Disposition: form-data; name=\"bytes\"\r\nContent-Type: application/octet-stream",
                    Data([0, 255, 13])
                ),
            ], in: arrived)
        #expect(arrived.body == expected)
        #expect(arrived.headers.values(for: .contentLength) == ["\(expected.count)"])
        #expect(arrived.headers.values(for: .contentType) == [form.contentType])
        #expect(arrived.headers["Transfer-Encoding"] == nil)
        #expect(arrived.headers["Expect"] == nil)
        #expect(arrived.rawBytes.suffix(expected.count + 4) == Data("\r\n\r\n".utf8) + expected)
    }

    @Test(
        "Forms without files, without parts and with 10,000 parts arrive",
        arguments: FoundationBacked.allCases)
    func inMemory(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        var many = MultipartFormData()
        for number in 0..<10_000 { many.append("\(number)", name: "n") }
        for (form, parts) in [(MultipartFormData(), 0), (many, 10_000)] {
            #expect(await kind.service(server).PUT("/a").setMultipart(form).delivered().status == 201)
            let arrived = try #require(server.receivedRequests.last)
            let expected = try Self.expected(
                (0..<parts).map { ("Content-Disposition: form-data; name=\"n\"", Data("\($0)".utf8)) }, in: arrived)
            #expect(arrived.body == expected)
            #expect(arrived.headers.values(for: .contentLength) == ["\(expected.count)"])
        }
    }

    @Test(
        "A retry and a 307 redirect send the same bytes again, files included", arguments: FoundationBacked.allCases
    )
    func replay(kind: FoundationBacked) async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append(file: try folder.file("a", Self.dense(100_000)), name: "a")
        let server = try MockServer.forTest()
        let attempts = Count()
        server.on(.PUT, "/a") { _ in
            var response = MockResponse(statusCode: attempts.next() == 1 ? 503 : 307)
            response.headers["Location"] = "/b"
            return response
        }
        server.on(.PUT, "/b", MockResponse(statusCode: 201))
        let task = kind.service(server).PUT("/a").setMultipart(form).intercepted(
            by: .retry(baseDelay: .milliseconds(1)))
        #expect(await task.delivered().status == 201)
        let received = server.receivedRequests
        #expect(received.map(\.path) == ["/a", "/a", "/b"])
        #expect(received.allSatisfy { $0.body == received[0].body })
        #expect(received.allSatisfy { $0.headers[.contentType] == form.contentType })
        #expect(received[0].body.count > 100_000)
    }

    @Test("A delegate that adds a header field does not change a body with files", arguments: FoundationBacked.allCases)
    func delegate(kind: FoundationBacked) async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append(file: try folder.file("a", Self.dense(1000)), name: "a")
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        let delegate = Tagging()
        let service = WebService(baseURLString: server.baseURLString, passthroughDelegate: delegate)
        service.session = kind.session
        #expect(await service.POST("/a").setMultipart(form).delivered().status == 201)
        let arrived = try #require(server.receivedRequests.first)
        #expect(arrived.headers["X-Tag"] == "1")
        #expect(arrived.headers[.contentLength] == "\(arrived.body.count)")
        #expect(arrived.body.firstRange(of: Self.dense(1000)) != nil)
    }

    @Test(
        "A file that is missing or changes before it is sent is an error, and no request is sent",
        arguments: FoundationBacked.allCases)
    func unusable(kind: FoundationBacked) async throws {
        let folder = TemporaryFolder()
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        var missing = MultipartFormData()
        missing.append(file: folder.url.appendingPathComponent("missing"), name: "photo")
        let answer = await kind.service(server).POST("/a").setMultipart(missing).delivered()
        #expect((answer.error as? WebServiceError)?.code == .encoding)
        #expect("\(String(describing: answer.error))".contains("'photo'"))

        let file = try folder.file("a", Self.dense(100_000))
        var form = MultipartFormData()
        form.append(file: file, name: "photo")
        var request = Request(.POST, url: server.baseURL)
        request.multipart = form
        let encoded = try request.encode()
        try FileHandle(forWritingTo: file).truncate(atOffset: 50_000)
        let error = await withCheckedContinuation { continuation in
            kind.session.dataTask(request: encoded) { _, _, error in continuation.resume(returning: error) }.resume()
        }
        #expect((error as? WebServiceError)?.code == .encoding)
        #expect("\(String(describing: error))".contains("'photo'"))
        #expect(server.receivedRequests.isEmpty)
        #expect(server.connectionCount == 0)
    }

    @Test(
        "A task that is cancelled while its body is being written completes once, as cancelled",
        arguments: FoundationBacked.allCases)
    func cancelled(kind: FoundationBacked) async throws {
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append(file: try folder.file("a", Data(count: 4 << 20)), name: "a")
        let server = try MockServer.forTest { _ in
            var silence = MockResponse(statusCode: 200)
            silence.wire = .noResponse
            return silence
        }
        var request = Request(.POST, url: server.baseURL)
        request.multipart = form
        let encoded = try request.encode()
        for _ in 0..<20 {
            let error = await withCheckedContinuation { continuation in
                let task = kind.session.dataTask(request: encoded) { _, _, error in
                    continuation.resume(returning: error)
                }
                task.resume()
                task.cancel()
            }
            #expect((error as? URLError)?.code == .cancelled)
        }
    }

    // MARK: A shell

    @Test(
        "The curl description sends the same bytes, files included", .enabled(if: Shell.curl != nil),
        arguments: Shell.all)
    func curlDescription(shell: Shell) async throws {
        let folder = TemporaryFolder()
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 201) }
        var files = MultipartFormData()
        files.append(file: try folder.file("it's a $(touch CANARY) \"\\ bière", Self.dense(200_000)), name: "a")
        files.append("it's\n", name: "b")
        files.append(file: try folder.file("-n", Data("x".utf8)), name: "c")
        var texts = MultipartFormData()
        texts.append("'$(touch CANARY)'", name: "a\"")
        let requests = [files, texts].map { form in
            var request = Request(.POST, url: server.baseURL)
            request.multipart = form
            return request
        }
        #expect(try await shell.run(requests.map { $0.curlDescription(redaction: nil) }) == .clean)
        let service = WebService(baseURLString: server.baseURLString)
        for request in requests { #expect(await service.sessionTask(request: request).delivered().status == 201) }
        let received = server.receivedRequests
        #expect(received.count == 4)
        for (typed, sent) in zip(received.prefix(2), received.dropFirst(2)) {
            #expect(typed.body == sent.body)
            #expect(typed.headers[.contentLength] == sent.headers[.contentLength])
            #expect(typed.headers[.contentType] == sent.headers[.contentType])
            #expect(typed.headers["Expect"] == nil)
        }
    }
}

private final class Count: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}

private final class Tagging: PartialDelegate {
    func modifiedRequest(request: URLRequest) -> URLRequest? {
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Tag")
        return request
    }
}
