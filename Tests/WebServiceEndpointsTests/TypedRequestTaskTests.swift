import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceEndpoints

@Suite("Options and tasks of typed requests", .permit)
struct TypedRequestTaskTests {
    enum Feature: RequestTagKey {
        static let defaultValue = ""
    }

    struct LogRequest: HTTPServiceRequest, Hashable {
        typealias Output = String
        func request(for service: WebService) throws -> Request {
            var request = service.request(.GET, path: "/log")
            request.headers["X-Log"] = "7"
            request.options[Feature.self] = "log"
            return request
        }
    }

    struct InvalidRequest: HTTPServiceRequest {
        typealias Output = String
        func request(for service: WebService) throws -> Request { throw TestError(name: "invalid") }
    }

    private let session = HandSession()
    private let service: WebService

    init() {
        service = WebService.make(session)
    }

    @Test("The options of a single call replace those of the typed request")
    func configuring() async throws {
        let task = service.perform(
            LogRequest(),
            configuring: { request in
                request.options.timeout = .seconds(3)
                request.options.priority = .high
                request.options[Feature.self] += "+"
                request.headers["X-Call"] = "1"
            }
        ).resume()
        let sent = try #require(await session.exchanges.wait()[0].request as? EncodedRequest)
        #expect(sent.source.options.timeout == .seconds(3))
        #expect(sent.source.options.priority == .high)
        #expect(sent.source.options[Feature.self] == "log+")
        #expect(sent.headers["X-Call"] == "1")
        #expect(sent.headers["X-Log"] == "7")
        session.exchanges.values[0].respond("one")
        #expect(try await task.value == "one")
        let next = service.perform(LogRequest()).resume()
        let other = try #require(await session.exchanges.wait(for: 2)[1].request as? EncodedRequest)
        #expect(other.source.options.timeout == nil)
        #expect(other.headers["X-Call"] == nil)
        session.exchanges.values[1].respond("two")
        #expect(try await next.value == "two")
    }

    struct StoredRequest: HTTPServiceRequest, RawStorableRequest {
        typealias Output = String
        var storageIdentifier: String? { "x" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/x") }
    }

    @Test("The options of a call apply with every fetch policy that sends a request")
    func fetchPolicy() async throws {
        service.storages = [MemoryStorage()]
        let policies: [FetchPolicy] = [.serverOnly, .cacheThenServer, .serverElseCache]
        for (index, policy) in policies.enumerated() {
            let task = service.perform(
                StoredRequest(), fetchPolicy: policy, configuring: { $0.options.timeout = .seconds(3) }
            ).resume()
            let exchange = await session.exchanges.wait(for: index + 1)[index]
            #expect((exchange.request as? EncodedRequest)?.source.options.timeout == .seconds(3))
            exchange.respond("x")
            #expect(try await task.value == "x")
        }
    }

    @Test("A call with an option that is not valid fails")
    func invalidOption() async {
        let task = service.perform(LogRequest(), configuring: { $0.options.deadline = .zero })
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .encoding)
    }

    @Test("A task for a typed request has its request, its type and the interceptors of the service")
    func task() async throws {
        service.interceptors = [.bearer("token")]
        let task = service.sessionTask(request: LogRequest()).string().resume()
        #expect(service.exchanges.first?.type == LogRequest.self)
        let exchange = await session.exchanges.wait()[0]
        let sent = try #require(exchange.request as? EncodedRequest)
        #expect(sent.url == "https://h/v1/log")
        #expect(sent.headers["X-Log"] == "7")
        #expect(sent.headers[.authorization] == "Bearer token")
        #expect(sent.source.options[Feature.self] == "log")
        exchange.respond("x")
        #expect(try await task.value == "x")
    }

    @Test("The session of the endpoint sends the request, and the service lists it")
    func endpoint() async throws {
        let other = HandSession()
        service.endpoints = [HTTPEndpoint(session: other)]
        let tasks = [nil, DuplicateMode.join, .join].map { mode in
            let task = service.sessionTask(request: LogRequest())
            return (mode.map { task.setDuplicates($0) } ?? task).string().resume()
        }
        let exchanges = await other.exchanges.wait(for: 2)
        #expect(service.exchanges.count == 3)
        for exchange in exchanges { exchange.respond("x") }
        for task in tasks { #expect(try await task.value == "x") }
        let last = service.sessionTask(request: LogRequest()).string().resume()
        let exchange = await other.exchanges.wait(for: 3)[2]
        service.cancelAll()
        let error = await #expect(throws: URLError.self) { try await last.value }
        #expect(error?.code == .cancelled)
        #expect(exchange.log.contains("cancel"))
        #expect(session.exchanges.values.isEmpty)
        service.invalidate()
        let refused = await #expect(throws: WebServiceError.self) {
            try await service.sessionTask(request: LogRequest()).string().value
        }
        #expect(refused?.code == .serviceInvalidated)
    }

    @Test("A typed request without a request that can be sent is an error of the task")
    func errors() async {
        func code(_ service: WebService, _ request: some HTTPServiceRequest) async -> WebServiceError? {
            await #expect(throws: WebServiceError.self) {
                try await service.sessionTask(request: request).stream().value
            }
        }
        let invalid = await code(service, InvalidRequest())
        #expect(invalid?.underlying as? TestError == TestError(name: "invalid"))
        service.endpoints = [HandEndpoint()]
        #expect(await code(service, LogRequest())?.code == .noEndpoint)
        service.endpoints = []
        #expect(await code(service, LogRequest())?.code == .noEndpoint)
        #expect(session.exchanges.values.isEmpty)
    }
}
