import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

/// The counts of a cache and the list of its responses.
@Suite(.permit) struct ResponseCacheStatisticsTests {
    private let clock = TestClock()
    private let mock: MockService
    private let cache = ResponseCache(storage: MemoryStorage())

    init() {
        mock = MockService(baseURLString: "https://h", clock: clock)
        mock.service.interceptors = [cache]
    }

    private func get(_ path: String, _ change: (inout Request) -> Void = { _ in }) async throws -> Response {
        let response = try await mock.service.GET(path).configure(change).data().response
        #expect(await cache.finishStoring())
        return response
    }

    /// The hits, revalidations, misses, stores and evictions.
    private var counts: [Int] {
        let counts = cache.statistics
        return [counts.hits, counts.revalidations, counts.misses, counts.stores, counts.evictions]
    }

    @Test("Each request is a hit, a revalidation or a miss")
    func outcomes() async throws {
        mock.on(.GET, "/a") { request in
            let isKnown = request.headers[.ifNoneMatch] == "\"1\""
            return .status(isKnown ? 304 : 200).headers(["ETag": "\"1\"", "Cache-Control": "max-age=60"])
        }
        #expect(counts == [0, 0, 0, 0, 0])
        _ = try await get("/a")
        #expect(counts == [0, 0, 1, 1, 0])
        _ = try await get("/a")
        #expect(counts == [1, 0, 1, 1, 0])
        await clock.advance(by: .seconds(61))
        #expect(try await get("/a").source == .revalidated)
        #expect(counts == [1, 1, 1, 2, 0])
        _ = try await get("/a") { $0.options.cachePolicy = .reloadIgnoringLocalCacheData }
        #expect(counts == [1, 1, 2, 3, 0])
        _ = try await get("/a") { $0.headers["Range"] = "bytes=0-1" }
        #expect(counts == [1, 1, 2, 3, 0])
    }

    @Test("A stale response in place of an error is a hit, and an error without one is a miss")
    func errors() async throws {
        mock.on(
            .GET, "/a",
            [
                .text("ale").header(.cacheControl, "max-age=1, stale-if-error=600"), .error(URLError(.timedOut)),
            ])
        mock.on(.GET, "/b", .error(URLError(.timedOut)))
        _ = try await get("/a")
        await clock.advance(by: .seconds(5))
        #expect(try await get("/a").source == .cache)
        #expect(counts == [1, 0, 1, 1, 0])
        await #expect(throws: URLError.self) { try await get("/b") }
        await #expect(throws: URLError.self) {
            try await get("/c") { $0.options.cachePolicy = .returnCacheDataDontLoad }
        }
        #expect(counts == [1, 0, 3, 1, 0])
    }

    @Test("A validation in the background counts as a revalidation after its hit")
    func background() async throws {
        mock.on(.GET, "/a") { request in
            .status(request.headers[.ifNoneMatch] == nil ? 200 : 304)
                .headers(["ETag": "\"1\"", "Cache-Control": "max-age=1, stale-while-revalidate=600"])
        }
        _ = try await get("/a")
        await clock.advance(by: .seconds(5))
        #expect(try await get("/a").source == .cache)
        await eventually("the validation ends") { self.counts == [1, 1, 1, 2, 0] }
    }

    @Test("More than 8 responses for one URL are evictions, and failures of the storage are counted")
    func evictions() async throws {
        mock.on(.any) {
            .text($0.headers["Accept-Language"] ?? "").headers([
                "Vary": "Accept-Language", "Cache-Control": "max-age=9",
            ])
        }
        for number in 0..<10 { _ = try await get("/a") { $0.headers["Accept-Language"] = "x-\(number)" } }
        #expect(counts == [0, 0, 10, 10, 2])
        #expect(cache.statistics.storageFailures == 0)
        let failing = ResponseCache(storage: HandStorage(failure: POSIXError(.EIO)))
        mock.service.interceptors = [failing]
        _ = try await mock.service.GET("/a").data().value
        #expect(await failing.finishStoring())
        #expect(failing.statistics.stores == 0)
        #expect(failing.statistics.misses == 1)
        #expect(failing.statistics.storageFailures > 0)
    }

    @Test("500 requests at the same time are all counted")
    func concurrency() async throws {
        mock.on(.any) { .text($0.path).header(.cacheControl, "max-age=60") }
        let service = mock.service
        for _ in 0..<2 {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<250 { group.addTask { _ = await service.GET("/\(number)").data().result } }
            }
            #expect(await cache.finishStoring())
        }
        #expect(counts == [250, 0, 250, 250, 0])
    }

    @Test("The list has the freshness and the size of each response, and is no use of it")
    func entries() async throws {
        let storage = MemoryStorage(maximumCount: 2)
        let account = Mutex<String?>("ann")
        let cache = ResponseCache(storage: storage, account: { account.withLock { $0 } })
        mock.service.interceptors = [cache]
        mock.on(.GET, "/a", .text("ale").headers(["Cache-Control": "max-age=60", "Age": "10", "Vary": "DNT, Accept"]))
        mock.on(.GET, "/b", .text("stout").header(.cacheControl, "no-cache"))
        mock.on(.GET, "/c", .text("").header(.cacheControl, "max-age=1"))
        let date = clock.date
        for path in ["/a", "/b"] {
            _ = try await mock.service.GET(path).data().value
            #expect(await cache.finishStoring())
        }
        var entries: [ResponseCache.Entry] = []
        for try await entry in cache.entries { entries.append(entry) }
        entries.sort { $0.url < $1.url }
        #expect(entries.map(\.url) == ["https://h/a", "https://h/b"])
        #expect(entries.map(\.byteCount) == [3, 5])
        #expect(entries.map(\.vary) == [["accept", "dnt"], []])
        #expect(entries.map(\.account) == ["ann", "ann"])
        #expect(entries.map(\.status) == [200, 200])
        #expect(entries.map(\.date) == [date, date])
        #expect(entries.map(\.freshUntil) == [date.addingTimeInterval(50), nil])
        account.withLock { $0 = nil }
        _ = try await mock.service.GET("/c").data().value
        #expect(await cache.finishStoring())
        var rest: [ResponseCache.Entry] = []
        for try await entry in cache.entries { rest.append(entry) }
        #expect(Set(rest.map(\.url)) == ["https://h/b", "https://h/c"])
        #expect(Set(rest.map(\.account)) == ["ann", nil])
    }

    @Test("A storage without a list ends the iteration with its error, and other entries are ignored")
    func otherStorages() async throws {
        let error = await #expect(throws: WebServiceError.self) {
            for try await _ in ResponseCache(storage: HandStorage()).entries {}
        }
        #expect(error?.code == .storage)
        let storage = MemoryStorage()
        let key = StorageKey(identifier: "GET https://h/a", classification: DataClassification("http-cache"))
        for key in [key, StorageKey(identifier: "GET https://h/a")] {
            try storage.store(StorageEntry(.raw(Data("damaged".utf8)), date: nil), for: key)
        }
        for try await entry in ResponseCache(storage: storage).entries { Issue.record("\(entry)") }
    }
}
