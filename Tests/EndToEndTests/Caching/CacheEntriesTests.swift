import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

/// The list and the counts of a cache over a server and each storage.
@Suite(.permit) struct CacheEntriesTests {
    private let temporary = TemporaryFolder()

    private var storages: [any ResponseStorage] {
        get throws {
            var storages: [any ResponseStorage] = [
                MemoryStorage(), try FileStorage(folder: temporary.url.appendingPathComponent("files")),
            ]
            #if WEBSERVICE_SQLITE
            storages.append(try SQLiteStorage(file: temporary.url.appendingPathComponent("responses.db")))
            #endif
            return storages
        }
    }

    @Test("Each storage lists the responses of a server, also of several pages")
    func storages() async throws {
        let server = try MockServer.forTest()
        server.on(.any) { request in
            .text(String(repeating: "a", count: Int(request.path.dropFirst()) ?? 0))
                .headers(["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
        }
        for storage in try storages {
            let cache = ResponseCache(storage: storage, account: { "ann" })
            let service = WebService(baseURLString: server.baseURLString)
            service.interceptors = [cache]
            for number in [0, 3, 100_000] {
                for language in ["en", "de"] {
                    let task = service.GET("/\(number)").configure { $0.headers["Accept-Language"] = language }
                    #expect(try await task.data().value.count == number)
                }
            }
            #expect(await cache.finishStoring())
            var entries: [ResponseCache.Entry] = []
            for try await entry in cache.entries { entries.append(entry) }
            #expect(entries.map(\.byteCount).sorted() == [0, 0, 3, 3, 100_000, 100_000])
            #expect(Set(entries.map(\.url)) == Set([0, 3, 100_000].map { "\(server.baseURLString)/\($0)" }))
            #expect(Set(entries.map(\.vary)) == [["accept-language"]])
            #expect(cache.statistics.misses == 6)
            #expect(cache.statistics.stores == 6)
            try await cache.remove(try #require(URL(string: "\(server.baseURLString)/3")))
            var count = 0
            for try await _ in cache.entries { count += 1 }
            #expect(count == 4)
        }
    }
}
