import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer
import WebServiceStorage
@testable import WebServiceCore

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

/// Two accounts and one URL, over a real server. No account receives the data of the other.
@Suite("Two accounts, one URL", .permit)
struct AccountsTests {
    struct Profile: HTTPServiceRequest, RawStorableRequest {
        typealias Output = String
        let token: @Sendable () -> String
        var storageIdentifier: String? { "profile" }

        func request(for service: WebService) -> Request {
            var request = service.request(.GET, path: "/profile")
            request.headers[.authorization] = "Bearer \(token())"
            return request
        }
    }

    /// The account that is logged in.
    final class Login: Sendable {
        private let name = Mutex("alice")
        var current: String { name.withLock { $0 } }
        func change(to name: String) { self.name.withLock { $0 = name } }
    }

    enum Kind: String, CaseIterable {
        case memory, file
        #if WEBSERVICE_SQLITE
        case sqlite
        #endif
    }

    private func storage(_ kind: Kind, _ folder: URL) throws -> any ResponseStorage {
        switch kind {
        case .memory: return MemoryStorage()
        case .file: return try FileStorage(folder: folder)
        #if WEBSERVICE_SQLITE
        case .sqlite: return try SQLiteStorage(file: folder.appendingPathComponent("answers.sqlite"))
        #endif
        }
    }

    /// Runs a test with a server that responds with the account of the token and allows caching.
    private func withServer(_ body: (MockServer, URL) async throws -> Void) async throws {
        let folder = TemporaryFolder.forTest().url.appendingPathComponent("accounts")
        let server = try MockServer { request in
            var response = MockResponse(statusCode: 200, data: Data((request.headers[.authorization] ?? "nobody").utf8))
            response.headers["Cache-Control"] = "max-age=3600"
            response.headers["ETag"] = "\"same for all\""
            return response
        }
        defer { server.stop() }
        try await body(server, folder)
    }

    @Test(
        "A stored response is returned only to its account, with every storage and policy",
        arguments: Kind.allCases)
    func storedAnswers(_ kind: Kind) async throws {
        try await withServer { server, folder in
            let login = Login()
            let service = WebService(
                baseURL: server.baseURL, endpoints: [HTTPEndpoint()], storages: [try storage(kind, folder)])
            let request = Profile { login.current }
            for policy in [.serverOnly, .cacheThenServer, .serverElseCache, .cacheOnly] as [FetchPolicy] {
                for name in ["alice", "bob", "alice"] {
                    login.change(to: name)
                    service.storageAccount = name
                    var seen: [String] = []
                    do {
                        for try await value in service.perform(request, fetchPolicy: policy).values {
                            seen.append(value.value)
                        }
                    } catch let error as WebServiceError {
                        #expect(error.code == .noStoredData)
                    }
                    #expect(seen.allSatisfy { $0 == "Bearer \(name)" }, "\(policy): \(seen)")
                    #expect(!seen.isEmpty)
                    await service.finishStoring()
                }
            }
        }
    }

    @Test(
        "The HTTP cache separates accounts with every storage and policy, even if validators are equal",
        arguments: Kind.allCases)
    func httpCache(_ kind: Kind) async throws {
        let policies: [URLRequest.CachePolicy] = [
            .useProtocolCachePolicy, .returnCacheDataElseLoad, .reloadRevalidatingCacheData,
            .reloadIgnoringLocalCacheData,
            .reloadIgnoringLocalAndRemoteCacheData, .returnCacheDataDontLoad,
        ]
        try await withServer { server, folder in
            let login = Login()
            let cache = ResponseCache(storage: try storage(kind, folder), account: { login.current })
            let service = WebService(baseURL: server.baseURL)
            service.interceptors = [cache]
            for policy in policies {
                for name in ["alice", "bob", "alice", "bob"] {
                    login.change(to: name)
                    let task = service.GET("/profile").setHeaders(["Authorization": "Bearer \(name)"])
                        .configure { $0.options.cachePolicy = policy }.string()
                    #expect(try await task.value == "Bearer \(name)", "\(policy)")
                    await cache.finishStoring()
                }
            }
            // An account without stored responses receives none.
            login.change(to: "carol")
            let task = service.GET("/profile").configure { $0.options.cachePolicy = .returnCacheDataDontLoad }.string()
            await #expect(throws: URLError.self) { try await task.value }
        }
    }
}
