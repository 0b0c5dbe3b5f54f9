import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The sessions based on Foundation. Every test runs over each of them.
enum FoundationBacked: String, CaseIterable, Sendable {
    case foundationSession, urlSession

    static let plain = URLSession(configuration: FoundationSession.defaultConfiguration)

    var session: any Session {
        switch self {
        case .foundationSession: FoundationSession.shared
        case .urlSession: Self.plain
        }
    }

    func service(_ server: MockServer, path: String = "") -> WebService {
        WebService(server.baseURLString + path, session: session)
    }
}

/// The result of a task.
struct Answer: Sendable {
    var data: Data?
    var response: HTTPURLResponse?
    var error: (any Error)?

    var status: Int? { response?.statusCode }
    var text: String { String(decoding: data ?? Data(), as: UTF8.self) }
    var urlErrorCode: URLError.Code? { (error as? URLError)?.code }
}

extension SessionTask {
    /// Resumes the task and waits for its result.
    func delivered() async -> Answer {
        await withCheckedContinuation { continuation in
            response { data, response in
                continuation.resume(returning: Answer(data: data, response: response as? HTTPURLResponse))
            }
            .responseError { continuation.resume(returning: Answer(error: $0)) }
            .resume()
        }
    }
}

@Suite("Foundation over real sockets", .permit)
struct FoundationSessionTests {
    @Test(
        "Every method reaches the server with its path, query, header fields and body",
        arguments: FoundationBacked.allCases)
    func methods(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { request in
            MockResponse(statusCode: 200, data: Data("\(request.method) \(request.target) \(request.body.count)".utf8))
        }
        let service = kind.service(server, path: "/v1/")
        let body = Data("hello".utf8)
        #expect(
            await service.GET("/brewers?a=1").setQueryParameters(["b": "x y"]).delivered().text
                == "GET /v1/brewers?a=1&b=x%20y 0")
        #expect(await service.POST("brewers").setBody(body).delivered().text == "POST /v1/brewers 5")
        #expect(await service.PUT("brewers/7").setBody(body).delivered().text == "PUT /v1/brewers/7 5")
        #expect(await service.PATCH("brewers/7").setBody(body).delivered().text == "PATCH /v1/brewers/7 5")
        #expect(await service.DELETE("brewers/7").delivered().text == "DELETE /v1/brewers/7 0")
        let head = await service.HEAD("brewers").delivered()
        #expect(head.status == 200)
        #expect(head.text.isEmpty)
        #expect(server.receivedRequests.map(\.method) == [.GET, .POST, .PUT, .PATCH, .DELETE, .HEAD])
    }

    @Test(
        "The framework sets the content type and length on the wire",
        arguments: FoundationBacked.allCases)
    func framing(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 204) }
        let service = kind.service(server)
        #expect(await service.POST("/a").setBody(Data("12345".utf8)).delivered().status == 204)
        #expect(await service.POST("/b").setFormParameters(["name": "A & B", "plus": "1+2"]).delivered().status == 204)
        #expect(await service.POST("/c").setJSON(["n": 1]).delivered().status == 204)
        #expect(await service.POST("/d").delivered().status == 204)
        let refused = await service.POST("/e").setHeaderValue("2", forName: "content-length").setBody(
            Data("12345".utf8)
        ).delivered()
        #expect((refused.error as? WebServiceError)?.code == .invalidHeader)
        let received = server.receivedRequests
        #expect(
            received.map { $0.headers[.contentType] } == [
                ContentType.octetStream, ContentType.formEncoded, ContentType.json, nil,
            ])
        #expect(received.map { $0.headers.values(for: .contentLength) } == [["5"], ["23"], ["7"], ["0"]])
        #expect(received[1].formItems.map { [$0.name, $0.value] } == [["name", "A & B"], ["plus", "1+2"]])
    }

    @Test(
        "The delegate of a URLSession receives challenges, and a 401 completes if it has no credential",
        arguments: [nil, "proper", "wrong"] as [String?])
    func challengesOfADelegate(password: String?) async throws {
        let server = try MockServer.forTest { request in
            if request.headers[.authorization] == "Basic YW5uOnByb3Blcg==" { return .text("welcome") }
            var response = MockResponse(statusCode: 401)
            response.headers["WWW-Authenticate"] = "Basic realm=\"x\""
            return response
        }
        let delegate = ChallengedDelegate(password)
        let session = URLSession(
            configuration: FoundationSession.defaultConfiguration, delegate: delegate, delegateQueue: nil)
        let service = WebService(server.baseURLString, session: session)
        let answer = await service.GET("/private").setDeadline(.seconds(20)).delivered()
        #expect(answer.status == (password == "proper" ? 200 : 401), "\(String(describing: answer.error))")
        #expect(delegate.challenges.withLock { $0 } == (password == "wrong" ? 2 : 1))
        #expect(server.receivedRequests.count == (password == nil ? 1 : 2))
    }

    @Test(
        "A 401 completes as a response, regardless of its challenge",
        arguments: FoundationBacked.allCases,
        [
            "Basic realm=\"x\"", "Basic realm=x", "Digest realm=\"x\", nonce=\"y\"", "Bearer",
            "Negotiate, Basic realm=\"x\"", "garbage",
        ])
    func challenges(kind: FoundationBacked, challenge: String) async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 401, data: Data("who are you?".utf8))
            response.headers["WWW-Authenticate"] = challenge
            return response
        }
        let answer = await kind.service(server).GET("/private").setDeadline(.seconds(20)).delivered()
        #expect(answer.status == 401)
        if kind == .foundationSession { #expect(answer.text == "who are you?") }
        #expect(server.receivedRequests.count == 1)
    }

    @Test(
        "A deadline ends a request to a server that never responds",
        arguments: FoundationBacked.allCases)
    func silence(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200)
            response.wire = .noResponse
            return response
        }
        defer { server.stop() }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = kind.session
        let task = service.GET("/").setDeadline(.seconds(30)).data().resume()
        await clock.advance(by: .seconds(30))
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .deadline)
    }

    @Test(
        "Rule 7: A refused connection and a connection that the server closes are URLErrors",
        arguments: FoundationBacked.allCases)
    func transportErrors(kind: FoundationBacked) async throws {
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200)
            response.wire = .disconnect
            return response
        }
        let service = kind.service(server)
        #expect(await service.GET("/").delivered().urlErrorCode != nil)
        server.stop()
        #expect(await service.GET("/").delivered().urlErrorCode == .cannotConnectToHost)
    }

    @Test("Chunked and large bodies arrive complete", arguments: FoundationBacked.allCases)
    func bodies(kind: FoundationBacked) async throws {
        let large = DownloadFixture.content(3_000_000)
        let server = try MockServer.forTest()
        var chunked = MockResponse(statusCode: 200, data: large)
        chunked.wire = .chunked(size: 10_007)
        server.on(.GET, "/chunked", chunked)
        server.on(.GET, "/fixed", MockResponse(statusCode: 200, data: large))
        server.on(.GET, "/empty", MockResponse(statusCode: 200))
        server.on(.POST, "/echo") { MockResponse(statusCode: 200, data: $0.body) }
        let service = kind.service(server)
        #expect(await service.GET("/chunked").delivered().data == large)
        #expect(await service.GET("/fixed").delivered().data == large)
        #expect(await service.GET("/empty").delivered().data == Data())
        #expect(await service.POST("/echo").setBody(large).delivered().data == large)
    }

    @Test("Persistent connections are reused", arguments: FoundationBacked.allCases)
    func keepAlive(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, data: Data("x".utf8)) }
        let service = kind.service(server)
        for _ in 0..<60 { #expect(await service.GET("/").delivered().status == 200) }
        #expect(server.connectionCount < 60)
    }

    @Test(
        "Each of 500 concurrent requests receives its own response",
        arguments: FoundationBacked.allCases)
    func nonces(kind: FoundationBacked) async throws {
        let server = try MockServer.forTest { MockResponse(statusCode: 200, data: Data(($0.query ?? "").utf8)) }
        let service = kind.service(server)
        let wrong = await withTaskGroup(of: Int.self) { group in
            for index in 0..<500 {
                group.addTask {
                    await service.GET("/").setQueryParameters(["n": index]).delivered().text == "n=\(index)" ? 0 : 1
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }

    @Test("The default session stores no cookies, so that later requests contain none")
    func noCookies() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200)
            response.headers["Set-Cookie"] = "sid=1; Path=/"
            return response
        }
        let service = FoundationBacked.foundationSession.service(server)
        for _ in 0..<2 { #expect(await service.GET("/").delivered().status == 200) }
        #expect(server.receivedRequests.allSatisfy { $0.headers["Cookie"] == nil })
    }

    @Test("A session with a custom configuration completes its tasks and is deallocated after its release")
    func ownSession() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200, data: Data("x".utf8)) }
        weak var released: FoundationSession?
        do {
            let service = WebService(baseURLString: server.baseURLString)
            let session = FoundationSession(configuration: FoundationSession.defaultConfiguration)
            released = session
            service.session = session
            async let first = service.GET("/a").delivered()
            async let second = service.GET("/b").delivered()
            #expect(await [first.status, second.status] == [200, 200])
        }
        await eventually { released == nil }
        #expect(released == nil)
    }
}

/// A delegate that responds to the first challenge of a task with a password, if it has one.
private final class ChallengedDelegate: NSObject, URLSessionTaskDelegate {
    let challenges = Mutex(0)
    private let password: String?

    init(_ password: String?) {
        self.password = password
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        challenges.withLock { $0 += 1 }
        guard let password, challenge.previousFailureCount == 0 else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(user: "ann", password: password, persistence: .none))
    }
}
