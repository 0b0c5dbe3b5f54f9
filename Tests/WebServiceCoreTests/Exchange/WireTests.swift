import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The processing of a response between the session and the handlers.
@Suite("Responses of a session", .permit)
struct WireTests {
    private let jar = CookieJar()

    @Test(
        "A request that does not handle cookies stores none, even from a redirect response", arguments: [true, false])
    func cookiesNotStored(isHandled: Bool) async throws {
        let session = ScriptedSession([
            .status(302, headers: ["Location": "/v1/y", "Set-Cookie": "a=1"]),
            .status(200, headers: ["Set-Cookie": "b=2"]),
        ])
        let service = WebService.make(session)
        service.cookieJar = jar
        _ = try await service.GET("/x").configure { $0.options.shouldHandleCookies = isHandled }.data().value
        let url = try #require(URL(string: "https://h/v1/x"))
        #expect(jar.header(for: url) == (isHandled ? "a=1; b=2" : nil))
        #expect(session.sent.map { $0.value(forHTTPHeaderField: "Cookie") } == [nil, isHandled ? "a=1" : nil])
    }

    @Test("A request that does not handle cookies sends none from the jar", arguments: [true, false])
    func cookiesNotSent(isHandled: Bool) async throws {
        let session = ScriptedSession([.status(200)])
        let service = WebService.make(session)
        jar.store(["a=1"], joined: false, from: try #require(URL(string: "https://h/v1/x")))
        service.cookieJar = jar
        _ = try await service.GET("/x").configure { $0.options.shouldHandleCookies = isHandled }.data().value
        #expect(session.sent.map { $0.value(forHTTPHeaderField: "Cookie") } == [isHandled ? "a=1" : nil])
    }

    @Test("A body up to the limit is delivered, and a longer body is an error", arguments: [2, 3, 4])
    func bodyLimit(maximum: Int) async throws {
        let service = WebService.make(ScriptedSession([.status(200, body: "abc")]))
        let result = await service.GET("/x").configure { $0.options.maximumResponseBytes = maximum }.data().result
        switch result {
        case .success(let data):
            #expect(maximum >= 3)
            #expect(data == Data("abc".utf8))
        case .failure(let error):
            #expect(maximum == 2)
            #expect((error as? WebServiceError)?.code == .responseTooLarge)
        }
    }

    @Test("An exchange cancelled while the session creates it is cancelled and never resumed")
    func cancelledWhileCreated() async {
        let session = CancellingSession()
        let errors = Collected<URLError.Code?>()
        let task = WebService.make(session).GET("/x").responseError { errors.add(($0 as? URLError)?.code) }
        session.task.withLock { $0 = task }
        task.resume()
        #expect(await errors.wait() == [.cancelled])
        #expect(session.exchanges.values.map(\.log) == [["cancel"]])
    }

    @Test(
        "An exchange that is cancelled or whose task is complete fails without a request when it is started",
        arguments: [true, false])
    func startedTooLate(isCancelled: Bool) async throws {
        let task = WebService.make().GET("/x")
        let exchange = Exchange(setup: task.service.setup, task: task)
        if !isCancelled { task.complete(.failure(TestError())) }
        let request = task.request
        let result = Task { () async -> Result<Response, any Error> in
            if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
            return await .catching { try await exchange.response(to: request) }
        }
        await #expect { try await result.value.get() } throws: { ($0 as? URLError)?.code == .cancelled }
        #expect(task.log.attempts == 0)
    }

    @Test("A response that arrives after a cancellation is ignored, and its cookies are not stored")
    func responseAfterCancellation() throws {
        let session = HandSession()
        let service = WebService.make(session)
        service.cookieJar = jar
        let task = service.GET("/x")
        task.resume()
        task.cancel()
        let url = try #require(URL(string: "https://h/v1/x"))
        let late = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["Set-Cookie": "a=1"])
        try #require(session.exchanges.values.first).completion(Data(), late, nil)
        #expect(jar.header(for: url) == nil)
    }

    /// A session that cancels a task when it receives the request of the task.
    private final class CancellingSession: Session {
        let task = Mutex<SessionTask?>(nil)
        let exchanges = Collected<HandSession.Exchange>()

        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask {
            let exchange = HandSession.Exchange(request, completion) { _ in }
            exchanges.add(exchange)
            task.withLock { $0.take() }?.cancel()
            return exchange
        }
    }

    @Test("The error of a refused redirect contains its response and body")
    func refusedRedirect() async throws {
        let session = ScriptedSession([.status(301, headers: ["Location": "ftp://h/x"], body: "moved")])
        let task = WebService.make(session).GET("/x").data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.body == Data("moved".utf8))
        #expect(error?.status == 301)
        #expect(session.sent.count == 1)
    }

    @Test(
        "The second completion of an exchange is ignored, even if the first one is a redirect", arguments: [200, 302])
    func secondCompletion(second: Int) async throws {
        let session = HandSession()
        let service = WebService.make(session)
        let url = try #require(URL(string: "https://h/v1/x"))
        let task = service.GET("/x").data().resume()
        let first = session.exchanges.values[0]
        for status in [302, second] {
            let response = HTTPURLResponse(
                url: url, statusCode: status, httpVersion: nil, headerFields: status == 302 ? ["Location": "/y"] : [:])
            first.completion(Data("first".utf8), response, nil)
        }
        first.completion(nil, nil, URLError(.networkConnectionLost))
        await session.exchanges.wait(for: 2)[1].respond("second", status: 203)
        let response = try await task.response
        #expect(session.exchanges.values.count == 2)
        #expect(response.status == 203)
        #expect(response.data == Data("second".utf8))
        #expect(task.task.timeline.events.filter { $0.kind == .attempt }.map(\.status) == [302, 203])
    }

    @Test("The media type of a response is validated only if it has a body")
    func contentTypeOfNothing() async throws {
        let empty = WebService.make(ScriptedSession([.status(204)]))
        #expect(try await empty.GET("/x").data().validate(contentTypes: ["application/json"]).value.isEmpty)
        let body = WebService.make(ScriptedSession([.status(200, body: "x")]))
        let error = await #expect(throws: WebServiceError.self) {
            try await body.GET("/x").data().validate(contentTypes: ["application/json"]).value
        }
        #expect(error?.code == .unexpectedContentType)
        #expect(error?.message.hasPrefix("the response has no media type, which is not acceptable") == true)
    }

    @Test(
        "Validation of application/json accepts media types with a +json suffix and no others",
        arguments: [
            ("application/json; charset=utf-8", true), ("application/problem+json", true), ("image/x+json", true),
            ("text/json", false),
            ("application/xjson", false), ("application/jsonp", false), ("json", false), ("", false),
        ])
    func jsonTypes(type: String, isAccepted: Bool) async throws {
        let service = WebService.make(ScriptedSession([.status(200, headers: ["Content-Type": type], body: "{}")]))
        let result = await service.GET("/x").data().validate(contentTypes: ["application/json"]).result
        switch result {
        case .success: #expect(isAccepted)
        case .failure(let error):
            #expect(!isAccepted)
            #expect((error as? WebServiceError)?.code == .unexpectedContentType)
        }
    }

    @Test("The delegate is not notified of a transport error as a failed result, even with typed steps")
    func transportError() async throws {
        let failures = Failures()
        let service = WebService.make(ScriptedSession([.error(.timedOut)]), delegate: failures)
        let task = service.GET("/x").data().map(\.count).map { $0 + 1 }
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .timedOut)
        _ = await task.map { $0 }.result
        #expect(failures.calls.values.isEmpty)
    }

    @Test("The delegate is notified once of a handler failure with its error, even if typed steps follow")
    func handlerError() async throws {
        let failures = Failures()
        let service = WebService.make(ScriptedSession([.status(200, body: "{}")]), delegate: failures)
        let task = service.GET("/x").response { _, _ in throw TestError(name: "handler") }.data().map(\.count)
        await #expect(throws: TestError(name: "handler")) { try await task.value }
        #expect(failures.calls.values == ["handler"])
    }

    private final class Failures: PartialDelegate {
        let calls = Collected<String>()
        func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {
            calls.add((error as? TestError)?.name ?? "\(error)")
        }
    }
}
