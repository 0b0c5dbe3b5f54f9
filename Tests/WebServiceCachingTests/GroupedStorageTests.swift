import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Values of typed requests in cache groups (RFC 9875).
@Suite("GroupedStorage", .permit)
struct GroupedStorageTests {
    private struct Brewers: HTTPServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = String
        var path = "/a"
        var storageIdentifier: String? { path }
        func request(for service: WebService) -> Request { service.request(.GET, path: path) }
        func decode(_ response: Response) -> String { String(decoding: response.data, as: UTF8.self) }
    }

    private struct RawBrewers: HTTPServiceRequest, RawStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "raw" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/a") }
    }

    private struct LiveBrewers: HTTPServiceRequest, StorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "live" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/a") }
    }

    /// A program with a cache and a storage of typed requests.
    private final class Program: Sendable {
        let service: WebService
        let cache: ResponseCache
        let failures = Collected<StorageEntry.Failure>()
        let date: Collected<Void>
        let gate = Collected<Once<Bool>>()
        let sent = Collected<String>()

        init(
            _ storage: any ResponseStorage, groups: String? = #""brewers", "b""#,
            http: any ResponseStorage = MemoryStorage()
        ) {
            let date = Collected<Void>()
            self.date = date
            let timekeeper = TestTimekeeper(
                ManualTimekeeper(), date: { CachedResponseTests.start.addingTimeInterval(Double(date.values.count)) })
            cache = ResponseCache(
                storage: http, account: { nil }, usesHeuristics: false, storageErrorObserver: nil,
                timekeeper: timekeeper)
            let (gate, sent) = (gate, sent)
            let session = HandSession { exchange in
                let url = exchange.request.urlRequestValue.url
                let isGET = exchange.request.urlRequestValue.httpMethod == "GET"
                sent.add(url?.path ?? "")
                let fields = isGET ? groups.map { ["Cache-Groups": $0] } : ["Cache-Group-Invalidation": #""brewers""#]
                let held = isGET ? gate.values.first : nil
                Task {
                    _ = await held?.value
                    exchange.completion(
                        Data("x".utf8),
                        url.flatMap {
                            HTTPURLResponse(url: $0, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
                        }, nil)
                }
            }
            service = WebService.make(session, timekeeper: timekeeper)
            service.interceptors = [cache]
            service.storages = [GroupedStorage(storage, of: cache)]
            let failures = failures
            service.storageErrorObserver = { failures.add($0) }
        }

        func tick() { date.add(()) }

        func isStored(_ request: some StorableRequest) async throws -> Bool {
            do {
                _ = try await service.stored(request).value
                return true
            } catch let error as WebServiceError where error.code == .noStoredData {
                return false
            }
        }
    }

    private func folder() -> URL { TemporaryFolder.forTest().url.appendingPathComponent("typed") }

    @Test("A stored value is absent after the response to an unsafe request names its group")
    func byResponse() async throws {
        for storage in [MemoryStorage(), try FileStorage(folder: folder())] as [any ResponseStorage] {
            let program = Program(storage)
            _ = try await program.service.perform(Brewers()).value
            _ = try await program.service.perform(RawBrewers()).value
            #expect(try await program.service.stored(Brewers()).value.value == "x")
            #expect(try await program.service.stored(RawBrewers()).value.value == "x")
            program.tick()
            _ = try await program.service.POST("/b").data().value
            #expect(try await !program.isStored(Brewers()))
            #expect(try await !program.isStored(RawBrewers()))
            program.tick()
            _ = try await program.service.perform(Brewers()).value
            #expect(try await program.isStored(Brewers()))
        }
    }

    @Test("A stored value is absent after code invalidates its group")
    func byCode() async throws {
        let program = Program(MemoryStorage())
        _ = try await program.service.perform(Brewers()).value
        _ = try await program.service.perform(LiveBrewers()).value
        try await program.cache.invalidate(group: "c", for: try #require(URL(string: "https://h")))
        try await program.cache.invalidate(group: "b", for: try #require(URL(string: "https://other")))
        #expect(try await program.isStored(Brewers()))
        #expect(try await program.service.stored(LiveBrewers()).value.value == "x")
        try await program.cache.invalidate(group: "b", for: try #require(URL(string: "https://h")))
        #expect(try await !program.isStored(Brewers()))
        #expect(try await !program.isStored(LiveBrewers()))
    }

    @Test("An invalid value is not returned by a fetch policy")
    func policies() async throws {
        let program = Program(MemoryStorage())
        _ = try await program.service.perform(Brewers()).value
        _ = try await program.service.POST("/b").data().value
        var sources: [Response.Source] = []
        for try await value in program.service.perform(Brewers(), fetchPolicy: .cacheThenServer).values {
            sources.append(value.source)
        }
        #expect(sources == [.network])
        let error = await #expect(throws: WebServiceError.self) {
            try await program.service.perform(Brewers(), fetchPolicy: .cacheOnly, maximumAge: .zero).value
        }
        #expect(error?.code == .noStoredData)
    }

    @Test("A value that was requested before an invalidation and arrives after it is not used")
    func late() async throws {
        let memory = MemoryStorage()
        let program = Program(memory)
        let gate = Once<Bool>()
        program.gate.add(gate)
        let task = program.service.perform(Brewers()).resume()
        await program.sent.wait(for: 1)
        program.tick()
        _ = try await program.service.POST("/b").data().value
        program.tick()
        gate.set(true)
        #expect(try await task.value == "x")
        #expect(try await !program.isStored(Brewers()))
        await program.service.finishStoring()
        let entries = await memory.summaries(after: nil, limit: 9).map(\.key.identifier)
        #expect(entries == ["group https://h brewers"])
    }

    @Test("The invalidation is stored with the values, and survives the process")
    func restart() async throws {
        let folder = folder()
        let program = Program(try FileStorage(folder: folder))
        _ = try await program.service.perform(Brewers()).value
        _ = try await program.service.POST("/b").data().value
        await program.cache.finishStoring()
        await program.service.finishStoring()
        let restarted = Program(try FileStorage(folder: folder))
        #expect(try await !restarted.isStored(Brewers()))
    }

    @Test("The groups of an account of the storage are those of the cache's account and of its own")
    func accounts() async throws {
        let program = Program(MemoryStorage())
        program.service.storageAccount = "ann"
        _ = try await program.service.perform(Brewers()).value
        _ = try await program.service.POST("/b").data().value
        #expect(try await !program.isStored(Brewers()))
    }

    @Test("A value without groups, and one that was stored without the storage, remain")
    func withoutGroups() async throws {
        let memory = MemoryStorage()
        let program = Program(memory, groups: nil)
        _ = try await program.service.perform(Brewers()).value
        try memory.store(StorageEntry(.value(Data("\"y\"".utf8)), date: nil), for: StorageKey(identifier: "/c"))
        _ = try await program.service.POST("/b").data().value
        #expect(try await program.isStored(Brewers()))
        #expect(try await program.service.stored(Brewers(path: "/c")).value.value == "y")
    }

    @Test("A value with more than 128 groups is not stored, which is reported")
    func manyGroups() async throws {
        let program = Program(MemoryStorage(), groups: (0...128).map { "\"\($0)\"" }.joined(separator: ", "))
        #expect(try await program.service.perform(Brewers()).value == "x")
        #expect(try await !program.isStored(Brewers()))
        #expect((program.failures.values.first?.error as? WebServiceError)?.code == .storage)
    }

    @Test("The list and the removals are those of the other storage, without the invalidations")
    func list() async throws {
        let memory = MemoryStorage()
        let program = Program(memory)
        let storage = try #require(program.service.storages.first)
        _ = try await program.service.perform(Brewers()).value
        await program.service.finishStoring()  // a value that is stored after an invalidation is removed
        _ = try await program.service.POST("/b").data().value
        await program.cache.finishStoring()
        await program.service.finishStoring()
        #expect(memory.count == 2)
        var (keys, last): ([String], StorageKey?) = ([], nil)
        while let page = try await storage.summaries(after: last, limit: 1).last {
            keys.append(page.key.identifier)
            last = page.key
        }
        #expect(keys == ["/a"])
        try await program.service.deleteStored(Brewers())
        #expect(memory.count == 1)
        try await program.service.deleteStored(DataClassification.default)
        try await program.service.deleteAllStored()
        #expect(memory.count == 0)
        #expect(storage.classifications == nil)
        #expect(storage.supports(LiveBrewers()))
    }
}
