import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// A delegate that changes requests.
private final class Changing: ServicePassthroughDelegate {
    let change: @Sendable (inout URLRequest) -> Void
    let announced = Collected<URL?>()

    init(_ change: @escaping @Sendable (inout URLRequest) -> Void) {
        self.change = change
    }

    func modifiedRequest(request: URLRequest) -> URLRequest? {
        var request = request
        change(&request)
        return request
    }

    func requestSent(request: URLRequest) { announced.add(request.url) }
    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {}
    func updateUIBegin(response: URLResponse?) {}
    func updateUIEnd(response: URLResponse?) {}
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?
    ) {}
}

/// cookies, redirects, limits and observers apply to the request that a delegate returns.
@Suite("A delegate that changes the URL", .permit)
struct ModifiedURLTests {
    private let jar = CookieJar()

    private struct Recording: Observer {
        let urls = Collected<String>()
        func observe(_ event: ExchangeEvent) {
            if case .attemptStarted(_, let request) = event.kind { urls.add(request.url) }
        }
    }

    private let session = MockSession()

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// Responds with a redirect if there is one for the URL, and with 200 otherwise.
    private func respond(_ redirects: [String: String] = [:], status: Int = 302, headers: [String: String] = [:]) {
        session.addStub(requestMatcher: { _ in true }) { request in
            let url = request.urlRequestValue.url?.absoluteString ?? ""
            guard let location = redirects[url] else { return MockResponse(statusCode: 200, headers: headers) }
            return MockResponse(statusCode: status, headers: headers.merging(["Location": location]) { $1 })
        }
    }

    /// Returns a delegate that sends requests for `https://h` to `https://new`.
    private func moving() -> Changing {
        Changing { request in
            let text = request.url?.absoluteString ?? ""
            request.url = URL(string: text.replacing("https://h/", with: "https://new/"))
        }
    }

    private var sent: [String] { session.recordedRequests.map { $0.url?.absoluteString ?? "" } }

    private func sent(_ field: String) -> [String?] {
        session.recordedRequests.map { $0.value(forHTTPHeaderField: field) }
    }

    @Test("The cookies of the new URL are sent, and the cookies of the response are stored for it")
    func cookies() async throws {
        jar.store(["old=1; Path=/", "both=old; Path=/"], from: try url("https://h/"))
        jar.store(["new=2; Path=/", "both=new; Path=/"], from: try url("https://new/"))
        respond(headers: ["Set-Cookie": "set=3; Path=/"])
        let delegate = moving()
        let service = WebService.make(session, delegate: delegate)
        service.cookieJar = jar
        _ = try await service.GET("/x").setHeaderValue("mine=4", forName: "Cookie").data().value
        let pairs = try #require(sent("Cookie").first ?? nil).components(separatedBy: "; ")
        #expect(pairs.sorted() == ["both=new", "mine=4", "new=2"])
        #expect(jar.header(for: try url("https://h/"))?.contains("set=3") == false)
        #expect(jar.header(for: try url("https://new/"))?.contains("set=3") == true)
    }

    @Test("With the same URL, the cookies are sent as the delegate returned them")
    func sameURL() async throws {
        jar.store(["a=1; Path=/", "b=2; Path=/"], from: try url("https://h/"))
        respond()
        let delegate = Changing { request in
            if request.url?.path == "/v1/less" { request.setValue("b=2", forHTTPHeaderField: "Cookie") }
            if request.url?.path == "/v1/none" { request.setValue(nil, forHTTPHeaderField: "Cookie") }
        }
        let service = WebService.make(session, delegate: delegate)
        service.cookieJar = jar
        for path in ["/all", "/less", "/none"] { _ = try await service.GET(path).data().value }
        let pairs = sent("Cookie").map { $0?.components(separatedBy: "; ").sorted() }
        #expect(pairs == [["a=1", "b=2"], ["b=2"], nil])
    }

    @Test("A redirect does not retain the cookies of the jar")
    func cookiesOfRedirects() async throws {
        jar.store(["a=1; Path=/"], from: try url("https://h/"))
        respond(["https://h/v1/x": "/y"], headers: ["Set-Cookie": "a=2; Path=/"])
        let delegate = Changing { $0.setValue("1", forHTTPHeaderField: "X-Signed") }
        let service = WebService.make(session, delegate: delegate)
        service.cookieJar = jar
        _ = try await service.GET("/x").setHeaderValue("mine=4", forName: "Cookie").data().value
        #expect(sent("Cookie") == ["mine=4; a=1", "mine=4; a=2"])
    }

    @Test("A redirect is relative to the new URL, and its origin is compared with the new one")
    func redirects() async throws {
        respond(["https://new/v1/x": "y", "https://new/v1/y": "https://old/z"])
        let delegate = moving()
        let service = WebService.make(session, delegate: delegate)
        let response = try await service.GET("/x").setHeaderValue("canary", forName: "X-Key").data().response
        #expect(sent == ["https://new/v1/x", "https://new/v1/y", "https://old/z"])
        #expect(response.redirects.map(\.absoluteString) == ["https://new/v1/x", "https://new/v1/y"])
        #expect(sent("X-Key") == ["canary", "canary", nil])
    }

    @Test("A redirect from the new URL to the original one leads to another origin")
    func back() async throws {
        respond(["https://new/v1/x": "https://h:444/x"])
        let delegate = moving()
        let service = WebService.make(session, delegate: delegate)
        let task = service.PUT("/x").setHeaderValue("canary", forName: "X-Key").setBody(Data("b".utf8)).data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .redirectRefused)
        #expect(sent == ["https://new/v1/x"])
    }

    @Test("A redirect has the method and the body that the delegate set", arguments: [303, 307])
    func method(status: Int) async throws {
        respond(["https://h/v1/x": "/y"], status: status)
        let delegate = Changing { request in
            request.httpMethod = "PUT"
            if request.url?.path == "/v1/x" { request.httpBody = Data("new".utf8) }
        }
        _ = try await WebService.make(session, delegate: delegate).POST("/x").setBody(Data("old".utf8)).data().value
        #expect(session.recordedRequests.map(\.httpMethod) == ["PUT", "PUT"])
        #expect(
            session.recordedRequests.map { $0.httpBody ?? Data() } == [
                Data("new".utf8), Data((status == 307 ? "new" : "").utf8),
            ])
    }

    @Test("Limits, the redirect policy and observers apply to the new request")
    func limits() async throws {
        respond(["https://new/v1/x": "y"])
        let delegate = moving()
        let observer = Recording()
        let service = WebService.make(session, delegate: delegate)
        service.observers = [observer]
        let manual = service.GET("/x").configure { $0.options.redirectPolicy = .manual }.data().validateNothing()
        #expect(try await manual.response.status == 302)
        #expect(observer.urls.values == ["https://new/v1/x"])
        #expect(delegate.announced.values.map { $0?.absoluteString } == ["https://new/v1/x"])
        session.addStub(requestMatcher: { _ in true }) { _ in MockResponse(statusCode: 200, data: Data(count: 11)) }
        let large = service.GET("/z").configure { $0.options.maximumResponseBytes = 10 }.data()
        let error = await #expect(throws: WebServiceError.self) { try await large.value }
        #expect(error?.code == .responseTooLarge)
    }

    @Test("Neither fields of the service nor a credential are sent to the new origin")
    func credentials() async throws {
        respond()
        let delegate = moving()
        let service = WebService.make(session, delegate: delegate)
        service.headers = ["X-Key": "canary-service", "Accept": "a/b"]
        service.interceptors = [.headers(["X-Other": "canary-interceptor"]), .bearer("canary-token")]
        _ = try await service.GET("/x").setHeaderValue("own", forName: "X-Own").data().value
        #expect(sent("X-Key") == [nil])
        #expect(sent("X-Other") == [nil])
        #expect(sent("Authorization") == [nil])
        #expect(sent("X-Own") == ["own"])
        #expect(sent("Accept") == ["a/b"])
        let new = try #require(Origin("https://new"))
        service.headerOrigins = [new]
        service.interceptors = [
            .headers(["X-Other": "1"], origins: [new]), Authentication(TokenSource(.bearer("2")), origins: [new]),
        ]
        _ = try await service.GET("/x").data().value
        #expect(sent("X-Key").last == "canary-service")
        #expect(sent("X-Other").last == "1")
        #expect(sent("Authorization").last == "Bearer 2")
    }

    @Test("An interceptor that changes the URL removes the credentials that earlier stages added")
    func interceptor() async throws {
        respond()
        let service = WebService.make(session)
        service.headers = ["X-Key": "canary-service", "X-Key": "canary-second"]
        service.interceptors = [
            .headers(["X-Other": "canary-interceptor"]), .bearer("canary-token"),
            .closure { request, next in
                var request = request
                request.url = URL(string: "https://mirror/x")
                return try await next(request)
            },
        ]
        _ = try await service.GET("/x").setHeaderValue("own", forName: "X-Own").data().value
        #expect(sent == ["https://mirror/x"])
        #expect(session.recordedRequests.first?.allHTTPHeaderFields == ["X-Own": "own"])
    }
}
