import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceFields
import WebServiceMocking
import WebServiceResilience
import WebServiceStorage

// Snippets about standards of HTTP in Cookbook.md and the articles, with their expected behavior.
// `DocumentationTests` verifies that none is missing.

@Suite("Snippets about standards", .permit)
struct StandardsSnippets {
    private let clock = TestClock()
    private let mock: MockService
    private var service: WebService { mock.service }

    init() { mock = MockService(clock: clock) }

    private func folder() throws -> URL { TemporaryFolder.forTest().url }

    @Test("A stored value is dropped with its group")
    func groups() async throws {
        let folder = try folder()
        mock.on(
            .GET, "/brewers",
            MockResponse(
                statusCode: 200, headers: ["Cache-Groups": #""brewers""#, "Cache-Control": "max-age=60"],
                data: Data("[]".utf8)))
        let files = try FileStorage(folder: folder.appendingPathComponent("cache"))
        let cache = ResponseCache(storage: files)
        service.interceptors = [cache]
        service.storages = [
            GroupedStorage(try FileStorage(folder: folder.appendingPathComponent("values")), of: cache)
        ]
        _ = try await service.perform(BrewersRequest(state: "vermont")).value
        _ = try await service.stored(BrewersRequest(state: "vermont")).value
        try await cache.invalidate(group: "brewers", for: try service.absoluteURL("/"))
        let error = await #expect(throws: WebServiceError.self) {
            try await service.stored(BrewersRequest(state: "vermont")).value
        }
        #expect(error?.code == .noStoredData)
    }

    @Test("A storage with groups is created over another")
    func storages() async throws {
        let (folder, url) = (try folder(), try service.absoluteURL("/"))
        let cache = ResponseCache(storage: MemoryStorage())
        service.storages = [GroupedStorage(try FileStorage(folder: folder), of: cache)]
        try await cache.invalidate(group: "brewers", for: url)  // any URL of the origin
        #expect(service.storages.count == 1)
    }

    @Test("Requests wait while the server permits none")
    func limits() async throws {
        mock.on(.any, MockResponse(statusCode: 200, headers: ["RateLimit": #""a";r=0;t=30"#], data: Data()))
        service.interceptors = [.retry(), .serverRateLimit()]
        _ = try await service.GET("/brewers").data().value
        let second = service.GET("/brewers").data().resume()
        await clock.advance(by: .seconds(29))
        #expect(mock.receivedRequests.count == 1)
        await clock.advance(by: .seconds(1))
        _ = try await second.value
    }

    @Test("The queries that a server accepts are read, and a body has a digest")
    func fields() async throws {
        mock.on(.any, MockResponse(statusCode: 200, headers: ["Accept-Query": "application/sql"], data: Data()))
        let printed = Counter()
        func print(_ text: String) { printed.increment() }
        let options = try await service.OPTIONS("/brewers").data().response
        if options.headers.acceptQuery?.contains(where: { $0.includes("application/sql") }) == true {
            print("send a query in SQL")
        }
        #expect(printed.value == 1)
        service.interceptors = [.contentDigest(), .retry()]
        _ = try await service.POST("/brewers").setBody(.data(Data())).data().value
        #expect(mock.receivedRequests.last?.headers["Content-Digest"]?.hasPrefix("sha-256=:") == true)
    }
}
