import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

@testable import WebServiceCore

/// Bodies of requests with the content coding gzip. The server returns them with the same coding.
@Suite("Compressed uploads", .permit)
struct CompressedUploadTests {
    private func echo() throws -> MockServer {
        try MockServer { request in
            var response = MockResponse(statusCode: 200, data: request.body)
            // The client need not decode other codings.
            if request.headers["Content-Encoding"] == "gzip" { response.headers["Content-Encoding"] = "gzip" }
            return response
        }
    }

    private func send(_ body: Request.Body, _ session: RealSession, to server: MockServer) async throws -> Data {
        try await session.service(server).POST("/").setBody(body).configure { $0.options.compressesBody = true }
            .data().value
    }

    @Test("The server receives a body of any kind in gzip", arguments: RealSession.allCases)
    func kinds(session: RealSession) async throws {
        let server = try echo()
        defer { server.stop() }
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 1_000) })
        let file = try UploadFile(size: 300_000)
        let fileContent = try Data(contentsOf: file.url)
        var form = MultipartFormData()
        form.append(file: file.url, name: "file")
        let chunks = Chunks([1, 70_000, 3])
        #expect(try await send(.data(content), session, to: server) == content)
        #expect(try await send(.form(["a": "b c"]), session, to: server) == Data("a=b+c".utf8))
        #expect(try await send(.file(file.url), session, to: server) == fileContent)
        #expect(try await send(.multipart(form), session, to: server).range(of: fileContent) != nil)
        #expect(try await send(.stream(chunks), session, to: server) == chunks.content)
        let requests = server.receivedRequests
        #expect(requests.allSatisfy { $0.headers.values(for: "Content-Encoding") == ["gzip"] })
        #expect(requests.allSatisfy { $0.body.starts(with: [0x1F, 0x8B]) })
        #expect(try #require(requests.first).body.count < content.count / 10)
    }

    @Test("An empty body and one that is encoded already are sent unchanged")
    func unchanged() async throws {
        let server = try echo()
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        for body in [Request.Body.none, .data(Data())] {
            _ = try await service.POST("/").setBody(body).configure { $0.options.compressesBody = true }.data().value
        }
        _ = try await service.POST("/").setBody(.data(Data("br".utf8)))
            .configure { request in
                request.headers["Content-Encoding"] = "br"
                request.options.compressesBody = true
            }.data().value
        #expect(server.receivedRequests.map { $0.headers["Content-Encoding"] } == [nil, nil, "br"])
        #expect(server.receivedRequests.map(\.body) == [Data(), Data(), Data("br".utf8)])
    }

    @Test("Bytes, a file and a replayable sequence are compressed again for a retry; another sequence fails")
    func retry() async throws {
        let file = try UploadFile(size: 100_000)
        let chunks = Chunks([50_000])
        let bodies: [Request.Body] = [.data(chunks.content), .file(file.url), .stream(length: 50_000) { chunks }]
        for session in RealSession.streaming {
            let server = try MockServer()
            defer { server.stop() }
            let service = try session.service(server)
            service.interceptors = [.retry(baseDelay: .milliseconds(1))]
            for (index, body) in (bodies + [.stream(chunks)]).enumerated() {
                server.on(.PUT, "/\(index)", [MockResponse(statusCode: 503), MockResponse(statusCode: 200)])
                let task = service.PUT("/\(index)").setBody(body).configure { $0.options.compressesBody = true }.data()
                let error = await task.result.error as? WebServiceError
                #expect(error?.code == (index < 3 ? nil : .bodyNotReplayable))
                let received = server.receivedRequests.filter { $0.path == "/\(index)" }.map(\.body)
                #expect(received.count == (index < 3 ? 2 : 1))
                #expect(Set(received).count == 1)
            }
        }
    }

    @Test("A sequence with a wrong length fails, and the description of the request shows the plain body")
    func errors() async throws {
        let server = try echo()
        defer { server.stop() }
        let error = await #expect(throws: WebServiceError.self) {
            try await send(.stream(Chunks([10]), length: 11), .foundationSession, to: server)
        }
        #expect(error?.code == .encoding)
        var request = Request(.POST, url: "http://a.test/")
        request.options.compressesBody = true
        request.body = Data("plain".utf8)
        #expect(request.curlDescription(redaction: nil).contains("'plain'"))
    }

    @Test("Without zlib, the error names it")
    func missing() throws {
        #expect(Zlib("libmissing.so.0") == nil)
        let error = #expect(throws: WebServiceError.self) { _ = try GzipEncoder(nil) }
        #expect(error?.code == .encoding)
        #expect(error?.message.contains("zlib") == true)
    }
}

extension Result {
    fileprivate var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
