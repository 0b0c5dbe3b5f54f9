import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceFields
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

/// Digests of request bodies (RFC 9530) that the server verifies.
@Suite("Content-Digest of uploads", .permit)
struct ContentDigestTests {
    /// A server that responds with the names of the algorithms whose digests match the content, or
    /// with 400 if one does not.
    private func verifier() throws -> MockServer {
        try MockServer.forTest { request in
            let digests = request.headers.structuredDictionary("Content-Digest") ?? [:]
            var names: [String] = []
            for (name, member) in digests {
                guard let algorithm = SHA2(rawValue: name), let digest = member.item?.value.byteSequence,
                    digest == Data(algorithm.hash(request.body))
                else { return MockResponse(statusCode: 400) }
                names.append(name)
            }
            return .text(names.joined(separator: ","))
        }
    }

    private func send(
        _ body: Request.Body, _ session: RealSession, to server: MockServer, compressed: Bool = false,
        _ interceptors: [any Interceptor] = [.contentDigest()]
    ) async throws -> String {
        let service = try session.service(server)
        service.interceptors = interceptors
        return try await service.POST("/").setBody(body).configure { $0.options.compressesBody = compressed }
            .string().value
    }

    @Test("The example of RFC 9530 has the digest of its content")
    func example() async throws {
        let server = try verifier()
        let service = WebService(baseURLString: server.baseURLString)
        for (algorithm, digest) in [
            (ContentDigest.Algorithm.sha256, "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="),
            (
                .sha512,
                "YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg=="
            ),
        ] {
            service.interceptors = [.contentDigest(algorithm)]
            _ = try await service.POST("/").setBody(.data(Data("{\"hello\": \"world\"}\n".utf8))).data().value
            let field = server.receivedRequests.last?.headers["Content-Digest"]
            #expect(field == "\(algorithm.rawValue)=:\(digest):")
        }
    }

    @Test(
        "The digest of bytes, forms and files matches the content that arrives, also if it is compressed",
        arguments: RealSession.allCases)
    func kinds(session: RealSession) async throws {
        let server = try verifier()
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 1_000) })
        let file = try UploadFile(size: 700_001)
        var form = MultipartFormData()
        form.append(file: file.url, name: "file")
        for compressed in [false, true] {
            for body in [
                Request.Body.data(content), .form(["a": "b c"]), .file(file.url), .multipart(form), .data(Data()),
            ] {
                #expect(try await send(body, session, to: server, compressed: compressed) == "sha-256")
            }
        }
        #expect(try await send(.file(file.url), session, to: server, [.contentDigest(.sha512)]) == "sha-512")
    }

    @Test("A sequence, a form with one, and a request without a body are sent without a digest")
    func sequences() async throws {
        let server = try verifier()
        let part = Request.Body.stream(length: 3) { Chunks([3]) }
        var form = MultipartFormData()
        form.append(part, name: "part", fileName: "p")
        for compressed in [false, true] {
            let once = Request.Body.stream(Chunks([5]))
            for body in [once, .stream(length: 5) { Chunks([5]) }, .multipart(form), .none] {
                #expect(try await send(body, .foundationSession, to: server, compressed: compressed) == "")
            }
        }
        #expect(server.receivedRequests.allSatisfy { $0.headers["Content-Digest"] == nil })
    }

    @Test("A request that has a digest is not changed")
    func existing() async throws {
        let server = try verifier()
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [.contentDigest()]
        let response = try await service.POST("/").setBody(.data(Data("x".utf8)))
            .setHeaderValue("sha-512=:eA==:", forName: "Content-Digest").data().validateNothing().response
        #expect(response.status == 400)
        #expect(server.receivedRequests.first?.headers.values(for: "Content-Digest") == ["sha-512=:eA==:"])
    }

    @Test("Before the retry policy, the digest is computed once and sent with each attempt")
    func retries() async throws {
        let file = try UploadFile(size: 100_000)
        let server = try MockServer.forTest()
        server.on(.PUT, "/", [503, 503, .status(200)])
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [.contentDigest(), .retry(baseDelay: .zero)]
        _ = try await service.PUT("/").setBody(.file(file.url)).data().value
        let digest = Data(SHA2.sha256.hash(try Data(contentsOf: file.url))).base64EncodedString()
        let fields = server.receivedRequests.map { $0.headers["Content-Digest"] }
        #expect(fields == Array(repeating: "sha-256=:\(digest):", count: 3))
    }

    @Test("A missing file is an error before anything is sent")
    func missing() async throws {
        let server = try verifier()
        let error = await #expect(throws: WebServiceError.self) {
            try await send(.file(URL(fileURLWithPath: "/nonexistent/file")), .foundationSession, to: server)
        }
        #expect(error?.code == .encoding)
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("Cancelling the request ends the computation, and nothing is sent")
    func cancellation() async throws {
        let server = try verifier()
        let file = try TemporaryFolder.forTest().sparse("large", 64 << 30)
        let (started, errors) = (Collected<Void>(), Collected<any Error>())
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [
            .closure { request, next in
                started.add(())
                do { return try await next(request) } catch {
                    errors.add(error)
                    throw error
                }
            },
            .contentDigest(),
        ]
        let task = service.PUT("/").setBody(.file(file)).data().resume()
        await started.wait(for: 1)
        task.cancel()
        #expect(await task.serviceResponse.isCanceled)
        await errors.wait(for: 1)
        #expect(errors.values.first is CancellationError)
        #expect(server.receivedRequests.isEmpty)
    }

    @Test("Streams and typed requests have a digest as well")
    func requests() async throws {
        struct Upload: HTTPServiceRequest {
            typealias Output = String
            func request(for service: WebService) -> Request {
                var request = service.request(.POST, path: "/")
                request.content = .data(Data("typed".utf8))
                return request
            }
        }
        let server = try verifier()
        let service = WebService(baseURLString: server.baseURLString)
        service.interceptors = [.contentDigest()]
        #expect(try await service.perform(Upload()).value == "sha-256")
        let body = try await service.POST("/").setBody(.data(Data("stream".utf8))).stream().value.body
        var text = Data()
        for try await piece in body { text += piece }
        #expect(text == Data("sha-256".utf8))
    }
}
