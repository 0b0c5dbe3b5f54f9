import Foundation
import Testing
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// What the document of CoreNetKit shows, in its order, done by this framework.

private struct Order: Codable, Equatable, Sendable {
    var id: Int
}

/// A request with parameters, its own reading of the answer, and a storage.
private struct GetOrderListRequest: ParameterizedRequest, ValueStorableRequest, Hashable {
    var skipOrdersCount: Int
    var ordersPerPage: Int
    typealias Output = [Order]

    var path: String { "/orders" }
    var parameters: RequestParameters { .simple(["skip": skipOrdersCount, "take": ordersPerPage]) }
    var storageIdentifier: String? { "orders/\(skipOrdersCount)/\(ordersPerPage)" }

    func decode(_ response: Response) throws -> [Order] {
        struct Page: Decodable { var items: [Order]? }
        return try JSONDecoder().decode(Page.self, from: response.data).items ?? []
    }
}

private enum AuthorizationError: Error, Equatable {
    case invalidCode
}

/// An error body becomes an error of the domain.
private struct AuthorizationErrorMapper: ErrorMapper {
    func error(for response: Response) -> (any Error)? {
        struct Body: Decodable { var error: String }
        // A body that is something else is another error.
        let body = try? JSONDecoder().decode(Body.self, from: response.data)
        return body?.error == "invalid_grant" ? AuthorizationError.invalidCode : nil
    }
}

/// A cache of one's own.
private final class OwnCache: ResponseStorage {
    let memory = MemoryStorage()

    func entry(for key: StorageKey) async throws -> StorageEntry? { memory.entry(for: key) }
    func store(_ entry: StorageEntry, for key: StorageKey) async throws { try memory.store(entry, for: key) }
    func removeEntry(for key: StorageKey) async throws { memory.removeEntry(for: key) }
    func removeAll() async throws { memory.removeAll() }
}

/// A service whose methods give tasks.
private struct OrderService {
    let service: WebService

    func orders(_ policy: FetchPolicy = .serverOnly) -> TypedTask<[Order]> {
        service.perform(GetOrderListRequest(skipOrdersCount: 0, ordersPerPage: 20), fetchPolicy: policy)
    }
}

@Suite("Coming from CoreNetKit", .timeLimit(.minutes(10)))
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

    @Test("a request makes its URL of its parameters and reads the answer in its own way")
    func request() async throws {
        let orders = try await service.perform(GetOrderListRequest(skipOrdersCount: 40, ordersPerPage: 20)).value
        #expect(orders == (40..<45).map { Order(id: $0) })
        #expect(server.receivedRequests.last?.queryItems.map { "\($0.name)=\($0.value)" } == ["skip=40", "take=20"])
        #expect(try await service.perform(GetOrderListRequest(skipOrdersCount: 100, ordersPerPage: 20)).value.isEmpty)
    }

    @Test("an error body becomes an error of the domain, and anything else stays what it is")
    func errorMapper() async throws {
        await #expect(throws: AuthorizationError.invalidCode) { try await service.POST("/code").data().value }
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/nothing").data().value }
        #expect(error?.status == 404)
    }

    @Test("an answer without content is an empty object")
    func noContent() async throws {
        #expect(try await service.GET("/empty").json().value == .object([:]))
    }

    @Test("a service method gives a task with onSuccess, onError and onCacheSuccess, and closures may be methods")
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
        // The server is gone: what is stored comes ahead, unless the refusal is quicker, and then
        // the error.
        var answers = [await next.next() ?? ""]
        if answers == ["cache 20"] { answers.append(await next.next() ?? "") }
        #expect(answers.last == "error NSError" || answers.last == "error URLError")
        orders.orders(.serverElseCache).onSuccess(presenter.show).onError(presenter.errorHandler).resume()
        #expect(await next.next() == "success 20")
        orders.orders(.cacheOnly).onSuccess(presenter.show).resume()
        #expect(await next.next() == "success 20")
    }

    @Test("requests that meet a 401 wait for one refresh and are sent again; who is let in says the request")
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

    @Test("an iterator over pages by offset: moveNext, canMoveNext and reset")
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
