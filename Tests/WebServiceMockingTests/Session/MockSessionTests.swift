import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@Suite(.permit) struct MockSessionTests {
    private let session = MockSession()

    @Test("The latest stub that matches is used")
    func latestWins() async throws {
        session.addStub(MockResponse(statusCode: 200))
        session.addStub(MockResponse(statusCode: 201)) { $0.urlRequestValue.url?.path == "/a" }
        session.addStub(MockResponse(statusCode: 202)) { $0.urlRequestValue.url?.path == "/a" }
        #expect(await session.response(to: try get("http://a.test/a")).status == 202)
        #expect(await session.response(to: try get("http://a.test/b")).status == 200)
    }

    @Test("A stub can compute a response or an error from the request, or throw")
    func computed() async throws {
        session.addStub { request in
            switch request.urlRequestValue.url?.path {
            case "/down": return URLError(.notConnectedToInternet)
            case "/throw": throw WebServiceError(.decoding, "thrown")
            default:
                var response = MockResponse(statusCode: 200)
                response.data = request.urlRequestValue.httpBody ?? Data()
                return response
            }
        }
        var request = try get("http://a.test/echo", method: "POST")
        request.httpBody = Data("ale".utf8)
        #expect(await session.response(to: request).text == "ale")
        #expect(
            await session.response(to: try get("http://a.test/down")).error as? URLError
                == URLError(.notConnectedToInternet))
        #expect(
            (await session.response(to: try get("http://a.test/throw")).error as? WebServiceError)?.message == "thrown")
        session.addStub(
            requestMatcher: { $0.urlRequestValue.httpMethod == "PUT" },
            responder: { _ in MockResponse(statusCode: 204) })
        #expect(await session.response(to: try get("http://a.test/", method: "PUT")).status == 204)
    }

    @Test("A response of Foundation is a stub with an empty body")
    func foundationResponse() async throws {
        let url = try #require(URL(string: "http://other.test/"))
        session.addStub(
            try #require(HTTPURLResponse(url: url, statusCode: 418, httpVersion: nil, headerFields: ["A": "b"])))
        let answer = await session.response(to: try get("http://a.test/"))
        #expect(answer.status == 418)
        #expect(answer.response?.url == url)
        #expect(answer.data == Data())
    }

    @Test("An unmatched request fails with an error that names method, path and stubs, and no secret")
    func unmatched() async throws {
        let request = try get("http://user:canary@a.test/brewers/1%0A?token=canary", method: "PUT")
        let empty = try #require(await session.response(to: request).error as? WebServiceError)
        #expect(empty.code == .noStub)
        #expect(empty.message == "no stub matches PUT /brewers/1%0A; there are no stubs")

        session.addStub(MockResponse(statusCode: 200)) { _ in false }
        let line = #line - 1
        let one = try #require(await session.response(to: request).error as? WebServiceError)
        #expect(
            one.message == "no stub matches PUT /brewers/1%0A; the closest of 1 stub:\n"
                + "  a stub with a closure (MockSessionTests.swift:\(line)): its closure returned false")

        for _ in 0..<11 { session.addStub(MockResponse(statusCode: 200)) { _ in false } }
        let many = try #require(await session.response(to: try get("http://a.test")).error as? WebServiceError)
        #expect(many.message.hasPrefix("no stub matches GET /; the closest of 12 stubs:\n"))
        #expect(many.message.components(separatedBy: ".swift:").count == 4)
        for error in [empty, one, many] { #expect(!"\(error)\(String(reflecting: error))".contains("canary")) }
    }

    @Test("Removed stubs are not used, except for requests that were resumed before")
    func removal() async throws {
        session.addStub(MockResponse(statusCode: 200))
        let answer: Int? = await withCheckedContinuation { continuation in
            let task = session.dataTask(request: Request(.GET, url: "http://a.test/")) { _, response, _ in
                continuation.resume(returning: (response as? HTTPURLResponse)?.statusCode)
            }
            task.resume()
            session.removeAllStubs()
        }
        #expect(answer == 200)
        #expect((await session.response(to: try get("http://a.test/")).error as? WebServiceError)?.code == .noStub)
        #expect(session.recordedRequests.count == 2)
    }

    @Test("Requests are recorded as they are sent, in the order in which they are resumed")
    func recording() async throws {
        session.addStub(MockResponse(statusCode: 200))
        var requests: [Request] = []
        for number in 0..<20 {
            var request = Request(.POST, url: "http://a.test/\(number)")
            request.formParameters = ["q": "a b"]
            requests.append(request)
        }
        let tasks = requests.map { session.dataTask(request: $0) { _, _, _ in } }
        #expect(session.recordedRequests.isEmpty)
        for task in tasks.reversed() { task.resume() }
        let recorded = session.recordedRequests
        #expect(recorded.map { $0.url?.path } == (0..<20).reversed().map { "/\($0)" })
        #expect(recorded.allSatisfy { $0.httpBody == Data("q=a+b".utf8) })
        #expect(recorded.allSatisfy { $0.httpMethod == "POST" })
    }

    @Test(
        "A request that cannot be encoded fails with a specific error and is not recorded",
        arguments: [
            ("GET", "no url", WebServiceError.Code.invalidURL), ("GET", "ftp://a.test/", .invalidURL),
            ("A B", "http://a.test/", .invalidMethod),
        ])
    func unencoded(method: String, url: String, code: WebServiceError.Code) async {
        session.addStub(MockResponse(statusCode: 200))
        let answer = await session.response(to: Request(Request.Method(rawValue: method), url: url))
        #expect((answer.error as? WebServiceError)?.code == code)
        #expect(session.recordedRequests.isEmpty)
    }

    @Test(
        "A URL with an unsupported scheme fails as unsupported",
        arguments: ["ftp://a.test/", "invalid:", "file:///etc/passwd"])
    func unsupported(url: String) async throws {
        session.addStub(MockResponse(statusCode: 200))
        #expect((await session.response(to: try get(url)).error as? URLError)?.code == .unsupportedURL)
        #expect(session.recordedRequests.isEmpty)
    }

    @Test("A request without a response waits until it is cancelled or reaches its deadline, and blocks no thread")
    func noResponse() async throws {
        var silence = MockResponse(statusCode: 200)
        silence.wire = .noResponse
        session.addStub(silence)
        session.addStub(MockResponse(statusCode: 204)) { $0.urlRequestValue.url?.path == "/other" }
        let service = WebService("http://a.test", session: session)
        let waiting = (0..<200).map { _ in service.GET("/").data().resume() }
        #expect(try await service.GET("/other").data().response.status == 204)
        for task in waiting { task.cancel() }
        for task in waiting { await #expect(throws: URLError(.cancelled)) { try await task.value } }
        let clock = TestClock()
        let timed = WebService(baseURLString: "http://a.test", clock: clock)
        timed.session = session
        let late = timed.GET("/").setDeadline(.seconds(10)).data().resume()
        await clock.advance(by: .seconds(10))
        let error = await #expect(throws: WebServiceError.self) { try await late.value }
        #expect(error?.code == .deadline)
    }

    @Test("A missing or late response is URLError.timedOut after the timeout, once")
    func timeout() async throws {
        let clock = TestClock()
        let session = MockSession(clock: clock)
        var silence = MockResponse(statusCode: 200)
        silence.wire = .noResponse
        session.addStub(silence)
        session.addStub(MockResponse.status(200).after(.seconds(30))) { $0.urlRequestValue.url?.path == "/slow" }
        for path in ["/", "/slow"] {
            var request = Request(.GET, url: "http://a.test\(path)")
            request.options.timeout = .seconds(5)
            var plain = try get("http://a.test\(path)")
            plain.timeoutInterval = 5
            for sent in [request, plain] as [any URLRequestEncodable] {
                let codes = Collected<URLError.Code?>()
                session.dataTask(request: sent) { _, _, error in codes.add((error as? URLError)?.code) }.resume()
                await clock.advance(by: .milliseconds(4_999))
                #expect(codes.values.isEmpty)
                await clock.advance(by: .milliseconds(1))
                #expect(codes.values == [.timedOut])
                await clock.advance(by: .seconds(30))
                #expect(codes.values == [.timedOut])
            }
        }
    }

    @Test("A body over the maximum is responseTooLarge, and progress is reported with the response")
    func limitAndProgress() async throws {
        session.addStub(MockResponse(statusCode: 200, data: Data(count: 11)))
        var request = Request(.POST, url: "http://a.test/")
        request.options.maximumResponseBytes = 10
        #expect((await session.response(to: request).error as? WebServiceError)?.code == .responseTooLarge)
        request.options.maximumResponseBytes = 11
        #expect(await session.response(to: request).data?.count == 11)
        let service = WebService("http://a.test", session: session)
        let progress = Mutex<[TransferProgress]>([])
        let task = service.POST("/").setBody(Data(count: 7)).onProgress { news in progress.withLock { $0.append(news) }
        }.data()
        #expect(try await task.value.count == 11)
        #expect(
            progress.withLock { $0.last }
                == TransferProgress(bytesSent: 7, bytesToSend: 7, bytesReceived: 11, bytesToReceive: 11))
        #expect(try await task.response.source == .mock)
    }

    @Test("A mocked response has the source `mock`, also through a recording session and a service")
    func source() async throws {
        session.addStub(MockResponse(statusCode: 200))
        let inner = WebService("http://a.test", session: RequestRecordingSession(session))
        let service = WebService(baseURLString: "http://a.test")
        for session in [session, inner] as [any Session] {
            service.session = session
            #expect(try await service.GET("/a").data().response.source == .mock)
        }
        #expect(FoundationSession.shared.responseSource == .network)
    }

    @Test("A task that is never resumed is deallocated with its completion")
    func neverResumed() {
        final class Canary: Sendable {}
        weak var watched: Canary?
        do {
            let canary = Canary()
            watched = canary
            let task = session.dataTask(request: Request(.GET, url: "http://a.test/")) { _, _, _ in _ = canary }
            #expect(task.state == .suspended)
        }
        #expect(watched == nil)
    }

    @Test("Stubs can be added and removed while requests are in progress")
    func concurrentUse() async {
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<500 {
                group.addTask {
                    if number.isMultiple(of: 50) { session.removeAllStubs() }
                    session.addStub(MockResponse(statusCode: 200)) { _ in session.recordedRequests.count >= 0 }
                    _ = await session.response(to: Request(.GET, url: "http://a.test/\(number)"))
                    counter.add()
                }
            }
        }
        #expect(counter.value == 500)
        #expect(session.recordedRequests.count == 500)
    }
}
