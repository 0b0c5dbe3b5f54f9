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

/// The cache as an interceptor, over real sessions and real storages.
@Suite("ResponseCache, over sockets", .permit)
struct ResponseCacheTests {
    private let clock = TurnedClock()

    private func cache(_ storage: any ResponseStorage = MemoryStorage()) -> ResponseCache {
        ResponseCache(
            storage: storage, account: { "ann" }, usesHeuristics: false, storageErrorObserver: nil, timekeeper: clock)
    }

    /// Registers one representation of a path. It is fresh for a minute, and a request with its
    /// entity tag gets a 304 response.
    private func serve(_ server: MockServer, _ text: String) {
        server.on(.GET, "/a") { request in
            var response = MockResponse(
                statusCode: request.headers[.ifNoneMatch] == "\"\(text)\"" ? 304 : 200, data: Data(text.utf8))
            response.headers = [
                "Cache-Control": "max-age=60", "ETag": "\"\(text)\"", "X-A": "1", "Set-Cookie": "sid=1",
            ]
            return response
        }
    }

    @Test("A response is fetched, served from the cache, and revalidated", arguments: RealSession.allCases)
    func journey(kind: RealSession) async throws {
        let server = try MockServer.forTest()
        serve(server, "one")
        let service = try kind.service(server)
        service.interceptors = [cache()]
        var seen: [String] = []
        for _ in 0..<2 {
            for _ in 0..<2 {
                let response = try await service.GET("/a").data().response
                #expect(response.data == Data("one".utf8))
                #expect(response.status == 200)
                #expect(response.header("x-a") == "1")
                seen.append("\(response.source) \(response.attempts) \(response.age.map { "\($0.inSeconds)" } ?? "-")")
                clock.advance(by: 20)
            }
            clock.advance(by: 30)
        }
        #expect(seen == ["network 1 -", "cache 0 20.0", "revalidated 1 0.0", "cache 0 20.0"])
        #expect(server.receivedRequests.map { $0.headers[.ifNoneMatch] } == [nil, "\"one\""])
    }

    @Test("Retry and authentication wrap the cache, and a fresh response needs neither")
    func pipeline() async throws {
        let server = try MockServer.forTest()
        let count = Counter()
        server.on(.GET, "/a") { request in
            var response = MockResponse(statusCode: 200, data: Data((request.headers[.authorization] ?? "-").utf8))
            switch count.next() {
            case 1: response = MockResponse(statusCode: 503)
            case 2: response = MockResponse(statusCode: 401)
            default: response.headers = ["Cache-Control": "max-age=60"]
            }
            return response
        }
        let refreshes = Counter()
        let service = FoundationBacked.foundationSession.service(server)
        let authentication = Authentication(
            TokenSource({ .bearer("old") }) { _ in
                _ = refreshes.next()
                return .bearer("new")
            })
        service.interceptors = [RetryPolicy(baseDelay: .zero), authentication, cache()]
        let first = try await service.GET("/a").data().response
        #expect(first.source == .network)
        #expect(first.attempts == 3)
        #expect(first.data == Data("Bearer new".utf8))
        for _ in 0..<3 {
            let response = try await service.GET("/a").data().response
            #expect(response.source == .cache)
            #expect(response.attempts == 0)
            #expect(response.data == Data("Bearer new".utf8))
        }
        #expect(refreshes.next() == 2)
        #expect(server.receivedRequests.count == 3)
    }

    @Test("A response in a file or SQLite storage is served by a new cache, and its cookie is not stored")
    func storages() async throws {
        let folder = TemporaryFolder.forTest().url.appendingPathComponent("http")
        let server = try MockServer.forTest()
        serve(server, "one")
        var makers: [@Sendable () throws -> any ResponseStorage] = [
            { try FileStorage(folder: folder.appendingPathComponent("files")) }
        ]
        #if WEBSERVICE_SQLITE
        makers.append { try SQLiteStorage(file: folder.appendingPathComponent("cache.sqlite")) }
        #endif
        for make in makers {
            for source in [Response.Source.network, .cache] {
                let service = FoundationBacked.foundationSession.service(server)
                let cache = cache(try make())
                service.interceptors = [cache]
                let response = try await service.GET("/a").data().response
                #expect(response.source == source)
                #expect(response.data == Data("one".utf8))
                await cache.finishStoring()
            }
        }
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        for file in files {
            guard let data = FileManager.default.contents(atPath: folder.appendingPathComponent(file).path) else {
                continue
            }
            #expect(data.range(of: Data("sid=1".utf8)) == nil)
        }
    }

    @Test("Without the server, a stored response of any age is served on request", arguments: RealSession.allCases)
    func offline(kind: RealSession) async throws {
        let server = try MockServer()
        serve(server, "one")
        let service = try kind.service(server)
        service.interceptors = [cache()]
        _ = try await service.GET("/a").data().value
        server.stop()
        clock.advance(by: 1e6)
        let response = try await service.GET("/a").configure { $0.options.cachePolicy = .returnCacheDataElseLoad }
            .data().response
        #expect(response.source == .cache)
        #expect(response.age == .seconds(1_000_000))
        #expect(response.data == Data("one".utf8))
        #expect(await service.GET("/a").delivered().urlErrorCode == .cannotConnectToHost)
        #expect(
            await service.GET("/b").configure { $0.options.cachePolicy = .returnCacheDataDontLoad }.delivered()
                .urlErrorCode
                == .resourceUnavailable)
    }
}

private final class Counter: Sendable {
    private let value = Mutex(0)

    func next() -> Int {
        value.withLock { value in
            value += 1
            return value
        }
    }
}
