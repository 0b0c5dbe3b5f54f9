import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServicePagination
import WebServiceServer
import WebServiceStorage

// The examples in the documentation of CoreNetKit, in the same order, with this framework.

private struct Order: Codable, Equatable, Sendable {
    var id: Int
}

/// A request with parameters, custom decoding of the response, and a storage.
private struct GetOrderListRequest: ParameterizedRequest, ValueStorableRequest, Hashable {
    var skipOrdersCount: Int
    var ordersPerPage: Int
    typealias Output = [Order]

    var path: String { "/orders" }
    var parameters: Parameters { ["skip": skipOrdersCount, "take": ordersPerPage] }
    var storageIdentifier: String? { "orders/\(skipOrdersCount)/\(ordersPerPage)" }

    func decode(_ response: Response) throws -> [Order] {
        struct Page: Decodable { var items: [Order]? }
        return try JSONDecoder().decode(Page.self, from: response.data).items ?? []
    }
}

private enum AuthorizationError: Error, Equatable {
    case invalidCode
}

/// Maps an error body to an error of the domain.
private struct AuthorizationErrorMapper: ErrorMapper {
    func error(for response: Response) -> (any Error)? {
        struct Body: Decodable { var error: String }
        // Any other body results in another error.
        let body = try? JSONDecoder().decode(Body.self, from: response.data)
        return body?.error == "invalid_grant" ? AuthorizationError.invalidCode : nil
    }
}

/// A custom cache.
private final class OwnCache: ResponseStorage {
    let memory = MemoryStorage()

    func entry(for key: StorageKey) async throws -> StorageEntry? { memory.entry(for: key) }
    func store(_ entry: StorageEntry, for key: StorageKey) async throws { try memory.store(entry, for: key) }
    func removeEntry(for key: StorageKey) async throws { memory.removeEntry(for: key) }
    func removeAll() async throws { memory.removeAll() }
}

/// A service whose methods return tasks.
private struct OrderService {
    let service: WebService

    func orders(_ policy: FetchPolicy = .serverOnly) -> TypedTask<[Order]> {
        service.perform(GetOrderListRequest(skipOrdersCount: 0, ordersPerPage: 20), fetchPolicy: policy)
    }
}

// Every snippet of the part CoreNetKit of Documentation/Migrating-from-earlier-libraries.md, with its expected
// behavior.
// `DocumentationTests` verifies that none is missing.

struct BrewerPageRequest: ParameterizedRequest, ValueStorableRequest, Hashable {
    var skip: Int
    var take: Int
    typealias Output = [Brewer]

    var path: String { "/brewers" }
    var parameters: Parameters { ["skip": skip, "take": take] }
    var storageIdentifier: String? { "brewers/\(skip)/\(take)" }
}

@Suite("Coming from CoreNetKit", .permit)
struct ComingFromCoreNetKitTests {
    private let server: MockServer
    private let service: WebService

    init() throws {
        let tokens = Tokens()
        server = try MockServer { request in
            let skip = request.queryItems.first { $0.name == "skip" }.flatMap { Int($0.value) } ?? 0
            switch request.path {
            case "/orders" where skip < 100:
                let take = request.queryItems.first { $0.name == "take" }.flatMap { Int($0.value) } ?? 20
                return MockResponse(
                    statusCode: 200, json: ["items": (skip..<max(skip, min(skip + take, 45))).map { ["id": $0] }])
            case "/orders": return MockResponse(statusCode: 200, json: ["total": 45])
            case "/code": return MockResponse(statusCode: 400, json: ["error": "invalid_grant"])
            case "/empty": return MockResponse(statusCode: 204)
            case "/safe":
                return MockResponse(
                    statusCode: request.headers[.authorization] == "Bearer \(tokens.current)" ? 200 : 401,
                    data: Data("safe".utf8))
            default: return MockResponse(statusCode: 404)
            }
        }
        service = WebService(baseURL: server.baseURL, endpoints: [HTTPEndpoint()], storages: [OwnCache()])
        service.errorMapper = AuthorizationErrorMapper()
    }

    private struct Tokens: Sendable { let current = "fresh" }

    @Test("A request forms its URL from its parameters and decodes the response with custom code")
    func request() async throws {
        let orders = try await service.perform(GetOrderListRequest(skipOrdersCount: 40, ordersPerPage: 20)).value
        #expect(orders == (40..<45).map { Order(id: $0) })
        #expect(server.receivedRequests.last?.queryItems.map { "\($0.name)=\($0.value)" } == ["skip=40", "take=20"])
        #expect(try await service.perform(GetOrderListRequest(skipOrdersCount: 100, ordersPerPage: 20)).value.isEmpty)
    }

    @Test("An error body becomes an error of the domain, and any other error is unchanged")
    func errorMapper() async throws {
        await #expect(throws: AuthorizationError.invalidCode) { try await service.POST("/code").data().value }
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/nothing").data().value }
        #expect(error?.status == 404)
    }

    @Test("A response without content is an empty object")
    func noContent() async throws {
        #expect(try await service.GET("/empty").json().value == .object([:]))
    }

    @Test("A service method returns a task with onSuccess, onError and onCacheSuccess, and handlers can be methods")
    func observers() async throws {
        final class Presenter: Sendable {
            let heard: AsyncStream<String>.Continuation
            init(_ heard: AsyncStream<String>.Continuation) { self.heard = heard }
            func show(_ orders: [Order]) { heard.yield("success \(orders.count)") }
            func show(_ stored: SourcedValue<[Order]>) { heard.yield("cache \(stored.value.count)") }
            func errorHandler(_ error: any Error) { heard.yield("error \(type(of: error))") }
        }
        let (heard, continuation) = AsyncStream<String>.makeStream()
        var next = heard.makeAsyncIterator()
        let presenter = Presenter(continuation)
        let orders = OrderService(service: service)

        orders.orders().onSuccess(presenter.show).onError(presenter.errorHandler).resume()
        #expect(await next.next() == "success 20")
        await service.finishStoring()

        server.stop()
        orders.orders(.cacheThenServer).onSuccess(presenter.show).onError(presenter.errorHandler).onCacheSuccess(
            presenter.show
        ).resume()
        // The server is unavailable: the stored value arrives first, unless the refused connection
        // is faster, and then the error.
        var answers = [await next.next() ?? ""]
        if answers == ["cache 20"] { answers.append(await next.next() ?? "") }
        #expect(answers.last == "error NSError" || answers.last == "error URLError")
        orders.orders(.serverElseCache).onSuccess(presenter.show).onError(presenter.errorHandler).resume()
        #expect(await next.next() == "success 20")
        orders.orders(.cacheOnly).onSuccess(presenter.show).resume()
        #expect(await next.next() == "success 20")
    }

    @Test("Requests with a 401 share one refresh and are sent again if they have the interceptor")
    func tokenRefresh() async throws {
        let refreshes = AsyncStream<Void>.makeStream()
        let authentication = Authentication(
            TokenSource({ .bearer("stale") }) { _ in
                refreshes.continuation.yield()
                return .bearer("fresh")
            })
        let answers = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    var request = service.request(.GET, path: "/safe")
                    request.options.interceptors = [authentication]
                    return await service.sessionTask(request: request).string().serviceResponse.data
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers == Array(repeating: "safe", count: 20))
        refreshes.continuation.finish()
        var count = 0
        for await _ in refreshes.stream { count += 1 }
        #expect(count == 1)
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/safe").string().value }
        #expect(error?.status == 401)
    }

    @Test("A paginator by offset supports moveNext, canMoveNext and reset")
    func iterator() async throws {
        let orders = Paginator.offset(itemsPerPage: 20) { [service] offset, limit in
            service.perform(GetOrderListRequest(skipOrdersCount: offset, ordersPerPage: limit))
        }
        var found: [Order] = []
        while orders.canMoveNext { found += try await orders.moveNext()?.items ?? [] }
        #expect(found == (0..<45).map { Order(id: $0) })
        orders.reset(to: 40)
        #expect(orders.canMoveNext)
        #expect(try await orders.moveNext()?.items == (40..<45).map { Order(id: $0) })
    }
}

/// The examples of the page.
@Suite("Migrating from CoreNetKit", .permit)
struct MigratingFromCoreNetKitTests {
    private let mock = MockService()

    @Test("A request is performed with a fetch policy and handlers")
    func request() async {
        let service = mock.service
        service.endpoints = [HTTPEndpoint()]
        service.storages = [MemoryStorage()]
        mock.on(.path("/brewers") && .query("take", "20"), .json([Brewer(name: "Long Trail")]))
        let printed = Collected<String>()
        @Sendable func print(_ value: Any) { printed.add("\(value)") }

        service.perform(BrewerPageRequest(skip: 0, take: 20), fetchPolicy: .cacheThenServer)
            .onSuccess { brewers in print(brewers.count) }
            .onError { error in print("no brewers: \(error)") }
            .onCacheSuccess { stored in print("stored: \(stored.value.count)") }
            .resume()

        #expect(await printed.wait() == ["1"])
    }

    @Test("A paginator requests pages until one is empty, and can be reset to an offset")
    func pagination() async throws {
        let service = mock.service
        service.endpoints = [HTTPEndpoint()]
        mock.on(.GET, "/brewers", [.json([Brewer(name: "Long Trail")]), .json([Brewer]())])

        let pages = Paginator.offset(itemsPerPage: 20) { offset, limit in
            service.perform(BrewerPageRequest(skip: offset, take: limit))
        }
        var brewers: [Brewer] = []
        while pages.canMoveNext { brewers += try await pages.moveNext()?.items ?? [] }
        pages.reset(to: 40)

        #expect(brewers == [Brewer(name: "Long Trail")])
        #expect(pages.canMoveNext)
    }
}
