import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// The examples in the documentation of WebServiceSwift, in the same order, with this framework.

/// A page of HTML in any charset.
private protocol HTMLRequest: ServiceRequest where Output == String {
    var url: URL { get }
}

/// A custom endpoint over the session of the service.
private struct HTMLEndpoint: ServiceEndpoint {
    func supports(_ request: any ServiceRequest) -> Bool { request is any HTMLRequest }

    func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        guard let request = request as? any HTMLRequest else { throw WebServiceError(.noEndpoint, "no HTML") }
        let response = try await context.send(Request(url: request.url.absoluteString))
        return ServerData(statusCode: response.status, binary: response.data)
    }

    func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
        -> any Sendable
    {
        let binary = (rawData as? ServerData)?.binary ?? rawData.rawData ?? Data()
        if let server = rawData as? ServerData, server.statusCode != 200 {
            throw WebServiceError(.unacceptableStatus, "\(server.statusCode)")
        }
        guard let text = String(data: binary, encoding: .utf8) ?? String(data: binary, encoding: .windowsCP1251) else {
            throw WebServiceError(.decoding, "no text")
        }
        return text
    }
}

/// Raw data with a status code in addition to its bytes.
private struct ServerData: RawDataSource {
    let statusCode: Int
    let binary: Data

    var rawData: Data? { binary }
}

private struct ExampleRequest: HTMLRequest, Hashable {
    let base: String
    let param1: String
    let param2: Int

    var url: URL { URL(string: "\(base)/\(param1)/\(param2)") ?? URL(fileURLWithPath: "/") }
}

extension ExampleRequest: RawStorableRequest {
    var storageIdentifier: String? { "example/\(param1)/\(param2)" }
}

extension ExampleRequest: MockableRequest {
    var isMocked: Bool { param1 == "mock" }
    var mockHelperIdentifier: String? { "template_html" }
    func makeMockHelper() -> String { "<html><body>%[BODY]%</body></html>" }
    func mockOutput(helper template: String) -> String {
        template.replacingOccurrences(of: "%[BODY]%", with: "<b>Hello world!</b>")
    }
}

private struct ExampleKey: Hashable {
    let value: String
}

private enum SiteRequests: RequestGroup {
    static let requestTypes: [any ServiceRequest.Type] = [Example.self, GetList.self]

    struct Example: HTTPServiceRequest, Hashable {
        let site: String
        let domainRu: Bool
        typealias Output = String

        func request(for service: WebService) -> Request {
            var request = service.request(.GET, path: "/site/{name}", pathParameters: ["name": site])
            request.queryParameters = ["ru": domainRu]
            return request
        }

        /// Custom decoding.
        func decode(_ response: Response) throws -> String {
            "decoded \(String(decoding: response.data, as: UTF8.self))"
        }
    }

    struct GetList: HTTPServiceRequest, EmptyServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = [String]
        var storageIdentifier: String? { "list" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/list") }

        // Custom converters, instead of those of every Codable output.
        func storageData(for value: [String]) throws -> Data? { try PropertyListEncoder().encode(value) }
        func storedValue(from data: Data) throws -> [String]? {
            try PropertyListDecoder().decode([String].self, from: data)
        }
    }
}

private struct UserInformation: HTTPServiceRequest, RawStorableRequest {
    typealias Output = String
    var classification = DataClassification.user
    var storageIdentifier: String? { "UserInformation" }
    var dataClassification: DataClassification { classification }
    func request(for service: WebService) -> Request { service.request(.GET, path: "/user") }
}

private struct SiteProvider: ServiceProvider {
    private let service: WebService

    init(service: WebService) { self.service = service }

    enum Site: String {
        case google, yandex
    }

    func example(_ site: Site, domainRu: Bool = true) -> TypedTask<String> {
        service.perform(SiteRequests.Example(site: site.rawValue, domainRu: domainRu))
    }
}

// Every snippet of the part WebServiceSwift of Documentation/Migrating-from-earlier-libraries.md, with its expected
// behavior.
// `DocumentationTests` verifies that none is missing.

struct BrewerListRequest: HTTPServiceRequest, ValueStorableRequest, Hashable {
    var state: String
    typealias Output = [Brewer]
    var storageIdentifier: String? { "brewers/\(state)" }

    func request(for service: WebService) -> Request {
        service.request(.GET, path: "/brewers/{state}", pathParameters: ["state": state])
    }
}

@Suite("Coming from WebServiceSwift", .permit)
struct ComingFromWebServiceSwiftTests {
    private let server: MockServer
    private let base: String
    private let service: WebService

    init() throws {
        server = try MockServer { request in
            switch request.path {
            case "/site/google":
                MockResponse(statusCode: 200, data: Data("google \(request.queryItems.first?.value ?? "")".utf8))
            case "/list": MockResponse(statusCode: 200, json: ["a", "b"])
            case "/user": MockResponse(statusCode: 200, data: Data("me".utf8))
            case "/old/1": MockResponse(statusCode: 200, data: Data([0xCF, 0xF0, 0xE8]))
            case "/gone/1": MockResponse(statusCode: 404)
            default: MockResponse(statusCode: 200, data: Data(request.path.utf8))
            }
        }
        base = server.baseURL.absoluteString
        service = WebService(
            baseURL: server.baseURL, endpoints: [MockEndpoint(), HTMLEndpoint(), HTTPEndpoint()],
            storages: [MemoryStorage()])
    }

    private func example(_ param1: String = "x") -> ExampleRequest {
        ExampleRequest(base: base, param1: param1, param2: 1)
    }

    @Test(
        "A custom endpoint with custom raw data handles another charset and another status"
    )
    func ownEndpoint() async throws {
        #expect(try await service.perform(example()).value == "/x/1")
        #expect(try await service.perform(example("old")).value == "При")
        #expect(
            (await service.perform(example("gone")).serviceResponse.error as? WebServiceError)?.code
                == .unacceptableStatus)
        // Stored data is processed by the same code.
        #expect(try await service.stored(example("old")).value.value == "При")
    }

    @Test("A request with custom decoding uses the standard endpoint")
    func ownDecoding() async throws {
        #expect(
            try await service.perform(SiteRequests.Example(site: "google", domainRu: true)).value
                == "decoded google true")
    }

    @Test("A request can be performed with a closure")
    @MainActor func closure() async throws {
        let text = await withCheckedContinuation { continuation in
            service.perform(example()) { response in
                switch response {
                case .canceledRequest: continuation.resume(returning: "cancelled")
                case .data(let data): continuation.resume(returning: data)
                case .error(let error): continuation.resume(returning: "\(error)")
                }
            }
        }
        #expect(text == "/x/1")
    }

    @MainActor
    private final class Screen: ServiceDelegate {
        private(set) var dataFromServer: String?
        private(set) var dataFromStorage: String?
        let continuation: AsyncStream<Void>.Continuation
        init(_ continuation: AsyncStream<Void>.Continuation) { self.continuation = continuation }

        func serviceDidRespond(
            _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest, key: (any Hashable & Sendable)?,
            isFromStorage: Bool
        ) {
            if let request = request as? ExampleRequest {
                switch response.convert(for: request) {
                case .data(let data): if isFromStorage { dataFromStorage = data } else { dataFromServer = data }
                case .canceledRequest, .error: break
                }
            }
            continuation.yield()
        }
    }

    @Test("A delegate receives responses and stored data")
    @MainActor func delegate() async throws {
        let (answers, continuation) = AsyncStream<Void>.makeStream()
        var answer = answers.makeAsyncIterator()
        let screen = Screen(continuation)
        service.perform(example(), delegate: screen)
        await answer.next()
        service.stored(example(), onlyData: true, delegate: screen)
        await answer.next()
        #expect(screen.dataFromServer == "/x/1")
        #expect(screen.dataFromStorage == "/x/1")
    }

    @Test("Requests are found, cancelled and deduplicated by request and by key")
    func managing() async throws {
        let endpoint = MockRequestEndpoint(delay: .seconds(1_000)) { (_: ExampleRequest) in "" }
        let service = WebService(endpoints: [endpoint])
        let task = service.perform(example(), key: ExampleKey(value: "k"), duplicates: .reject).resume()
        #expect(service.containsRequest(example()))
        #expect(service.containsRequest(type: ExampleRequest.self))
        #expect(service.containsRequest(key: ExampleKey(value: "k")))
        #expect(service.containsRequest(keyType: ExampleKey.self))
        #expect(await service.perform(example(), duplicates: .reject).serviceResponse.isDuplicate)
        #expect(
            await service.perform(example("y"), key: ExampleKey(value: "k"), duplicates: .reject).serviceResponse
                .isDuplicate)
        service.cancelRequests(example("y"))
        service.cancelRequests(key: ExampleKey(value: "other"))
        #expect(service.containsRequests())
        service.cancelRequests(keyType: ExampleKey.self)
        #expect(await task.serviceResponse.isCanceled)
        #expect(!service.containsRequests())
    }

    @Test("A provider can be custom, or for one request, an empty request or a group")
    func providers() async throws {
        let list: RequestProvider<SiteRequests.GetList> = service.createProvider()
        let example: RequestProvider<SiteRequests.Example> = service.createProvider()
        let site: GroupProvider<SiteRequests> = service.createProvider()
        #expect(try await list.perform().value == ["a", "b"])
        #expect(try await list.stored(.init()).value.value == ["a", "b"])
        #expect(try await example.perform(.init(site: "google", domainRu: false)).value == "decoded google false")
        #expect(
            try await site.perform(SiteRequests.Example(site: "google", domainRu: true)).value == "decoded google true")
        #expect(
            (await site.perform(self.example()).serviceResponse.error as? WebServiceError)?.code == .requestNotAllowed)
        #expect(try await service.createProvider(SiteProvider.self).example(.google).value == "decoded google true")
    }

    @Test("Storages in memory, in a database and in files are selected and cleared by classification")
    func classifications() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("classifications-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }  // a leftover in the temporary folder
        var storages: [any ResponseStorage] = [MemoryStorage(classifications: [.temporary])]
        #if WEBSERVICE_SQLITE
        storages.append(try SQLiteStorage(file: folder.appendingPathComponent("user.sqlite"), classifications: [.user]))
        #else
        storages.append(try FileStorage(folder: folder, prefix: "user-", classifications: [.user]))
        #endif
        storages.append(try FileStorage(folder: folder.appendingPathComponent("any")))
        service.storages = storages
        for classification in [.user, .temporary, .default] as [DataClassification] {
            #expect(try await service.perform(UserInformation(classification: classification)).value == "me")
            #expect(try await service.stored(UserInformation(classification: classification)).value.value == "me")
        }
        try await service.deleteStored(.user)
        #expect(await service.stored(UserInformation(classification: .user)).serviceResponse.data == nil)
        #expect(await service.stored(UserInformation(classification: .temporary)).serviceResponse.data != nil)
        try await service.deleteStoredInAnyClassification()
        #expect(await service.stored(UserInformation(classification: .default)).serviceResponse.data == nil)
        try await service.deleteAllStored()
        #expect(await service.stored(UserInformation(classification: .temporary)).serviceResponse.data == nil)
    }

    @Test("Stored data is delivered during a request if it is not too old")
    @MainActor func readingStorage() async throws {
        _ = try await service.perform(example()).value
        let task = service.perform(example(), duplicates: .reject)
        var fromStorage: String?
        let read = service.stored(example(), maximumAge: .seconds(3_600), .untilFinished(task)) { response in
            if case .data(let stored) = response { fromStorage = stored.value }
        }
        _ = await read.result
        #expect(fromStorage == "/x/1")
        #expect(try await task.value == "/x/1")
        #expect(await service.stored(example(), .untilSuccess(of: task)).serviceResponse.isCanceled)
        try await service.deleteStored(example())
        #expect((await service.stored(example()).serviceResponse.error as? WebServiceError)?.code == .noStoredData)
    }

    @Test("A request can provide its mock, and an endpoint can mock one type")
    func mocks() async throws {
        #expect(try await service.perform(example("mock")).value == "<html><body><b>Hello world!</b></body></html>")
        let template = "<html><body>%[BODY]%</body></html>"
        let mock = MockRequestEndpoint { (request: ExampleRequest) in
            template.replacingOccurrences(of: "%[BODY]%", with: "<b>\(request.param1)</b>")
        }
        let mocked = WebService(endpoints: [mock])
        #expect(try await mocked.perform(example("y")).value == "<html><body><b>y</b></body></html>")
    }

    @Test("A clone performs requests and shares the storages")
    func clone() async throws {
        let clone = service.clone()
        #expect(try await clone.perform(example()).value == "/x/1")
        #expect(try await service.stored(example()).value.value == "/x/1")
    }
}

/// The examples of the page.
@Suite("Migrating from WebServiceSwift", .permit)
struct MigratingFromWebServiceSwiftTests {
    @Test("A typed request is performed, stored and read from the storage")
    func typedRequest() async throws {
        let server = try MockServer { _ in MockResponse(statusCode: 200, json: [["name": "Long Trail"]]) }
        let (baseURL, printed) = (server.baseURL, Collected<String>())
        @Sendable func print(_ value: Any) { printed.add("\(value)") }

        let service = WebService(
            baseURL: baseURL, endpoints: [HTTPEndpoint()], storages: [MemoryStorage()])
        service.perform(BrewerListRequest(state: "vermont")) { response in
            switch response {
            case .canceledRequest: break
            case .data(let brewers): print(brewers.map(\.name))
            case .error(let error): print("no brewers: \(error)")
            }
        }

        #expect(await printed.wait() == [#"["Long Trail"]"#])
        await service.finishStoring()
        while service.containsRequests() { await Task.yield() }

        let request = BrewerListRequest(state: "vermont")
        let task = service.perform(request, duplicates: .reject)
        let hour = Duration.seconds(3_600)
        let read = service.stored(request, maximumAge: hour, .untilFinished(task)) { response in
            if case .data(let stored) = response { print("stored: \(stored.value.count)") }
        }

        _ = await read.result
        #expect(await printed.wait(for: 2).last == "stored: 1")
        #expect(try await task.value == [Brewer(name: "Long Trail")])
        #expect(server.receivedRequests.count == 2)
    }

    @Test("A mock endpoint responds to one type of request")
    func mocks() async throws {
        let mock = MockRequestEndpoint { (request: BrewerListRequest) in
            [Brewer(name: "mock of \(request.state)")]
        }
        let service = WebService(endpoints: [mock])
        let brewers = try await service.perform(BrewerListRequest(state: "vermont")).value
        #expect(brewers == [Brewer(name: "mock of vermont")])
    }
}
