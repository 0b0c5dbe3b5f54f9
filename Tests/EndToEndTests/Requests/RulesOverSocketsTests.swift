import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Redirects, cookies and limits over real sessions and sockets.
@Suite("Redirects, cookies and limits over sockets", .permit)
struct RulesOverSocketsTests {
    private func redirect(_ status: Int, to target: String, body: String = "moved") -> MockResponse {
        var response = MockResponse(statusCode: status, data: Data(body.utf8))
        response.headers[.location] = target
        return response
    }

    @Test(
        "A redirect is followed with the method, body and URL that its status requires",
        arguments: RealSession.transports,
        [301, 302, 303, 307, 308])
    func following(kind: RealSession, status: Int) async throws {
        let server = try MockServer.forTest()
        server.on(.POST, "/dir/x", redirect(status, to: "../ok%2Fhere?x=%2F"))
        for method in [Request.Method.GET, .POST] {
            server.on(method, "/ok%2Fhere") { request in
                MockResponse(
                    statusCode: 200, data: Data("\(request.method) \(request.target) \(request.body.count)".utf8))
            }
        }
        let task = try kind.service(server).POST("/dir/x").setBody(Data("12345".utf8), contentType: "a/b").string()
        let text = try await task.value
        #expect(text == (status < 304 ? "GET /ok%2Fhere?x=%2F 0" : "POST /ok%2Fhere?x=%2F 5"))
        let response = try await task.response
        #expect(response.redirects.map(\.path) == ["/dir/x"])
        #expect(response.attempts == 2)
        #expect(server.receivedRequests.last?.headers[.contentType] == (status < 304 ? nil : "a/b"))
        #expect(server.receivedRequests.count == 2)
    }

    @Test(
        "Credentials are not sent to another origin, nor again later in the chain",
        arguments: RealSession.transports)
    func credentials(kind: RealSession) async throws {
        let home = try MockServer.forTest()
        let other = try MockServer.forTest()
        home.on(.GET, "/start", redirect(302, to: "\(other.baseURLString)/a"))
        other.on(.GET, "/a", redirect(302, to: "http://localhost:\(other.port)/b"))
        other.on(.GET, "/b", redirect(307, to: "\(home.baseURLString)/end"))
        home.on(.GET, "/end", MockResponse(statusCode: 200, data: Data("end".utf8)))
        let service = try kind.service(home)
        service.cookieJar = CookieJar()
        service.interceptors = [Authentication(TokenSource(.bearer("canary-token")))]
        let text = try await service.GET("/start").setQueryParameters(["q": "canary-query"])
            .setHeaders([
                "Cookie": "canary-cookie", "X-Api-Key": "canary-key", "X-Custom": "canary-custom",
                "Accept": "text/plain",
            ])
            .string().value
        #expect(text == "end")
        #expect(home.receivedRequests.first?.headers[.authorization] == "Bearer canary-token")
        let later = other.receivedRequests + home.receivedRequests.dropFirst()
        #expect(later.count == 3)
        for request in later {
            #expect(!String(decoding: request.rawBytes, as: UTF8.self).contains("canary"))
            #expect(request.headers[.accept] == "text/plain")
            #expect(request.headers["Referer"] == nil)
        }
    }

    @Test(
        "Each host in a chain of redirects receives only its own cookies from the jar",
        arguments: RealSession.withoutCookieStorage)
    func cookiesOfEachHost(kind: RealSession) async throws {
        let home = try MockServer.forTest()
        let other = try MockServer.forTest()
        var start = redirect(302, to: "http://localhost:\(other.port)/there")
        start.headers.add("home=1; Path=/", for: .setCookie)
        var there = redirect(302, to: "\(home.baseURLString)/back")
        there.headers.add("other=2; Path=/", for: .setCookie)
        home.on(.GET, "/start", start)
        other.on(.GET, "/there", there)
        home.on(.GET, "/back", MockResponse(statusCode: 200))
        let service = try kind.service(home)
        service.cookieJar = CookieJar()
        for _ in 0..<2 { try await service.GET("/start").empty().value }
        #expect(home.receivedRequests.map { $0.headers[.cookie] } == [nil, "home=1", "home=1", "home=1"])
        #expect(other.receivedRequests.map { $0.headers[.cookie] } == [nil, "other=2"])
    }

    @Test(
        "A redirect that must not be followed is a typed error, and no other server is contacted",
        arguments: RealSession.transports)
    func refused(kind: RealSession) async throws {
        let home = try MockServer.forTest()
        let other = try MockServer.forTest()
        home.on(.POST, "/body", redirect(307, to: "\(other.baseURLString)/steal"))
        home.on(.GET, "/file", redirect(302, to: "file:///etc/passwd"))
        home.on(.GET, "/user", redirect(302, to: "http://a:b@127.0.0.1:\(other.port)/"))
        home.on(.GET, "/loop", redirect(302, to: "/loop"))
        let service = try kind.service(home)
        func code(_ task: SessionTask) async -> WebServiceError.Code? {
            (await task.delivered().error as? WebServiceError)?.code
        }
        #expect(await code(service.POST("/body").setBody(Data("secret".utf8))) == .redirectRefused)
        #expect(await code(service.GET("/file")) == .redirectRefused)
        #expect(await code(service.GET("/user")) == .redirectRefused)
        #expect(await code(service.GET("/loop")) == .tooManyRedirects)
        #expect(home.receivedRequests.filter { $0.path == "/loop" }.count == 21)
        #expect(other.connectionCount == 0)
        let manual = await service.GET("/loop").configure { $0.options.redirectPolicy = .manual }.delivered()
        #expect(manual.status == 302)
    }

    @Test(
        "A redirect without a usable target is delivered as a response",
        arguments: RealSession.transports)
    func noTarget(kind: RealSession) async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/none", MockResponse(statusCode: 302, data: Data("where?".utf8)))
        server.on(.GET, "/304", MockResponse(statusCode: 304))
        let service = try kind.service(server)
        let none = await service.GET("/none").delivered()
        #expect(none.status == 302, "\(String(describing: none.error))")
        #expect(await service.GET("/304").delivered().status == 304)
    }

    @Test(
        "A cookie jar stores cookies and sends them with redirects, unless the request disables cookies",
        arguments: RealSession.withoutCookieStorage)
    func cookies(kind: RealSession) async throws {
        let server = try MockServer.forTest()
        var login = redirect(303, to: "/home")
        login.headers.add("sid=1; Path=/; HttpOnly; Expires=Fri, 31 Dec 2100 23:59:59 GMT", for: .setCookie)
        login.headers.add("theme=dark; Path=/home", for: .setCookie)
        server.on(.POST, "/login", login)
        for path in ["/home", "/other"] {
            server.on(.GET, path) { MockResponse(statusCode: 200, data: Data(($0.headers["Cookie"] ?? "-").utf8)) }
        }
        let service = try kind.service(server)
        #expect(await service.POST("/login").delivered().text == "-")
        service.cookieJar = CookieJar()
        #expect(await service.POST("/login").delivered().text == "theme=dark; sid=1")
        #expect(await service.GET("/other").delivered().text == "sid=1")
        #expect(
            await service.GET("/other").configure { $0.options.shouldHandleCookies = false }.delivered().text == "-")
        #expect(
            await service.GET("/other").setHeaderValue("mine=1", forName: "Cookie").delivered().text == "mine=1; sid=1")
        service.cookieJar = nil
        #expect(await service.GET("/other").delivered().text == "-")
    }

    @Test(
        "A body over the limit is an error, and a body at the limit is not",
        arguments: RealSession.transports,
        [-1, 0, 1])
    func responseLimit(kind: RealSession, excess: Int) async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200, data: Data(count: 200_000 + excess))
            response.wire = .chunked(size: 10_000)
            return response
        }
        let answer = try await kind.service(server).GET("/").configure { $0.options.maximumResponseBytes = 200_000 }
            .delivered()
        if excess > 0 {
            #expect((answer.error as? WebServiceError)?.code == .responseTooLarge)
        } else {
            #expect(answer.data?.count == 200_000 + excess)
        }
        #expect(
            try await kind.service(server).GET("/").configure { $0.options.maximumResponseBytes = .max }.delivered()
                .data?
                .count
                == 200_000 + excess)
    }

    @Test("Silence that exceeds a timeout below one second is URLError.timedOut")
    func idleTimeout() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200)
            response.wire = .noResponse
            return response
        }
        defer { server.stop() }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = FoundationSession(timekeeper: clock)
        let error = Mutex<URLError.Code?>(nil)
        service.GET("/").setTimeout(.milliseconds(200)).responseError { failure in
            error.withLock { $0 = (failure as? URLError)?.code }
        }.resume()
        await eventually { server.receivedRequests.count == 1 }
        await clock.advance(by: .milliseconds(199))
        #expect(error.withLock { $0 } == nil)
        await clock.advance(by: .milliseconds(1))
        #expect(error.withLock { $0 } == .timedOut)
    }

    @Test(
        "Two equal Location fields are followed, as is one with a comma if the session separates fields",
        arguments: RealSession.transports)
    func locations(kind: RealSession) async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/a%2C%20b", .text("comma"))
        server.on(.GET, "/a,%20b", .text("comma"))
        server.on(.GET, "/end", .text("end"))
        var repeated = redirect(302, to: "/end")
        repeated.headers.add("/end", for: .location)
        server.on(.GET, "/repeated", repeated)
        server.on(.GET, "/comma", redirect(302, to: "/a, b"))
        let service = try kind.service(server)
        #expect(try await service.GET("/repeated").string().value == "end")
        let task = service.GET("/comma").data().validateNothing()
        #expect(try await task.response.status == (kind.isCurl ? 200 : 302))
    }

    @Test("The cache policy that forbids network access prevents a connection", arguments: RealSession.transports)
    func cacheOnly(kind: RealSession) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let answer = try await kind.service(server).GET("/").configure {
            $0.options.cachePolicy = .returnCacheDataDontLoad
        }
        .delivered()
        #expect(answer.urlErrorCode == .resourceUnavailable)
        #expect(server.connectionCount == 0)
    }
}
