import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCassettes
import WebServiceConformance
public import WebServiceCore
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceInspector
import WebServiceMocking
import WebServiceResilience
import WebServiceServer
import WebServiceStorage
import WebServiceTesting
import WebServiceTransfers

#if canImport(XCTest)
import XCTest
#endif

#if WEBSERVICE_CURL
import WebServiceCurl
import WebServicePagination
#endif

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// Every snippet of Guide.md, with its expected behavior.
// `DocumentationTests` verifies that none is missing.

struct Brewer: Codable, Equatable, Sendable {
    var name: String
}

enum BreweryError: Error {
    case notFound, soldOut, unexpectedResponse
}

func drawLabel() async throws -> Data { Data([0x89]) }

protocol BreweryAPI: Sendable {
    var webService: WebService { get }
}

extension BreweryAPI {
    func brewers(inState state: String) -> TypedTask<[Brewer]> {
        webService.GET("/brewers").setQueryParameters(["state": state]).decode([Brewer].self)
    }

    func labels() -> Paginator<String, URL> {
        Paginator.links(from: webService.request(.GET, path: "/labels")) { [webService] request in
            webService.sessionTask(request: request).decode([String].self)
        }
    }
}

struct BreweryClient: BreweryAPI {
    let webService: WebService
}

extension WebService {
    func brewer(named name: String) -> TypedTask<Brewer> {
        GET("/brewers/{name}", pathParameters: ["name": name]).decode(Brewer.self)
    }
}

struct BrewersRequest: HTTPServiceRequest, Hashable {
    var state: String
    typealias Output = [Brewer]

    func request(for service: WebService) -> Request {
        var request = service.request(.GET, path: "/brewers")
        request.queryParameters = ["state": state]
        return request
    }
}

struct OrdersRequest: ParameterizedRequest, Hashable {
    var skip: Int
    typealias Output = [Brewer]

    var path: String { "/orders" }
    var parameters: Parameters { ["skip": skip, "take": 20] }
}

struct UpdateBrewer: ParameterizedRequest {
    var id: Int
    var brewer: Brewer
    typealias Output = Brewer

    var method: Request.Method { .PUT }
    var path: String { "/brewers/{id}" }
    var pathParameters: Parameters { ["id": id] }
    var body: some Encodable { brewer }
}

struct Visits: Codable, Sendable {
    var visits: [String]
    var next: String?
}

struct VisitsRequest: ParameterizedRequest, PagedRequest {
    var cursor: String?
    typealias Output = Visits

    var path: String { "/visits" }
    var parameters: Parameters { ["cursor": cursor] }

    func at(_ cursor: String) -> VisitsRequest { VisitsRequest(cursor: cursor) }
    func page(of list: Visits, response: Response) -> Page<String, String> {
        Page(list.visits, next: list.next)
    }
}

struct LabelsRequest: HTTPServiceRequest, PagedRequest {
    var url: URL?
    typealias Output = [String]

    func request(for service: WebService) -> Request {
        url.map { Request(url: $0) } ?? service.request(.GET, path: "/labels")
    }

    func at(_ url: URL) -> LabelsRequest { LabelsRequest(url: url) }
    func page(of labels: [String], response: Response) throws -> Page<String, URL> {
        Page(labels, next: try response.pageLink())
    }
}

final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "results")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

struct SocketRefused: Error {}

func openSocket(with credential: Credential?) async throws -> String {
    guard credential == .bearer("new") else { throw SocketRefused() }
    return "open"
}

enum Lists: RequestGroup {
    static let requestTypes: [any ServiceRequest.Type] = [
        BrewersRequest.self, OrdersRequest.self,
    ]
}

struct LoginError: Error, Decodable {
    var error: String
}

protocol MenuRequest: ServiceRequest where Output == String {
    var day: String { get }
}

struct MenuEndpoint: ServiceEndpoint {
    let menus: [String: String]

    func supports(_ request: any ServiceRequest) -> Bool { request is any MenuRequest }

    func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws
        -> any RawDataSource
    {
        let day = (request as? any MenuRequest)?.day ?? ""
        return Data((menus[day] ?? "closed").utf8)
    }

    func process(
        _ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool
    ) throws
        -> any Sendable
    {
        String(decoding: rawData.rawData ?? Data(), as: UTF8.self)
    }
}

struct FridayMenu: MenuRequest {
    typealias Output = String
    var day: String { "friday" }
}

struct ScreenKey: Hashable {
    var name: String
}

struct BreweryProvider: ServiceProvider {
    private let service: WebService

    init(service: WebService) { self.service = service }

    func brewers(in state: String) -> TypedTask<[Brewer]> {
        service.perform(BrewersRequest(state: state), duplicates: .join)
    }
}

extension BrewersRequest: ValueStorableRequest {
    var storageIdentifier: String? { "brewers/\(state)" }
}

extension DataClassification {
    static let user = DataClassification("user")
    static let temporary = DataClassification("temporary")
}

struct PageRequest: ServiceRequest {
    var site: String
    typealias Output = String
}

extension PageRequest: MockableRequest {
    var mockDelay: Duration { .milliseconds(3) }
    var mockHelperIdentifier: String? { "template" }
    func makeMockHelper() -> String { "<html>%</html>" }
    func mockOutput(helper template: String) -> String {
        template.replacingOccurrences(of: "%", with: site)
    }
}

extension ServiceTask {
    /// Resumes the task and waits until all its handlers have run.
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

enum Feature: RequestTagKey {
    static let defaultValue = "unknown"
}

struct Stopwatch: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Response {
        let start = ContinuousClock.now
        let response = try await next(request)
        print("\(request.method): \(start.duration(to: .now))")
        return response
    }
}

/// The tokens of a program.
final class Tokens: Sendable {
    var current: String { "old" }
    func renew() async throws -> String { "new" }
}

final class StatusCheck: ServicePassthroughDelegate {
    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {
        guard let response = response as? HTTPURLResponse else { return }
        guard response.statusCode == 200 else { throw BreweryError.unexpectedResponse }
    }

    func requestSent(request: URLRequest) {
        print("sent for \(currentRequest?.options[Feature.self] ?? "")")
    }

    func responseReceived(
        response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?
    ) {}
    func serviceResultFailure(
        response: URLResponse?, data: Data?, request: URLRequest?, error: any Error
    ) {}
    func updateUIBegin(response: URLResponse?) {}
    func updateUIEnd(response: URLResponse?) {}
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?,
        error: (any Error)?
    ) {}
}

/// A counter.
final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }
    func increment() { count.withLock { $0 += 1 } }
}

struct FailureCounter: Observer {
    let count: Counter

    func observe(_ event: ExchangeEvent) {
        if case .ended(let summary) = event.kind, case .failure = summary.result {
            count.increment()
        }
    }
}

/// The logger of every service of this program. It only counts, so that it affects no other test.
let sharedLogger = CountingDelegate()

// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension WebService: ServicePassthroughDataSource {
    public var servicePassthroughDelegate: any ServicePassthroughDelegate { sharedLogger }
}

/// Counts the requests that were sent to each host.
final class CountingDelegate: ServicePassthroughDelegate {
    private let counts = Mutex<[String: Int]>([:])

    func requestSent(request: URLRequest) {
        counts.withLock { $0[request.url?.host ?? "", default: 0] += 1 }
    }

    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {}
    func updateUIBegin(response: URLResponse?) {}
    func updateUIEnd(response: URLResponse?) {}
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?
    ) {}

    func count(of host: String) -> Int {
        counts.withLock { $0[host] ?? 0 }
    }
}

@Suite("Snippets of the documentation", .permit)
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

    @Test("The quick start sends its request with the query")
    func quickStart() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, json: [["name": "Trashboat Brewing"]]))

        let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
        service.session = session

        let task = service.GET("/brewers")
            .setQueryParameters(["state": "new york"])
            .responseJSON { json, response in .value(json) }
            .updateUI { value in print("on the main queue: \(value ?? "nothing")") }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()
        _ = await task.data().result

        #expect(
            session.recordedRequests.map { $0.url?.absoluteString } == [
                "https://brewhapi.example.com/v1/brewers?state=new%20york"
            ])
    }

    @Test("The first requests are sent over a mock session")
    func readme() async throws {
        let session = session
        func WebService(baseURLString: String) -> WebServiceCore.WebService {
            let service = WebServiceCore.WebService(baseURLString: baseURLString)
            service.session = session
            return service
        }
        let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
        let brewers = try await service.GET("/brewers").decode([Brewer].self).value
        #expect(!brewers.isEmpty)
        service.GET("/brewers")
            .responseJSON { json, response in .value(json) }
            .updateUI { value in print(value ?? "nothing") }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()
        await service.GET("/brewers").finish()
        #expect(session.recordedRequests.map { $0.url?.path } == ["/v1/brewers", "/v1/brewers", "/v1/brewers"])
    }

    @Test("The response of a typed task has a status and header fields")
    func responses() async throws {
        let response = try await service.GET("/brewers").data().response
        print(response.status, response.header("Content-Type") ?? "none")
        #expect(response.status == 200)
        service.GET("/brewers").decode([Brewer].self)
            .updateUI { brewers in print("\(brewers.count) brewers") }
            .updateErrorUI { error in print("the brewers cannot be loaded: \(error)") }
            .resume()
        await service.GET("/brewers").finish()
    }

    @Test("An extension of WebService is an API client")
    func serviceExtension() async throws {
        let mock = MockService()
        mock.on(.GET, "/brewers/{name}", .json(Brewer(name: "Long Trail")))
        #expect(try await mock.service.brewer(named: "Long Trail").value == Brewer(name: "Long Trail"))
        #expect(mock.session.receivedRequests.first?.pathParameters["name"] == "Long Trail")
    }

    @Test("A log-out removes the credential and cancels what is in flight")
    func logOut() async throws {
        let mock = MockService(clock: TestClock())
        mock.on(.GET, "/brewers", .text("late").after(.seconds(60)))
        let (service, authentication) = (mock.service, Authentication(TokenSource { .bearer("1") }))
        service.interceptors = [authentication]
        let task = service.GET("/brewers").string().resume()
        authentication.clear()
        service.cancelAll()
        await #expect(throws: URLError(.cancelled)) { try await task.value }
    }

    @Test("Placeholders are replaced with encoded values")
    func placeholders() async throws {
        let task = service.GET("/users/{id}/notes/{note}", pathParameters: ["id": 7, "note": "a/b"])
        // https://brewhapi.example.com/v1/users/7/notes/a%2Fb
        #expect(try await sent(task).url?.absoluteString == "https://brewhapi.example.com/v1/users/7/notes/a%2Fb")
    }

    @Test("A task sends the parameters, header fields and timeout of its request")
    func requests() async throws {
        var request = service.request(.GET, path: "/brewers")
        request.queryParameters = ["state": "new york", "tag": "ale", "tag": "lager"]
        request.headers["custom-header-name"] = "foo"
        request.options.timeout = .seconds(20)
        let task = service.sessionTask(request: request)
        // /brewers?state=new%20york&tag=ale&tag=lager
        let sent = try await sent(task)
        #expect(sent.url?.absoluteString.hasSuffix("/brewers?state=new%20york&tag=ale&tag=lager") == true)
        #expect(sent.value(forHTTPHeaderField: "custom-header-name") == "foo")
        #expect(sent.timeoutInterval == 20)
    }

    @Test("The defaults of a service apply to its requests and can be overridden")
    func defaults() async throws {
        let decoder = JSONDecoder()
        service.headers = ["Accept": "application/json", "X-Client": "brewery"]
        service.options.timeout = .seconds(20)
        service.decoder = decoder
        let task = service.GET("/brewers")
            .setHeaderValue("text/plain", forName: .accept).setTimeout(.seconds(5))
        let sent = try await sent(task)
        #expect(sent.value(forHTTPHeaderField: "Accept") == "text/plain")
        #expect(sent.timeoutInterval == 5)
        #expect(sent.value(forHTTPHeaderField: "X-Client") == "brewery")
        #expect(service.decoder is JSONDecoder)
    }

    @Test("A tag of a request is available to interceptors and has a default")
    func tags() async throws {
        let seen = Mutex<[String]>([])
        func print(_ text: String) { seen.withLock { $0.append(text) } }
        service.interceptors = [
            .closure { request, next in
                seen.withLock { $0.append(request.options[Feature.self]) }
                return try await next(request)
            }
        ]
        let task = service.GET("/brewers").configure { $0.options[Feature.self] = "search" }
        print(task.request.options[Feature.self])  // search
        _ = try await task.data().value
        _ = try await service.GET("/brewers").data().value
        #expect(seen.withLock { $0 } == ["search", "search", "unknown"])
    }

    @Test("The setters of a task change its request")
    func setters() async throws {
        let task = service.POST("/brewers")
            .setHeaderValue("foo", forName: "custom-header-name")
            .setFormParameters(["name": "Trashboat Brewing"])
        #expect(try await sent(task).httpBody == Data("name=Trashboat+Brewing".utf8))
    }

    @Test("A parameter strategy and a custom encoder determine the URL")
    func parameters() throws {
        var request = service.request(.GET, path: "/brewers")
        request.parameterStrategy = ParameterStrategy(arrays: .brackets, booleans: .numeric)
        request.queryParameters = ["tag": ["ale", "lager"], "open": true]
        // /brewers?tag%5B%5D=ale&tag%5B%5D=lager&open=1
        #expect(
            try request.urlRequest().url?.absoluteString.hasSuffix("/brewers?tag%5B%5D=ale&tag%5B%5D=lager&open=1")
                == true)

        request.queryParameterEncoder = { url, parameters in
            parameters.reduce(url) {
                $0?.appendingPathComponent($1.key).appendingPathComponent("\($1.value)")
            }
        }
        request.queryParameters = ["brew": "12345"]
        // /brewers/brew/12345
        #expect(try request.urlRequest().url?.absoluteString.hasSuffix("/brewers/brew/12345") == true)
    }

    @Test("A body is sent with its content type, and a body provider creates it on demand")
    func bodies() async throws {
        var request = service.request(.POST, path: "/brewers")
        request.formParameters = ["name": "Trashboat Brewing"]  // application/x-www-form-urlencoded
        request.body = Data([1, 2, 3])  // application/octet-stream
        try request.serialize(json: ["name": "Trashboat Brewing"])  // application/json
        try request.serialize(Brewer(name: "Trashboat Brewing"))  // application/json
        try request.serialize(
            Brewer(name: "Trashboat Brewing"), encoder: PropertyListEncoder(),
            contentType: "application/x-plist")
        #expect(try request.urlRequest().value(forHTTPHeaderField: "Content-Type") == "application/x-plist")

        let task = service.POST("/brewers/7/label").setBody(contentType: "image/png") {
            try await drawLabel()
        }
        #expect(try await sent(task).httpBody == Data([0x89]))
    }

    @Test("Header fields are sent, and repeated ones are combined")
    func headers() throws {
        var request = service.request(.GET, path: "/brewers")
        request.headers = ["Accept": "application/json", "Accept": "text/plain;q=0.5"]
        request.headers[.userAgent] = "Brewery/1.0"
        request.headers.add("no-store", for: .cacheControl)
        let sent = try request.urlRequest()
        #expect(sent.value(forHTTPHeaderField: "Accept") == "application/json, text/plain;q=0.5")
        #expect(sent.value(forHTTPHeaderField: "User-Agent") == "Brewery/1.0")
    }

    @Test("A task can be cancelled and measured")
    func tasks() async {
        let task = service.GET("/brewers").responseError { error in
            print((error as? URLError)?.code == .cancelled)
        }
        task.cancel()
        #expect(task.state == .canceling || task.state == .completed)

        service.GET("/brewers")
            .responseJSON { json, response in }
            .metricsCollected { metrics in
                print("received in \(metrics.responseTime ?? .zero)")
                print("parsed in \(metrics.responseJSONTime ?? .zero)")
            }
            .resume()
        await service.GET("/brewers").finish()
    }

    @Test("Handlers process a response one after another")
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

    @Test("An API client returns typed tasks and pages")
    func client() async throws {
        let client = BreweryClient(webService: service)
        let brewers = try await client.brewers(inState: "vermont").value
        client.brewers(inState: "vermont")
            .updateUI { brewers in print(brewers.map(\.name)) }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()
        #expect(brewers.map(\.name) == ["Long Trail"])
        let mock = MockService()
        mock.on(.GET, "/labels", .json(["red", "blue"]))
        let labels = try await BreweryClient(webService: mock.service).labels().moveNext()
        #expect(labels?.items == ["red", "blue"])
    }

    @Test("A typed task decodes, maps and recovers its value")
    func typedTasks() async throws {
        let brewers = try await service.GET("/brewers").decode([Brewer].self).value
        #expect(brewers == [Brewer(name: "Long Trail")])

        service.GET("/brewers").decode([Brewer].self)
            .map(\.count)
            .updateUI { count in print("\(count) brewers") }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()

        session.addStub(MockResponse(statusCode: 404))
        let names = try await service.GET("/brewers").decode([Brewer].self)
            .map { brewers in brewers.map(\.name) }
            .recover { error in
                guard (error as? WebServiceError)?.status == 404 else { throw error }
                return []
            }
            .value
        #expect(names.isEmpty)
    }

    @Test("Interceptors apply to a service and to a task")
    func interceptors() async throws {
        service.interceptors = [Stopwatch(), .retry(), .headers(["Accept": "application/json"])]
        let task = service.GET("/brewers").intercepted(
            by: .closure { request, next in try await next(request) })
        #expect(try await sent(task).value(forHTTPHeaderField: "Accept") == "application/json")
    }

    @Test("The retry policy of a request replaces that of the service")
    func requestPolicy() async throws {
        var busy = MockResponse(statusCode: 503)
        busy.headers[.retryAfter] = "0"
        session.addStub(busy)
        service.interceptors = [.retry()]
        let task = service.GET("/brewers").intercepted(by: .retry(maximumAttempts: 2))
        _ = await task.data().result
        #expect(session.recordedRequests.count == 2)
    }

    @Test("Interceptors in dot syntax add header fields")
    func fieldInterceptors() async throws {
        service.interceptors = [
            .retry(),
            .userAgent("Brewery/1.0"),
            .traceContext(),
            .basic(user: "ann", password: "secret"),
        ]
        let sent = try await sent(service.GET("/brewers"))
        #expect(sent.value(forHTTPHeaderField: "User-Agent") == "Brewery/1.0")
        #expect(sent.value(forHTTPHeaderField: "traceparent")?.utf8.count == 55)
        #expect(sent.value(forHTTPHeaderField: "Authorization") == "Basic YW5uOnNlY3JldA==")
    }

    @Test("A retry policy sends a request up to its maximum number of attempts")
    func retry() async throws {
        var busy = MockResponse(statusCode: 503)
        busy.headers[.retryAfter] = "0"
        session.addStub(busy)
        service.interceptors = [
            RetryPolicy(maximumAttempts: 5, baseDelay: .milliseconds(200), budget: .seconds(30))
        ]
        let task = service.GET("/brewers").data()
        _ = await task.result
        print(task.timeline)
        #expect(session.recordedRequests.count == 5)
        #expect(task.timeline.events.contains { $0.kind == .noRetry })
    }

    @Test("Requests take their retries from a shared budget")
    func retryBudget() async throws {
        var busy = MockResponse(statusCode: 503)
        busy.headers[.retryAfter] = "0"
        session.addStub(busy)
        let retryBudget = RetryPolicy.Budget(capacity: 50, ratio: 0.1)
        service.interceptors = [RetryPolicy(retryBudget: retryBudget)]
        _ = await service.GET("/brewers").data().result
        #expect(session.recordedRequests.count == 3)
        #expect(retryBudget.availableRetries == 48)
    }

    @Test("Interceptors limit the rate, open a circuit and wait for a network")
    func steeringInterceptors() async throws {
        service.interceptors = .standardResilience()
        #expect(try await service.GET("/brewers").decode([Brewer].self).value == [Brewer(name: "Long Trail")])
        let servers = ["https://eu.example.com", "https://us.example.com"].compactMap(Origin.init)
        service.interceptors = [.retry(), .endpoints(servers)]
        #expect(try await service.GET("/brewers").decode([Brewer].self).value == [Brewer(name: "Long Trail")])
        #expect(session.recordedRequests.last?.url?.host == "eu.example.com")
        service.interceptors = [.retry(), .hedging(after: .percentile(0.96))]
        service.interceptors = [
            .waitForConnectivity(within: .seconds(120)),
            .idempotencyKey(),
            .retry(maximumAttempts: 5),
            .hedging(),
            .circuitBreaker(opensAfter: .consecutiveFailures(5), openDuration: .seconds(30)),
            .rateLimit(10, per: .seconds(1)),
            .concurrencyLimit(.fixed(20)),
        ]
        #expect(try await service.GET("/brewers").decode([Brewer].self).value == [Brewer(name: "Long Trail")])
        service.interceptors = [.retry(), .concurrencyLimit(.gradient(), maximumWaiting: 200)]
        #expect(try await service.GET("/brewers").decode([Brewer].self).value == [Brewer(name: "Long Trail")])
        service.interceptors = [.idempotencyKey(), .retry()]
        service.interceptors = [
            .circuitBreaker(
                opensAfter: .failureRatio(0.1, minimumRequests: 100, window: .seconds(30)),
                openDuration: .seconds(5))
        ]
        session.addStub(MockResponse(statusCode: 500))
        service.interceptors = [.circuitBreaker(opensAfter: .consecutiveFailures(1))]
        _ = await service.GET("/brewers").data().result
        do {
            _ = try await service.GET("/brewers").data().value
        } catch let error as WebServiceError where error.code == .circuitOpen {
            print("the next trial is in \(error.timeUntilTrial ?? .zero)")
        }
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/brewers").data().value }
        #expect(error?.timeUntilTrial ?? .zero > .seconds(10))
        #expect(session.recordedRequests.count == 5)
    }

    @Test("A circuit is observed, and opened and closed manually")
    func circuitState() async {
        let breaker = CircuitBreaker(maximumTrials: 3)
        service.interceptors = [.retry(), breaker]
        let log = Task {
            for await change in breaker.changes { print(change.key, change.state) }
        }
        breaker.open("https://api.example.com")
        print(breaker.state(of: "https://api.example.com"))  // open(remaining: nil)
        breaker.close("https://api.example.com")
        #expect(breaker.state(of: "https://api.example.com") == .closed)
        log.cancel()
    }

    @Test("Predicates decide on further retries")
    func retryPredicates() async throws {
        session.addStub(MockResponse(statusCode: 403, headers: ["Retry-After": "0"]))
        service.interceptors = [
            .retry(maximumAttempts: 4) { response in
                response.status == 403 && response.header(.retryAfter) != nil
            } retriesError: { error in
                (error as? URLError)?.code == .secureConnectionFailed
            }
        ]
        _ = await service.GET("/brewers").data().result
        #expect(session.recordedRequests.count == 4)
    }

    @Test("A custom rule determines what is unauthorized, and other work shares the refresh")
    func authenticationRules() async throws {
        let tokens = Tokens()
        session.addStub(requestMatcher: { _ in true }) { request in
            let field = request.urlRequestValue.value(forHTTPHeaderField: "Authorization")
            return MockResponse(statusCode: field == "Bearer new" ? 200 : 403)
        }
        let authentication = Authentication(
            TokenSource({ .bearer(tokens.current) }) { rejected in .bearer(try await tokens.renew()) },
            isUnauthorized: { [401, 403].contains($0.status) }
        )
        let socket = try await authentication.withCredential(
            refreshingAfter: { $0 is SocketRefused }
        ) { credential in
            try await openSocket(with: credential)
        }
        #expect(socket == "open")
        service.interceptors = [authentication]
        try await service.GET("/me").empty().value
        #expect(session.recordedRequests.count == 1)
    }

    @Test("Requests of any type, several sessions, executors and combined results")
    func typedRecipes() async throws {
        let requests: [any ServiceRequest] = [BrewersRequest(state: "vermont"), OrdersRequest(skip: 0)]
        for request in requests {
            let value = try await service.perform(request).value
            print(type(of: value))
        }
        #expect(session.recordedRequests.count == 2)
        let uploads = MockSession()
        service.endpoints = [
            HTTPEndpoint(session: uploads, where: { $0 is UpdateBrewer }),
            HTTPEndpoint(),
        ]
        let executor = QueueExecutor()
        let task = service.perform(BrewersRequest(state: "vermont"))
            .onCompletion(on: executor) { result in print((try? result.get())?.count ?? 0) }
            .resume()
        #expect(try await task.value.count == 1)
        async let vermont = service.perform(BrewersRequest(state: "vermont")).value
        async let maine = service.perform(BrewersRequest(state: "maine")).value
        let brewers = try await vermont + maine
        #expect(brewers.count == 2)
    }

    @Test("A request is sent after a pause in the input")
    func pausedInput() async throws {
        let clock = TestClock()
        let executor = clock.executor
        let typed = ["v", "ve", "vermont"]
        let count = session.recordedRequests.count
        var pending: Task<[Brewer], any Error>?
        for text in typed {
            pending?.cancel()
            pending = Task(executorPreference: executor) {
                try await clock.sleep(for: .milliseconds(300))
                return try await service.perform(BrewersRequest(state: text)).value
            }
        }
        await clock.advance(by: .milliseconds(300))
        #expect(try await pending?.value.count == 1)
        #expect(session.recordedRequests.count == count + 1)
    }

    @Test("A paged request follows the links of its responses")
    func pagedLinks() async throws {
        session.addStub(MockResponse(statusCode: 200, json: ["ale"]))
        for try await label in service.pages(of: LabelsRequest()).items() { #expect(label == "ale") }
        #expect(session.recordedRequests.count == 1)
    }

    @Test("A rejected credential is renewed, and the request is sent again")
    func authentication() async throws {
        let tokens = Tokens()
        session.addStub(requestMatcher: { _ in true }) { request in
            MockResponse(
                statusCode: request.urlRequestValue.value(forHTTPHeaderField: "Authorization") == "Bearer new"
                    ? 200 : 401)
        }
        let authentication = Authentication(
            TokenSource({ .bearer(tokens.current) }) { rejected in .bearer(try await tokens.renew()) }
        )
        service.interceptors = [.retry(), authentication]
        try await service.GET("/me").empty().value
        #expect(session.recordedRequests.count == 2)
    }

    @Test("The cookie jar and the limits of a task apply to its request")
    func limits() async throws {
        service.cookieJar = CookieJar()
        service.GET("/archive").setTimeout(.seconds(5)).setDeadline(.seconds(60)).configure { request in
            request.options.maximumResponseBytes = .max
            request.options.redirectPolicy = .manual
        }.resume()
        await service.GET("/archive").finish()
        #expect(session.recordedRequests.contains { $0.timeoutInterval == 5 })
    }

    @Test("A service has a clock of the standard library")
    func clocks() {
        let service = WebService(
            baseURLString: "https://brewhapi.example.com/v1", clock: ContinuousClock())
        #expect(service.clock is ContinuousClock)
    }

    @Test("Several requests share the deadline of a scope")
    func scopes() async throws {
        let (brewers, orders) = try await service.withDeadline(.seconds(5)) {
            let brewers = try await service.GET("/brewers").decode([Brewer].self).value
            return (brewers, try await service.GET("/orders").json().value)
        }
        #expect(brewers == [Brewer(name: "Long Trail")])
        #expect(orders[0]?["name"]?.string == "Long Trail")
    }

    @Test("Identical requests are coalesced")
    func coalescing() async throws {
        service.interceptors = [.userAgent("brewery/2"), .coalescing()]
        service.interceptors = [.coalescing()]
        #expect(try await service.GET("/brewers").decode([Brewer].self).value == [Brewer(name: "Long Trail")])
    }

    @Test("Plain requests join and replace equal ones")
    func plainDuplicates() async throws {
        let text = "ale"
        let brewers = try await service.GET("/brewers").setDuplicates(.join).decode([Brewer].self).value
        let search = service.GET("/search").setQueryParameters(["q": text])
            .setDuplicates(.replace, key: "search")
        search.resume()
        #expect(brewers == [Brewer(name: "Long Trail")])
        #expect(try await search.data().value.isEmpty == false)
    }

    @Test("A typed request has options for one call, and is streamed")
    func typedOutputs() async throws {
        let list = try await service.perform(
            BrewersRequest(state: "vermont"),
            configuring: { request in
                request.options.attemptTimeout = .seconds(5)
                request.options.priority = .high
            }
        ).onProgress { print($0.bytesReceived) }.value
        #expect(list == [Brewer(name: "Long Trail")])
        let request = BrewersRequest(state: "vermont")
        let log = try await service.sessionTask(request: request).stream().value
        for try await chunk in log.body { print(chunk.count) }
        #expect(log.status == 200)
    }

    @Test("A cookie jar is read from a file, changed and written")
    func cookieFile() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("webservice-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("cookies.json")
        let jar = try CookieJar(contentsOf: file)
        jar.add(try Cookie(name: "locale", value: "en", domain: "api.example.com"))
        service.cookieJar = jar
        try jar.write(to: file)
        #expect(jar.cookies.map(\.name) == ["locale"])
        #expect(try CookieJar(contentsOf: file).cookies.isEmpty)
        try jar.write(to: file, includingSessionCookies: true)
        #expect(try CookieJar(contentsOf: file).cookies == jar.cookies)
    }

    @Test("Observers log, measure and archive the exchanges of a service")
    func observers() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
        let failures = FailureCounter(count: Counter())
        service.observers = [.log { print($0) }]
        service.observers.append(failures)
        _ = await service.GET("/{id}").data().result
        #expect(failures.count.value == 1)

        let archive = try ArchiveObserver(file: folder.appendingPathComponent("session.har"))
        service.observers = [
            .log(.warning) { entry in print(entry.level, entry.text) },
            .metrics { metrics in
                print(metrics.exchange[Feature.self], metrics.duration, metrics.status ?? 0)
            },
            archive,
        ]
        _ = try await service.GET("/brewers").data().value
        await archive.finish()
        // The last events may be delivered after the value.
        await eventually {
            let text = try? String(contentsOf: folder.appendingPathComponent("session.har"), encoding: .utf8)
            return text?.contains("https://brewhapi.example.com/v1/brewers") == true
        }

        let redaction = Redaction(secretNames: ["station-mark"], harmlessNames: ["ticket"])
        service.observers = [.log(.trace, redaction: redaction) { print($0) }]
        #expect(redaction.isSecret(header: "Station-Mark"))
    }

    @Test("A task provides a timeline, an HTTP archive and a redacted curl command")
    func seeing() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
        let task = service.GET("/brewers")
            .setHeaderValue("Bearer 123", forName: "Authorization").recordHandlers()
            .data()
        _ = try await task.value
        print(task.timeline)
        print(task.timeline.explain())
        try task.httpArchive().write(to: folder.appendingPathComponent("brewers.har"))
        print(task.request.curlDescription())
        #expect(!task.task.request.curlDescription().contains("123"))

        let jar = CookieJar()
        jar.store(["session=7; Path=/"], from: try #require(task.request.url))
        service.cookieJar = jar
        service.interceptors = [.headers(["X-App": "brewery"])]
        let order = service.POST("/orders").setJSON(["beer": "ale", "password": "canary"]).data()
        _ = await order.result
        let sent = try #require(session.receivedRequests.last)
        #expect(sent.headers["X-App"] == "brewery")
        #expect(sent.headers["Cookie"] == "session=7")
        let command = order.request.curlDescription()
        // The keys have no order.
        #expect(command.contains(#""beer":"ale""#))
        #expect(command.contains(#""password":"[redacted]""#))
        #expect(!command.contains("X-App"))
        #expect(!command.contains("Cookie"))
        let archive = try Data(contentsOf: folder.appendingPathComponent("brewers.har"))
        #expect(String(decoding: archive, as: UTF8.self).contains("https://brewhapi.example.com/v1/brewers"))
    }

    @Test("An error contains the problem document of its response")
    func errorBodies() async throws {
        var conflict = MockResponse(statusCode: 409, json: ["title": "Out of stock"])
        conflict.headers[.contentType] = "application/problem+json"
        session.addStub(conflict)
        do {
            try await service.POST("/orders").setJSON(["beer": "ale"]).empty().value
        } catch let error as WebServiceError where error.code == .unacceptableStatus {
            print(error.status ?? 0, error.problem?.title ?? "no problem document")
        }
        let again = await service.POST("/orders").empty().result
        let error = #expect(throws: WebServiceError.self) { try again.get() }
        #expect(error?.problem?.title == "Out of stock")
    }

    @Test("An inspector shows the exchanges of a service in a page on the loopback interface")
    func inspecting() async throws {
        session.addStub(MockResponse(statusCode: 200, json: ["brewers": [String]()]))
        let inspector = try Inspector(observing: service)
        print("Inspector: \(inspector.url)")

        _ = try await service.GET("/brewers").data().value
        let browser = WebService(baseURL: inspector.url)
        #expect(try await browser.GET("").string().value.contains("<title>Inspector</title>"))
        #expect(try await browser.GET("archive").string().value.contains("/brewers"))
        inspector.stop()
    }

    @Test("A task reports progress, and transport metrics only if the session measures them")
    func progress() async throws {
        session.addStub(MockResponse(statusCode: 200, data: Data([1])))
        let task = service.GET("/brewers").onProgress { progress in
            print("\(progress.bytesReceived) of \(progress.bytesToReceive ?? 0) bytes")
        }
        _ = try await task.data().value
        print(task.metrics.transport?.firstByte ?? .zero)
        #expect(task.metrics.transport == nil)
    }

    @Test("Streams, lines, values and parts are read as they arrive")
    func streams() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/log", MockResponse(statusCode: 200, data: Data("one\ntwo\n".utf8)))
        server.on(.GET, "/export", MockResponse(statusCode: 200, data: Data("{\"name\":\"Long Trail\"}\n".utf8)))
        var parts = MockResponse(statusCode: 200, data: Data("--x\r\n\r\nlabel\r\n--x--\r\n".utf8))
        parts.headers[.contentType] = "multipart/mixed; boundary=x"
        server.on(.GET, "/pictures", parts)
        let service = WebService(baseURLString: server.baseURLString)
        var (size, lines, brewers, pictures) = (0, [String](), [Brewer](), [Data]())

        let log = try await service.GET("/log").stream().value
        for try await chunk in log.body {
            size += chunk.count
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("export-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        let show: @Sendable (Double, Double, Double) -> Void = { _, _, _ in }
        let export = service.GET("/export").onProgress { progress in
            let seconds = progress.secondsRemaining ?? 0
            show(progress.fractionReceived ?? 0, progress.bytesPerSecond ?? 0, seconds)
        }.stream()
        let byteCount = try await export.value.body.write(to: file)
        #expect(byteCount == 22)
        for try await line in service.GET("/log").lines() {
            lines.append(line)
        }
        for try await brewer in service.GET("/export").jsonLines(Brewer.self) {
            brewers.append(brewer)
        }
        for try await part in service.GET("/pictures").parts() {
            pictures.append(part.data)
        }
        let mock = MockSession()
        let chunks = AsyncStream<Data> { continuation in
            continuation.yield(Data("one".utf8))
            continuation.finish()
        }
        mock.addStub(MockResponse(statusCode: 200, chunks: chunks))
        service.session = mock
        for try await line in service.GET("/log").lines() {
            #expect(line == "one")
        }
        #expect(size == 8)
        #expect(lines == ["one", "two"])
        #expect(brewers.map(\.name) == ["Long Trail"])
        #expect(pictures == [Data("label".utf8)])
    }

    @Test("Events are read until the last one, and a stream reconnects")
    func events() async throws {
        let server = try MockServer()
        defer { server.stop() }
        var events = MockResponse(statusCode: 200, data: Data("id: 1\ndata: open\n\n".utf8))
        events.headers[.contentType] = "text/event-stream"
        var tokens = events
        tokens.data = Data("data: {\"text\":\"A \"}\n\ndata: {\"text\":\"beer.\"}\n\ndata: [DONE]\n\n".utf8)
        server.on(.GET, "/news", events)
        server.on(.POST, "/chat", tokens)
        server.on(.GET, "/visits") { [events] in
            $0.headers["Last-Event-ID"] == "1" ? MockResponse(statusCode: 204) : events
        }
        let service = WebService(baseURLString: server.baseURLString)
        var (news, text, ids) = ([String](), "", [String]())
        struct Token: Decodable { var text: String }

        for try await event in service.GET("/news").events() {
            news.append(event.data)
        }
        let chat = service.POST("/chat").setJSON(["prompt": "Describe an ale."])
        for try await token in chat.events(Token.self, until: "[DONE]") {
            text += token.text
        }
        let visits = service.GET("/visits").events(.reconnecting(baseDelay: .milliseconds(10)))
        for try await visit in visits {
            ids.append(visit.id)
        }
        #expect(news == ["open"])
        #expect(text == "A beer.")
        #expect(ids == ["1"])

        (ids, service.session) = ([], MockSession())
        let (isLoggedOut, mock) = (false, service.session as? MockSession)
        mock?.on(.GET, "/visits", [events, MockResponse(statusCode: 204)])
        var savedID = "0"
        let feed = service.GET("/visits")
            .events(
                .reconnecting(when: { error, isTransient in isTransient && !isLoggedOut }),
                lastEventID: savedID
            )
            .onOpen { response in print("connected:", response.header("Server") ?? "") }
            .onComment { text in print("the server is alive:", text) }
        for try await visit in feed {
            ids.append(visit.id)
        }
        savedID = feed.lastEventID
        #expect(ids == ["1"])
        #expect(savedID == "1")
        #expect(mock?.receivedRequests.map { $0.headers["Last-Event-ID"] } == ["0", "1"])
    }

    @Test("Files and sequences are uploaded")
    func uploads() async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 200) }
        defer { server.stop() }
        let video = FileManager.default.temporaryDirectory.appendingPathComponent("video-\(UUID().uuidString)")
        try Data("frames".utf8).write(to: video)
        defer { try? FileManager.default.removeItem(at: video) }
        struct Sensor: Sendable {
            func readings() -> AsyncStream<Data> {
                AsyncStream { continuation in
                    continuation.yield(Data("5".utf8))
                    continuation.finish()
                }
            }
        }
        let (sensor, lines) = (Sensor(), Sensor().readings())
        let service = WebService(baseURLString: server.baseURLString)

        service.PUT("/videos/7").setBody(file: video, contentType: "video/mp4")
            .onProgress { print($0.fractionSent ?? 0) }
            .resume()
        _ = try await service.POST("/readings")
            .setBody(.stream(length: nil) { sensor.readings() }).data().value
        _ = try await service.POST("/log")
            .setBody(.stream(lines, contentType: "text/plain")).data().value
        service.PUT("/videos/8").setBody(file: video)
            .configure { $0.options.expectsContinue = .seconds(1) }
            .resume()
        let log = video
        service.PUT("/log/9").setBody(file: log, contentType: "text/plain")
            .configure { $0.options.compressesBody = true }
            .resume()
        while server.receivedRequests.count < 5 { await Task.yield() }
        let (compressed, plain) = (
            server.receivedRequests.filter { $0.headers["Content-Encoding"] == "gzip" },
            server.receivedRequests.filter { $0.headers["Content-Encoding"] == nil }
        )
        #expect(compressed.map(\.path) == ["/log/9"])
        let bodies = plain.map { $0.path + " " + String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.sorted() == ["/log 5", "/readings 5", "/videos/7 frames", "/videos/8 frames"])
    }

    #if WEBSERVICE_CURL
    @Test("A file is downloaded, with a checksum and with progress")
    func downloads() async throws {
        let server = try MockServer { request in
            MockResponse(file: Data("ale".utf8), eTag: "\"1\"", for: request)
        }
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("webservice-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let destination = folder.appendingPathComponent("ale.iso")
        let hash = "5c85bb36f3869809fb738a3ba6f990aedbfeca3df2dc1a997fa49c50d0eed8e6"
        var shown: [Double] = []
        func show(_ fraction: Double, _ rate: Double, _ seconds: Double) { shown.append(fraction) }
        do {
            let file = try await service.GET("/brew.iso")
                .download(to: destination, checksum: .sha256(hash)).value
            print("\(file.byteCount) bytes, \(file.resumedFrom) of them from an earlier download")
            #expect(try Data(contentsOf: destination) == Data("ale".utf8))
        }
        do {
            let copy = try await service.GET("/brew.iso")
                .download(to: destination, existing: .addNumber).value
            print(copy.url.lastPathComponent)
            #expect(copy.url.lastPathComponent == "ale (1).iso")
        }
        do {
            let poster = folder.appendingPathComponent("posters/2026/ale.png")
            _ = try await service.GET("/ale.png").download(to: poster, createsFolders: true).value
            #expect(try Data(contentsOf: poster) == Data("ale".utf8))
        }
        do {
            let monthAgo = Date(timeIntervalSinceNow: -30 * 86_400)
            for partial in try await DownloadedFile.Partial.list(in: folder)
            where !partial.isInProgress && partial.lastChange < monthAgo {
                try await partial.remove()
            }
        }
        do {
            service.interceptors = [.retry(maximumAttempts: 5)]
            let task = service.GET("/brew.iso")
                .download(into: folder, connections: 4, bytesPerSecond: 10_000_000)
            for await progress in task.resume().progress {
                let seconds = progress.secondsRemaining ?? 0
                show(progress.fractionReceived ?? 0, progress.bytesPerSecond ?? 0, seconds)
            }
            let file = try await task.value
            #expect(file.url.lastPathComponent == "brew.iso")
            #expect(try Data(contentsOf: file.url) == Data("ale".utf8))
        }
        #expect(shown.last ?? 1 == 1)
        do {
            let queue = TaskQueue(maximumInFlight: 3)
            let files = ["/ale.iso", "/bock.iso"].map { queue.add(service.GET($0).download(into: folder)) }
            let urgent = queue.add(service.GET("/stout.iso").download(into: folder), priority: .high)
            queue.setPriority(.high, of: files[1])
            print(try await urgent.value.url.lastPathComponent)
            for file in files { #expect(try await file.value.byteCount == 3) }
            withExtendedLifetime(queue) {}
        }
    }

    @Test("The default session cannot be set after a service was created")
    func defaultSession() {
        let error = #expect(throws: WebServiceError.self) {
            try WebService.setDefaultSession(CurlSession())
        }
        #expect(error?.code == .defaultSessionInUse)
    }

    @Test("The fields of the program are removed by the configuration of a session")
    func programFields() async throws {
        var configuration = CurlSession.Configuration()
        (configuration.userAgent, configuration.acceptLanguage) = (nil, nil)
        let anonymous = try CurlSession(configuration: configuration)
        let plain = FoundationSession.defaultConfiguration
        plain.httpAdditionalHeaders = nil
        anonymous.close()
    }

    @Test("A configured CurlSession sends requests until it is closed")
    func transport() async throws {
        var configuration = CurlSession.Configuration()
        configuration.maximumConnectionsPerHost = 32
        configuration.connectTimeout = .seconds(5)
        configuration.tls.minimumVersion = .tls13
        configuration.proxy = .none
        let session = try CurlSession(configuration: configuration)
        service.session = session
        let server = try MockServer { _ in MockResponse(statusCode: 200, data: Data("x".utf8)) }
        defer { server.stop() }
        #expect(try await service.GET(server.baseURLString).string().value == "x")
        session.close()
        #expect((await service.GET("/").data().result.failure as? WebServiceError)?.code == .sessionClosed)
        service.session = self.session
    }

    @Test("A Swift task on the executor of a session receives a response")
    func executor() async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 200, data: Data("x".utf8)) }
        defer { server.stop() }
        let session = try CurlSession()
        let service = WebService(baseURLString: server.baseURLString)
        service.session = session
        let data = try await Task(executorPreference: session.executor) {
            try await service.GET("/beers").data().value
        }.value
        #expect(data == Data("x".utf8))
        session.close()
    }

    @Test("Certificates of a CurlSession are configured for all hosts and for single ones")
    func certificates() throws {
        var configuration = CurlSession.Configuration()
        let companyCertificates = Data("company".utf8)
        let pins = ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
        let pkcs12 = Data("p12".utf8)
        let password = "secret"
        configuration.tls.trustedCertificates = companyCertificates
        configuration.tls.includesSystemCertificates = true
        var pay = configuration.tls
        pay.pinnedPublicKeys = pins
        pay.clientCertificate = .init(certificate: pkcs12, keyPassword: password)
        configuration.hostTLS["pay.example.com"] = pay
        #expect(configuration.hostTLS["pay.example.com"]?.trustedCertificates == companyCertificates)
        let error = #expect(throws: WebServiceError.self) { try CurlSession(configuration: configuration) }
        #expect(error?.message.contains("PEM, DER or PKCS #12") == true)
    }

    @Test("Proxies and addresses are selected by closures")
    func routes() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/", .text("ale"))
        let (proxyURL, password) = ("http://127.0.0.1:1", "secret")
        let registry = Registry()
        var configuration = CurlSession.Configuration()
        configuration.proxy = .perRequest { url in
            url.host == "localhost"
                ? .none : .authenticated(url: proxyURL, user: "ann", password: password)
        }
        configuration.resolver = { host, port in try await registry.addresses(of: host) }
        let service = WebService(baseURLString: "http://localhost:\(server.port)")
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("/").string().value == "ale")
        #expect(
            (await service.GET("http://127.0.0.2/").data().result.failure as? URLError)?.code == .cannotConnectToHost)
    }

    private struct Registry {
        func addresses(of host: String) async throws -> [String]? { ["127.0.0.1"] }
    }

    @Test("Addresses, HTTP version, rate and socket of a CurlSession are configured")
    func addresses() async throws {
        var configuration = CurlSession.Configuration()
        configuration.addresses = ["api.example.com:443": ["192.0.2.1", "2001:db8::1"]]
        configuration.httpVersion = .priorKnowledge
        configuration.maximumBytesPerSecondReceived = 1_000_000
        configuration.unixSocketPath = "/run/brewery.sock"
        configuration.unixSocketPath = "/run/\(UUID().uuidString)"
        service.session = try CurlSession(configuration: configuration)
        let error = await service.GET("http://localhost/").data().result.failure
        #expect((error as? URLError)?.code == .cannotConnectToHost)
        if let mismatch = (error as? URLError)?.pinnedKeyMismatch {
            print("the server presented \(mismatch.presented ?? "an unknown key")")
        }
        service.session = self.session
    }

    @Test("HTTP/3 is selected if libcurl supports it")
    func http3() async throws {
        var configuration = CurlSession.Configuration()
        if CurlSession.library.supportsHTTP3 { configuration.httpVersion = .http3 }
        #expect((configuration.httpVersion == .http3) == CurlSession.library.supportsHTTP3)
        _ = try CurlSession(configuration: configuration)
    }
    #endif

    @Test("A mock server produces a fault, and a session passes scenarios")
    func faults() async throws {
        let server = try MockServer()
        defer { server.stop() }
        var response = MockResponse(statusCode: 200, json: [["name": "Long Trail"]])
        response.wire = .cut(after: 80)
        server.on(.GET, "/brewers", response)
        let service = WebService(baseURLString: server.baseURLString)
        #expect(await service.GET("/brewers").data().result.failure is URLError)
        for scenario in SessionScenario.all.prefix(5) {
            try await scenario.run(over: FoundationSession.shared)
        }
    }

    @Test("A service uses a configured session or a custom one")
    func sessions() async throws {
        let configuration = FoundationSession.defaultConfiguration
        configuration.httpMaximumConnectionsPerHost = 16
        service.session = FoundationSession(configuration: configuration)
        #expect(service.session is FoundationSession)

        service.session = TaggingSession(inner: session)
        #expect(try await sent(service.GET("/brewers")).value(forHTTPHeaderField: "X-Channel") == "beta")
    }

    @Test("A delegate can reject a response")
    func delegates() async {
        let check = StatusCheck()
        self.service.passthroughDelegate = check
        session.addStub(MockResponse(statusCode: 500))
        let failures = Mutex<[String]>([])
        await self.service.GET("/brewers").responseError { error in failures.withLock { $0.append("\(error)") } }
            .finish()
        #expect(failures.withLock { $0 } == ["unexpectedResponse"])
        withExtendedLifetime(check) {}
    }

    @Test(
        "The delegate of the data source is the default, and a delegate of a service takes its place")
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

    @Test("An invalid request results in a typed error")
    func errors() async {
        service.GET("../admin").responseError { error in
            guard let error = error as? WebServiceError else { return }
            // true invalidURL: the path leads above the base URL; remove '..'
            print(error.code == .invalidURL, error)
        }
        .resume()
        let texts = Mutex<[String]>([])
        await service.GET("../admin").responseError { error in texts.withLock { $0.append("\(error)") } }.finish()
        #expect(texts.withLock { $0 } == ["invalidURL: the path leads above the base URL; remove '..'"])
    }

    @Test("A typed request is handled by an endpoint that supports it")
    func typedRequests() async throws {
        let brewers = try await service.perform(BrewersRequest(state: "vermont")).value
        #expect(brewers == [Brewer(name: "Long Trail")])
        #expect(
            session.recordedRequests.last?.url?.absoluteString
                == "https://brewhapi.example.com/v1/brewers?state=vermont")

        service.perform(BrewersRequest(state: "vermont"), duplicates: .reject) { response in
            switch response {
            case .data(let brewers): print(brewers.map(\.name))
            case .error(let error): print("I AM ERROR: \(error)")
            case .canceledRequest(let duplicate): print(duplicate ? "a duplicate" : "cancelled")
            }
        }

        service.endpoints = [MenuEndpoint(menus: ["friday": "soup"]), HTTPEndpoint()]
        #expect(try await service.perform(FridayMenu()).value == "soup")
        _ = try await service.perform(BrewersRequest(state: "vermont")).value
    }

    @Test("Everything in flight can be listed and cancelled")
    func inFlight() async throws {
        let mock = MockService()
        mock.on(.GET, "/x", .status(200).after(.seconds(3600)))
        let service = mock.service
        let lines = Collected<String>()
        func print(_ line: String) { lines.add(line) }
        let task = service.GET("/x").data().resume()

        for exchange in service.exchanges {
            let bytes = exchange.progress?.bytesReceived ?? 0
            print("\(exchange.kind) \(exchange.request?.url?.path ?? ""): \(bytes) bytes")
        }
        service.cancelAll { $0.kind == .download }
        for await exchanges in service.exchangeUpdates {
            print("\(exchanges.count) in flight")
            break
        }
        service.cancelAll()
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        #expect(lines.values == ["request /x: 0 bytes", "1 in flight"])
    }

    @Test("Requests in progress can be found, cancelled and counted")
    func underWay() async throws {
        service.endpoints = [MockRequestEndpoint(delay: .seconds(1_000)) { (_: BrewersRequest) in [] }]
        let key = ScreenKey(name: "list")
        let task = service.perform(BrewersRequest(state: "vermont"), key: key).resume()
        print(service.containsRequest(BrewersRequest(state: "vermont")))  // true
        print(service.containsRequest(type: BrewersRequest.self))  // true
        service.cancelRequests(keyType: ScreenKey.self)
        #expect(await task.serviceResponse.isCanceled)
        #expect(!service.containsRequests())

        service.activity = ActivityCounter()
        for await count in service.activity.counts {
            print("\(count) in flight")
            break
        }
    }

    @Test("Providers perform typed requests")
    func providers() async throws {
        let provider = service.createProvider(BreweryProvider.self)
        let list: RequestProvider<BrewersRequest> = service.createProvider()
        #expect(try await provider.brewers(in: "vermont").value == [Brewer(name: "Long Trail")])
        #expect(try await list.perform(.init(state: "vermont")).value == [Brewer(name: "Long Trail")])

        let lists: GroupProvider<Lists> = service.createProvider()
        let brewers = try await lists.perform(BrewersRequest(state: "vermont")).value
        #expect(brewers == [Brewer(name: "Long Trail")])
    }

    @Test("Stored responses can be read and deleted")
    func storedAnswers() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("guide-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }  // a leftover in the temporary folder
        service.storages = [try FileStorage(folder: folder)]
        #if WEBSERVICE_SQLITE
        service.storages = [
            MemoryStorage(classifications: [.temporary]),
            try SQLiteStorage(
                file: folder.appendingPathComponent("user.sqlite"), classifications: [.user]),
            try FileStorage(folder: folder.appendingPathComponent("responses")),
        ]
        service.storageErrorObserver = { failure in
            print("\(failure.operation) failed: \(failure.error)")
        }
        #endif

        let request = BrewersRequest(state: "vermont")
        let task = service.perform(request)
        service.stored(request, maximumAge: .seconds(3_600), .untilFinished(task)) { response in
            if let stored = response.data {
                print(stored.value.map(\.name), "\(stored.age ?? .zero) old")
            }
        }
        task.updateUI { brewers in print(brewers.map(\.name)) }.resume()

        _ = try await task.value
        #expect(try await service.stored(request).value.value == [Brewer(name: "Long Trail")])
        try await service.deleteStored(request)
        try await service.deleteStored(.user)
        try await service.deleteStoredInAnyClassification()
        try await service.deleteAllStored()
        await service.finishStoring()
        #expect((await service.stored(request).serviceResponse.error as? WebServiceError)?.code == .noStoredData)
    }

    @Test("A request can be formed from its parameters, and a body from its parts")
    func parametersAndParts() async throws {
        _ = try await service.perform(OrdersRequest(skip: 40)).value
        #expect(
            session.recordedRequests.last?.url?.absoluteString
                == "https://brewhapi.example.com/v1/orders?skip=40&take=20")

        let menu = FileManager.default.temporaryDirectory.appendingPathComponent("menu-\(UUID()).pdf")
        try Data("soup".utf8).write(to: menu)
        defer { try? FileManager.default.removeItem(at: menu) }  // a leftover in the temporary folder
        struct Sensor: Sendable {
            func readings() -> AsyncStream<Data> {
                AsyncStream { continuation in
                    continuation.yield(Data("5".utf8))
                    continuation.finish()
                }
            }
        }
        let sensor = Sensor()
        var form = MultipartFormData()
        form.append("Long Trail", name: "name")
        form.append(Data([0x89, 0x50]), name: "label", fileName: "label.png", contentType: "image/png")
        form.append(file: menu, name: "menu", contentType: "application/pdf")
        form.append(.json(Brewer(name: "Long Trail")), name: "brewer")
        form.append(.stream(length: nil) { sensor.readings() }, name: "log", fileName: "log.csv")
        service.POST("/brewers/7/documents").setMultipart(form).resume()
        await service.POST("/brewers/7/documents").setMultipart(form).finish()
        #expect(session.recordedRequests.last?.value(forHTTPHeaderField: "Content-Type") == form.contentType)
    }

    @Test("A cache policy delivers stored values, responses or both")
    func cachePolicies() async throws {
        service.storages = [MemoryStorage()]
        service.perform(BrewersRequest(state: "vermont"), fetchPolicy: .cacheThenServer)
            .updateCacheUI { stored in print(stored.value.map(\.name), "\(stored.age ?? .zero) old") }
            .updateUI { brewers in print(brewers.map(\.name)) }
            .updateErrorUI { error in print("I AM ERROR: \(error)") }
            .resume()

        var count = 0
        let brewersTask = service.perform(
            BrewersRequest(state: "vermont"), fetchPolicy: .cacheThenServer)
        for try await brewers in brewersTask.values {
            print(brewers.value.map(\.name), brewers.source, brewers.age ?? .zero)
        }
        for try await _ in service.perform(BrewersRequest(state: "vermont"), fetchPolicy: .cacheOnly).values {
            count += 1
        }
        #expect(count == 1)
    }

    @Test("An HTTP cache serves a stored response")
    func httpCache() async throws {
        let cache = ResponseCache(storage: MemoryStorage(), account: { "user-7" })
        service.interceptors = [.retry(), cache]
        let task = service.GET("/brewers").decode([Brewer].self)
        print(
            try await task.value, try await task.response.source, try await task.response.age ?? .zero)
        #expect(session.recordedRequests.count == 1)
        await cache.finishStoring()
        let again = service.GET("/brewers").configure { $0.options.cachePolicy = .returnCacheDataDontLoad }.decode(
            [Brewer].self)
        #expect(try await again.value == [Brewer(name: "Long Trail")])
        #expect(try await again.response.source == .cache)

        print(cache.statistics.hits, cache.statistics.revalidations, cache.statistics.misses)
        for try await entry in cache.entries {
            print(entry.url, entry.vary, entry.freshUntil ?? .distantPast, entry.byteCount)
        }

        #expect(cache.statistics.hits == 1)
        #expect(cache.statistics.misses == 1)
    }

    @Test("A paginator delivers pages by offset and continues from a saved state")
    func pages() async throws {
        session.removeAllStubs()
        session.addStub { request in
            let items = URLComponents(string: request.urlRequestValue.url?.absoluteString ?? "")?.queryItems ?? []
            let offset = items.first { $0.name == "offset" }?.value.flatMap(Int.init) ?? 0
            return MockResponse(statusCode: 200, json: (offset..<min(offset + 20, 45)).map { ["name": "\($0)"] })
        }
        let brewers = Paginator.offset(itemsPerPage: 20, end: .shortPage) { offset, limit in
            service.GET("/brewers")
                .setQueryParameters(["offset": offset, "limit": limit]).decode([Brewer].self)
        }
        for try await brewer in brewers.items() { print(brewer.name) }
        #expect(brewers.state.itemCount == 45)

        brewers.reset(to: 20)
        let second = try await brewers.moveNext()
        let saved = try JSONEncoder().encode(brewers.state)
        brewers.reset()
        while let page = try await brewers.moveNext() {
            print(page.items.count, brewers.canMoveNext)
        }
        let state = try JSONDecoder().decode(Paginator<Brewer, Int>.State.self, from: saved)
        brewers.reset(to: state)  // the third page is next
        #expect(second?.items.first?.name == "20")
        #expect(try await brewers.moveNext()?.items.first?.name == "40")
    }

    @Test("Paginators follow cursors and links, and accept typed requests")
    func pagesByCursor() async throws {
        session.removeAllStubs()
        session.addStub { request in
            let url = request.urlRequestValue.url?.absoluteString ?? ""
            if url.hasSuffix("labels") {
                var labels = MockResponse(statusCode: 200, json: ["red"])
                labels.headers["Link"] = "<?page=2>; rel=next"
                return labels
            } else if url.hasSuffix("labels?page=2") {
                return MockResponse(statusCode: 200, json: ["blue"])
            }
            let isFirst = !url.hasSuffix("cursor=b")
            return MockResponse(
                statusCode: 200, json: ["visits": [isFirst ? "one" : "two"], "next": isFirst ? "b" : nil])
        }
        let byCursor = Paginator.cursor { cursor in
            service.GET("/visits").setQueryParameters(["cursor": cursor]).decode(Visits.self).map {
                Page($0.visits, next: $0.next)
            }
        }
        let byLink = Paginator.links(from: service.request(.GET, path: "/labels")) { request in
            service.sessionTask(request: request).decode([String].self)
        }
        var items: [String] = []
        for try await item in byCursor.items() { items.append(item) }
        for try await item in byLink.items() { items.append(item) }
        #expect(items == ["one", "two", "red", "blue"])

        for try await visit in service.pages(of: VisitsRequest()).items(prefetch: true) { print(visit) }
        #expect(session.recordedRequests.suffix(2).map(\.url?.query) == [nil, "cursor=b"])
    }

    @Test("An error mapper creates custom errors, and the owner of a passive task completes it")
    func ownErrors() async throws {
        session.addStub(MockResponse(statusCode: 400, json: ["error": "locked"])) {
            $0.urlRequestValue.url?.path.contains("login") == true
        }
        service.errorMapper = .decoding(LoginError.self, statuses: 400...499)
        let error = await #expect(throws: LoginError.self) { try await service.POST("/login").empty().value }
        #expect(error?.error == "locked")

        let login = PassiveTask<String>()
        login.task.onSuccess { token in print(token) }
        login.complete("token")
        #expect(try await login.task.value == "token")
    }

    @Test("Mock endpoints respond to typed requests")
    func mockEndpoints() async throws {
        service.endpoints = [MockEndpoint(), HTTPEndpoint()]
        let page = try await service.perform(PageRequest(site: "vermont")).value
        #expect(page == "<html>vermont</html>")

        service.endpoints = [
            MockRequestEndpoint { (request: BrewersRequest) in
                [Brewer(name: "mock of \(request.state)")]
            }
        ]
        #expect(try await service.perform(BrewersRequest(state: "vermont")).value == [Brewer(name: "mock of vermont")])
    }

    @Test("A mock session responds with the stubs that match")
    func stubs() async throws {
        let session = MockSession()
        session.on(.GET, "/v1/brewers", .json([Brewer(name: "Long Trail")]))
        session.on(.GET, "/v1/brewers/{name}") { request in
            .json(Brewer(name: request.pathParameters["name"] ?? ""))
        }
        service.session = session

        let names = try await service.GET("/brewers").decode([Brewer].self).value.map(\.name)
        #expect(names == ["Long Trail"])
        #expect(try await service.GET("/brewers/Ale").decode(Brewer.self).value.name == "Ale")

        session.on(
            .path("/v1/brewers") && .query("state", "vermont"), .json([Brewer(name: "Hill Farmstead")]))
        session.on(.method(.POST) && .json(["name": "Trillium"]), .status(201))
        session.on(
            .form(["user": "ann"]) && !.header("Authorization"), .problem(401, title: "Please log in"))
        session.on(.where("a large body") { $0.body.count > 1_000_000 }, .status(413))

        func status(_ task: ServiceTask) async throws -> Int {
            try await task.data().validateNothing().response.status
        }
        let vermont = service.GET("/brewers").setQueryParameters(["state": "vermont"])
        #expect(try await vermont.decode([Brewer].self).value == [Brewer(name: "Hill Farmstead")])
        #expect(try await status(service.POST("/brewers").setJSON(["name": "Trillium", "city": "Boston"])) == 201)
        #expect(try await status(service.POST("/login").setFormParameters(["user": "ann"])) == 401)
        #expect(try await status(service.PUT("/photo").setBody(Data(count: 1_000_001))) == 413)

        session.on(.GET, "/v1/label", [503, 503, .json(["color": "red"])])
        session.on(.GET, "/v1/slow", .text("late").after(.milliseconds(20)))
        session.on(.GET, "/v1/offline", .error(URLError(.notConnectedToInternet)))
        session.on(.DELETE, "/v1/brewers/*", 204).times(1)

        var statuses: [Int] = []
        for _ in 0..<4 { statuses.append(try await status(service.GET("/label"))) }
        #expect(statuses == [503, 503, 200, 200])
        #expect(try await service.GET("/slow").string().value == "late")
        #expect((await service.GET("/offline").data().result.failure as? URLError)?.code == .notConnectedToInternet)
        #expect(try await status(service.DELETE("/brewers/7")) == 204)

        session.on(.GET, "/v1/motd", .text("cheers")).optional()
        try session.verify()

        #expect((await service.DELETE("/brewers/7").data().result.failure as? WebServiceError)?.code == .noStub)
        #expect(throws: VerificationError.self) { try session.verify() }
    }

    @Test("A matcher lists the differences from a recorded request")
    func recordedRequests() async throws {
        session.on(.POST, "/v1/orders", 201)
        let task = service.POST("/orders?rush=1").setJSON(["brewer": "Long Trail", "kegs": 2, "note": "cold"])
        _ = try await task.data().value
        let order = try #require(session.receivedRequests.first)
        #expect(order.method == .POST)
        #expect(order.queryItems.map(\.name) == ["rush"])
        #expect(RequestMatcher.json(["brewer": "Long Trail", "kegs": 2]).mismatches(in: order) == [])
    }

    @Test(.mockService) func brewersOfAState() async throws {
        let mock = try MockService.current
        mock.on(
            .path("/brewers") && .query("state", "vermont"), .json([Brewer(name: "Long Trail")]))
        let client = BreweryClient(webService: mock.service)
        let brewers = try await client.brewers(inState: "vermont").value
        #expect(brewers == [Brewer(name: "Long Trail")])
    }

    @Test("The stubs of ELWebService match by a closure")
    func closureStubs() async throws {
        let session = MockSession()
        service.session = session
        session.addStub(MockResponse(statusCode: 200, json: ["brewers": [["name": "Long Trail"]]]))
        session.stub(MockResponse(statusCode: 404)) { request in
            request.urlRequestValue.url?.path.contains("/nobody") == true
        }
        session.addStub(requestMatcher: { $0.urlRequestValue.httpMethod == "POST" }) { request in
            MockResponse(statusCode: 201, data: request.urlRequestValue.httpBody ?? Data())
        }
        session.addStub(URLError(.notConnectedToInternet)) {
            $0.urlRequestValue.url?.path == "/v1/offline"
        }

        let seen = Mutex<[String]>([])
        for task in [
            service.GET("/x"), service.GET("/nobody"), service.POST("/x").setBody(Data([1])), service.GET("/offline"),
        ] {
            await task
                .response { data, response in
                    seen.withLock {
                        $0.append("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(data?.count ?? 0)")
                    }
                }
                .responseError { error in seen.withLock { $0.append("\((error as? URLError)?.code.rawValue ?? 0)") } }
                .finish()
        }
        #expect(seen.withLock { $0 } == ["200 35", "404 0", "201 1", "-1009"])
    }

    @Test("A test clock drives retries")
    func testClocks() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.service.interceptors = [RetryPolicy(maximumAttempts: 100, budget: .seconds(30))]
        mock.on(.GET, "/brewers", .status(503))
        let task = mock.service.GET("/brewers").data().resume()
        await clock.advance(by: .seconds(30))
        await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(mock.receivedRequests.count > 3)
    }

    @Test("A test clock waits for tasks on its executor")
    func executorOfTestClocks() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.GET, "/brewers", .text("late").after(.seconds(20)))
        let text = Task(executorPreference: clock.executor) {
            try await mock.service.GET("/brewers").string().value
        }
        await clock.advance(by: .seconds(20))
        #expect(try await text.value == "late")
    }

    @Test("A mock server causes faults")
    func serverFaults() async throws {
        let server = try MockServer()
        defer { server.stop() }
        var response = MockResponse(statusCode: 200, json: [["name": "Long Trail"]])
        response.wire = .cut(after: 80)
        server.on(.GET, "/brewers", response)
        server.onConnect([.disconnect, nil, .disconnectInBody(after: 1_000)])
        #if WEBSERVICE_CURL  // Foundation terminates the process if a connection is closed within the head
        let service = WebService(baseURLString: server.baseURLString)
        service.session = try CurlSession()
        for task in [service.GET("/brewers"), service.GET("/brewers"), service.POST("/").setBody(Data(count: 9_000))] {
            #expect(await task.data().result.failure is URLError)
        }
        #endif
    }

    @Test("A cassette records once and replays")
    func cassetteFiles() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("guide-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        let file = folder.appendingPathComponent("brewers.json")
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
        let service = WebService(baseURLString: server.baseURLString)
        let key = "canary"
        for _ in 0..<2 {
            let cassette = try CassetteSession(file: file, mode: .once, session: FoundationSession.shared)
            service.session = cassette
            let brewers = try await service.GET("/brewers?api_key=\(key)").decode([Brewer].self).value
            try cassette.finish()
            #expect(brewers == [Brewer(name: "Long Trail")])
        }
        #expect(server.receivedRequests.count == 1)
        #expect(try !String(contentsOf: file, encoding: .utf8).contains(key))
    }

    @Test("A mock server responds from its stubs and records the requests")
    func mockServers() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
        server.on(.POST, "/brewers") { request in .status(request.body.isEmpty ? 400 : 201) }
        let service = WebService(baseURLString: server.baseURLString)

        await service.GET("/brewers").finish()
        await service.POST("/brewers").finish()
        #expect(server.receivedRequests.map(\.method) == [.GET, .POST])
    }
}

#if canImport(XCTest)
/// The snippet for XCTest.
final class BreweryCases: XCTestCase {
    func testBrewersOfAState() async throws {
        try await withMockService { mock in
            mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
            let client = BreweryClient(webService: mock.service)
            let brewers = try await client.brewers(inState: "vermont").value
            XCTAssertEqual(brewers.count, 1)
        }
    }
}
#endif

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
