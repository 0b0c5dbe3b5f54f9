import Foundation
import Testing
public import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// Every snippet of Guide.md and README.md, in the order of the pages, and what it has to do. `DocumentationTests` sees that none is missing.

struct Brewer: Codable, Equatable, Sendable {
    var name: String
}

enum BreweryError: Error {
    case notFound, unexpectedAnswer
}

func drawLabel() async throws -> Data { Data([0x89]) }

protocol BreweryAPI {
    var webService: WebService { get }
}

extension BreweryAPI {
    func brewers(inState state: String) -> ServiceTask {
        webService.GET("/brewers").setQueryParameters(["state": state])
    }
}

extension ServiceTask {
    func responseAsBrewers(handler: @escaping @MainActor @Sendable ([Brewer]) -> Void) -> Self {
        responseJSON { json, response in
            guard let list = json as? [[String: String]] else { return .failure(BreweryError.unexpectedAnswer) }
            return .value(list.compactMap { $0["name"].map(Brewer.init(name:)) })
        }
        .updateUI { value in
            if let brewers = value as? [Brewer] { handler(brewers) }
        }
    }
}

struct BreweryClient: BreweryAPI {
    let webService: WebService
}

extension ServiceTask {
    /// Resumes the task and waits until everything that was added to it has run.
    func finish() async {
        await withCheckedContinuation { continuation in
            metricsCollected { _ in continuation.resume() }.resume()
        }
    }
}

struct TaggingSession: Session {
    let inner: any Session

    func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        var request = request.urlRequestValue
        request.setValue("beta", forHTTPHeaderField: "X-Channel")
        return inner.dataTask(request: request, completion: completion)
    }
}

final class StatusCheck: ServicePassthroughDelegate {
    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw BreweryError.unexpectedAnswer }
    }
}

/// The logger of every service of this program; it only counts, so that it is in nobody's way.
let sharedLogger = CountingDelegate()

// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension WebService: ServicePassthroughDataSource {
    public var servicePassthroughDelegate: any ServicePassthroughDelegate { sharedLogger }
}

/// Remembers where requests went.
final class CountingDelegate: ServicePassthroughDelegate {
    private let hosts = Mutex<[String]>([])

    func requestSent(request: URLRequest) {
        hosts.withLock { $0.append(request.url?.host ?? "") }
    }

    func count(of host: String) -> Int {
        hosts.withLock { $0.filter { $0 == host }.count }
    }
}

@Suite("Snippets of the documentation")
struct GuideSnippets {
    let session = MockSession()
    let service = WebService(baseURLString: "https://brewhapi.example.com/v1")

    init() {
        session.addStub(MockResponse(statusCode: 200, json: [["name": "Long Trail"]]))
        service.session = session
    }

    private func sent(_ task: ServiceTask) async throws -> URLRequest {
        await task.finish()
        return try #require(session.recordedRequests.last)
    }

    @Test("quick start")
    func quickStart() async {
        let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
        service.session = session

        service.GET("/brewers")
            .setQueryParameters(["state": "new york"])
            .responseJSON { json, response in .value(json) }
            .updateUI { value in print("on the main queue: \(value ?? "nothing")") }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()

        await service.GET("/brewers").finish()
        #expect(session.recordedRequests.contains { $0.url?.absoluteString == "https://brewhapi.example.com/v1/brewers?state=new%20york" })
    }

    @Test("README's first request, over a mock session")
    func readme() async throws {
        let session = session
        func WebService(baseURLString: String) -> WebServiceCore.WebService {
            let service = WebServiceCore.WebService(baseURLString: baseURLString)
            service.session = session
            return service
        }
        let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
        service.GET("/brewers")
            .responseJSON { json, response in .value(json) }
            .updateUI { value in print(value ?? "nothing") }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()
        await service.GET("/brewers").finish()
        #expect(session.recordedRequests.map { $0.url?.path } == ["/v1/brewers", "/v1/brewers"])
    }

    @Test("placeholders")
    func placeholders() async throws {
        let task = service.GET("/users/{id}/notes/{note}", pathParameters: ["id": 7, "note": "a/b"])
        // https://brewhapi.example.com/v1/users/7/notes/a%2Fb
        #expect(try await sent(task).url?.absoluteString == "https://brewhapi.example.com/v1/users/7/notes/a%2Fb")
    }

    @Test("a request and its task")
    func requests() async throws {
        var request = service.request(.GET, path: "/brewers")
        request.queryParameters = ["state": "new york", "tag": "ale", "tag": "lager"]
        request.headers["custom-header-name"] = "foo"
        request.timeout = 20
        let task = service.sessionTask(request: request)
        // /brewers?state=new%20york&tag=ale&tag=lager
        let sent = try await sent(task)
        #expect(sent.url?.absoluteString.hasSuffix("/brewers?state=new%20york&tag=ale&tag=lager") == true)
        #expect(sent.value(forHTTPHeaderField: "custom-header-name") == "foo")
        #expect(sent.timeoutInterval == 20)
    }

    @Test("the setters of a task")
    func setters() async throws {
        let task = service.POST("/brewers")
            .setHeaderValue("foo", forName: "custom-header-name")
            .setFormParameters(["name": "Trashboat Brewing"])
        #expect(try await sent(task).httpBody == Data("name=Trashboat+Brewing".utf8))
    }

    @Test("parameter strategies and encoders")
    func parameters() throws {
        var request = service.request(.GET, path: "/brewers")
        request.parameterStrategy = ParameterStrategy(arrays: .brackets, booleans: .numeric)
        request.queryParameters = ["tag": ["ale", "lager"], "open": true]
        // /brewers?tag%5B%5D=ale&tag%5B%5D=lager&open=1
        #expect(try request.urlRequest().url?.absoluteString.hasSuffix("/brewers?tag%5B%5D=ale&tag%5B%5D=lager&open=1") == true)

        request.queryParameterEncoder = { url, parameters in
            parameters.reduce(url) { $0?.appendingPathComponent($1.key).appendingPathComponent("\($1.value)") }
        }
        request.queryParameters = ["brew": "12345"]
        // /brewers/brew/12345
        #expect(try request.urlRequest().url?.absoluteString.hasSuffix("/brewers/brew/12345") == true)
    }

    @Test("bodies")
    func bodies() async throws {
        var request = service.request(.POST, path: "/brewers")
        request.formParameters = ["name": "Trashboat Brewing"]  // application/x-www-form-urlencoded
        request.body = Data([1, 2, 3])  // application/octet-stream
        try request.serialize(json: ["name": "Trashboat Brewing"])  // application/json
        try request.serialize(Brewer(name: "Trashboat Brewing"))  // application/json
        try request.serialize(Brewer(name: "Trashboat Brewing"), encoder: PropertyListEncoder(), contentType: "application/x-plist")
        #expect(try request.urlRequest().value(forHTTPHeaderField: "Content-Type") == "application/x-plist")

        let task = service.POST("/brewers/7/label").setBody(contentType: "image/png") {
            try await drawLabel()
        }
        #expect(try await sent(task).httpBody == Data([0x89]))
    }

    @Test("header fields")
    func headers() throws {
        var request = service.request(.GET, path: "/brewers")
        request.headers = ["Accept": "application/json", "Accept": "text/plain;q=0.5"]
        request.headers[.userAgent] = "Brewery/1.0"
        request.headers.add("no-store", for: .cacheControl)
        let sent = try request.urlRequest()
        #expect(sent.value(forHTTPHeaderField: "Accept") == "application/json, text/plain;q=0.5")
        #expect(sent.value(forHTTPHeaderField: "User-Agent") == "Brewery/1.0")
    }

    @Test("cancelling and measuring")
    func tasks() async {
        let task = service.GET("/brewers").responseError { error in
            print((error as? URLError)?.code == .cancelled)
        }
        task.cancel()
        #expect(task.state == .canceling || task.state == .completed)

        service.GET("/brewers")
            .responseJSON { json, response in }
            .metricsCollected { metrics in
                print("answered in \(metrics.responseTime ?? 0) s, parsed in \(metrics.responseJSONTime ?? 0) s")
            }
            .resume()
        await service.GET("/brewers").finish()
    }

    @Test("handlers")
    func handlers() async {
        session.addStub(MockResponse(statusCode: 404)) { $0.urlRequestValue.url?.path == "/v1/brewers/7" }
        service.GET("/brewers/7")
            .response { data, response in
                guard (response as? HTTPURLResponse)?.statusCode == 200 else { return .failure(BreweryError.notFound) }
                return .value(data?.count ?? 0)
            }
            .recover { error in
                guard case BreweryError.notFound = error else { return .failure(error) }
                return .value(0)
            }
            .transform { value in
                return .value("\(value ?? 0) bytes")
            }
            .updateUI { value in
                print(value as? String ?? "")
            }
            .resume()
        await service.GET("/brewers").finish()
    }

    @Test("an API client")
    func client() async {
        let client = BreweryClient(webService: service)
        client.brewers(inState: "vermont")
            .responseAsBrewers { brewers in print(brewers.map(\.name)) }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()
        let names = Mutex<[String]>([])
        await client.brewers(inState: "vermont").responseAsBrewers { brewers in names.withLock { $0 = brewers.map(\.name) } }.finish()
        #expect(names.withLock { $0 } == ["Long Trail"])
    }

    @Test("sessions")
    func sessions() async throws {
        let configuration = FoundationSession.defaultConfiguration
        configuration.httpMaximumConnectionsPerHost = 16
        service.session = FoundationSession(configuration: configuration)
        #expect(service.session is FoundationSession)

        service.session = TaggingSession(inner: session)
        #expect(try await sent(service.GET("/brewers")).value(forHTTPHeaderField: "X-Channel") == "beta")
    }

    @Test("delegates")
    func delegates() async {
        let logger = RequestLogger()
        let service = WebService(baseURLString: "https://brewhapi.example.com", passthroughDelegate: logger)
        #expect(service.passthroughDelegate === logger)

        let check = StatusCheck()
        self.service.passthroughDelegate = check
        session.addStub(MockResponse(statusCode: 500))
        let failures = Mutex<[String]>([])
        await self.service.GET("/brewers").responseError { error in failures.withLock { $0.append("\(error)") } }.finish()
        #expect(failures.withLock { $0 } == ["unexpectedAnswer"])
        withExtendedLifetime(check) {}
    }

    @Test("a delegate for every service: conforming WebService to the data source, and a delegate of its own comes first")
    func dataSource() async {
        let service = WebService(baseURLString: "https://data-source.example.com")
        service.session = session
        #expect(service.passthroughDelegate === sharedLogger)
        await service.GET("/a").finish()
        #expect(sharedLogger.count(of: "data-source.example.com") == 1)

        let own = CountingDelegate()
        service.passthroughDelegate = own
        await service.GET("/b").finish()
        #expect(sharedLogger.count(of: "data-source.example.com") == 1)
        #expect(own.count(of: "data-source.example.com") == 1)
    }

    @Test("errors")
    func errors() async {
        service.GET("../admin").responseError { error in
            guard let error = error as? WebServiceError else { return }
            print(error.code == .invalidURL, error)  // true invalidURL: the path climbs above the base URL
        }
        .resume()
        let texts = Mutex<[String]>([])
        await service.GET("../admin").responseError { error in texts.withLock { $0.append("\(error)") } }.finish()
        #expect(texts.withLock { $0 } == ["invalidURL: the path climbs above the base URL"])
    }

    @Test("mock sessions")
    func mockSessions() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, json: ["brewers": [["name": "Long Trail"]]]))
        service.session = session

        session.stub(MockResponse(statusCode: 404)) { request in
            request.urlRequestValue.url?.path.contains("/nobody") == true
        }
        session.addStub(requestMatcher: { $0.urlRequestValue.httpMethod == "POST" }) { request in
            MockResponse(statusCode: 201, data: request.urlRequestValue.httpBody ?? Data())
        }
        session.addStub(URLError(.notConnectedToInternet)) { $0.urlRequestValue.url?.path == "/v1/offline" }

        let seen = Mutex<[String]>([])
        for task in [service.GET("/x"), service.GET("/nobody"), service.POST("/x").setBody(Data([1])), service.GET("/offline")] {
            await task
                .response { data, response in
                    seen.withLock { $0.append("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(data?.count ?? 0)") }
                }
                .responseError { error in seen.withLock { $0.append("\((error as? URLError)?.code.rawValue ?? 0)") } }
                .finish()
        }
        #expect(seen.withLock { $0 } == ["200 35", "404 0", "201 1", "-1009"])
    }

    @Test("mock servers")
    func mockServers() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/brewers", MockResponse(statusCode: 200, json: [["name": "Long Trail"]]))
        server.on(.POST, "/brewers") { request in
            MockResponse(statusCode: request.body.isEmpty ? 400 : 201)
        }
        let service = WebService(baseURLString: server.baseURLString)

        await service.GET("/brewers").finish()
        await service.POST("/brewers").finish()
        #expect(server.receivedRequests.map(\.method) == [.GET, .POST])
    }
}
