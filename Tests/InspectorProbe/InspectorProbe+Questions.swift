import Foundation
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceInspector
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

#if canImport(WebServiceCurl)
import WebServiceCurl
#endif

extension InspectorProbe {
    // MARK: Exchanges that a reader must be able to explain

    func addQuestions() {
        session.on(.GET, "/v1/breweries", .json(["breweries": 12]).after(.milliseconds(45)))
        session.on(
            .GET, "/v1/stock",
            [MockResponse(statusCode: 503).after(.milliseconds(60)), .json(["crates": 48]).after(.milliseconds(30))])
        session.on(.GET, "/v1/beers/7", .json(["name": 7, "abv": "strong"]).after(.milliseconds(35)))
        session.on(.PUT, "/v1/devices/1", MockResponse(statusCode: 204).after(.milliseconds(25)))
        session.on(.GET, "/v1/annual-report", .text("beer;crates\nAle;1200\n").after(.milliseconds(400)))
        session.on(
            .GET, "/v1/old-menu",
            MockResponse(statusCode: 301, headers: ["Location": "/v1/breweries"]).after(.milliseconds(15)))
    }

    func questions() async {
        for path in ["/breweries", "/brewers/7"] { await send(service.GET(path)) }
        var login = Request(.POST, url: "https://brewhapi.example.com/oauth/token")
        login.formParameters = ["grant_type": "password", "username": "ann", "password": "canary-50"]
        await send(service.sessionTask(request: login))
        await send(service.GET("/brewers").setHeaderValue("Bearer canary-51", forName: "Authorization"))
        await cached()
        await send("stock", [RetryPolicy(baseDelay: .milliseconds(80))])
        await send(service.GET("/brewers/99"))
        await send(service.GET("/old-menu"))
        var device = Request(.PUT, url: "https://brewhapi.example.com/v1/devices/1")
        device.content = .json(["model": "tap", "push_token": "canary-52"])
        await send(service.sessionTask(request: device))
        _ = try? await service.perform(BeerRequest()).value  // the response cannot be decoded
        await send("annual-report", [Signing()])
        await send(service.GET("/label"))
    }

    private func send(_ path: String, _ interceptors: [any Interceptor]) async {
        var request = Request(url: "https://brewhapi.example.com/v1/\(path)")
        request.options.interceptors = interceptors
        await send(service.sessionTask(request: request))
    }

    // MARK: The phases of a transport

    /// Sends two requests over a session with one connection, so that the second one waits for it.
    func phases() async {
        #if canImport(WebServiceCurl)
        var configuration = CurlSession.Configuration()
        configuration.maximumConnectionsPerHost = 1
        do {
            let direct = WebService(baseURL: server.baseURL)
            direct.session = try CurlSession(configuration: configuration)
            direct.observers = [inspector.observer]
            server.on(.GET, "/first", .json(["a": 1]).after(.milliseconds(500)))
            server.on(.GET, "/second", .json(["b": 2]).after(.milliseconds(100)))
            async let first: Void = send(direct.GET("/first"))
            while !server.receivedRequests.contains(where: { $0.path == "/first" }) {
                try await Task.sleep(for: .milliseconds(5))
            }
            await send(direct.GET("/second"))
            await first
        } catch {
            print("phases: \(error)")
        }
        #endif
    }
}

/// An interceptor whose work takes longer than the request.
private struct Signing: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Response {
        try await Task.sleep(for: .milliseconds(800))
        return try await next(request)
    }
}

/// A typed request whose response has another form than the program expects.
private struct BeerRequest: HTTPServiceRequest, Hashable {
    struct Output: Decodable, Sendable {
        let name: String
        let abv: Double
    }

    func request(for service: WebService) -> Request { service.request(.GET, path: "/beers/7") }
}
