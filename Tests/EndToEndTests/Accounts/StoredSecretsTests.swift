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

/// The files on disk after requests that were full of secrets.
@Suite("Secrets and storages", .permit)
struct StoredSecretsTests {
    struct RawSecrets: SecretiveRequest, RawStorableRequest {
        typealias Output = String
    }

    struct ValueSecrets: SecretiveRequest, ValueStorableRequest {
        typealias Output = String
    }

    private func contents(of folder: URL) throws -> [Data] {
        let files =
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL] ?? []
        return try files.filter { !$0.hasDirectoryPath }.map { try Data(contentsOf: $0) }
    }

    @Test(
        "A storage holds the response body, and nothing of requests, header fields, cookies or credentials")
    func canaries() async throws {
        let folder = TemporaryFolder.forTest().url.appendingPathComponent("secrets")
        let server = try MockServer.forTest { request in
            let isThere =
                request.headers[.authorization] == "Bearer canary-header"
                && request.headers["Cookie"] == "sid=canary-cookie"
            var response = MockResponse(statusCode: isThere ? 200 : 400, data: Data("the answer".utf8))
            response.headers["Set-Cookie"] = "sid=canary-set-cookie"
            response.headers["X-Token"] = "canary-response-header"
            return response
        }

        let service = WebService(baseURL: server.baseURL, endpoints: [HTTPEndpoint()])
        var storages: [any ResponseStorage] = [
            try FileStorage(folder: folder.appendingPathComponent("wrapped")),
            try FileStorage(folder: folder.appendingPathComponent("bare"), format: .bare),
        ]
        #if WEBSERVICE_SQLITE
        storages.append(try SQLiteStorage(file: folder.appendingPathComponent("answers.sqlite")))
        #endif
        for storage in storages {
            let jar = CookieJar()
            jar.store(["sid=canary-cookie; Path=/"], from: server.baseURL)
            service.cookieJar = jar
            service.storages = [storage]
            service.storageAccount = "someone"
            #expect(try await service.perform(RawSecrets()).value == "the answer")
            jar.store(["sid=canary-cookie; Path=/"], from: server.baseURL)
            #expect(try await service.perform(ValueSecrets()).value == "the answer")
            await service.finishStoring()
        }
        let files = try contents(of: folder)
        #expect(files.filter { $0.range(of: Data("the answer".utf8)) != nil }.count >= storages.count)
        for file in files { #expect(file.range(of: Data("canary".utf8)) == nil) }
    }
}

/// A request full of secrets.
protocol SecretiveRequest: HTTPServiceRequest, StorableRequest {}

extension SecretiveRequest {
    var storageIdentifier: String? { "\(Self.self)" }

    func request(for service: WebService) -> Request {
        var request = service.request(.POST, path: "/login")
        request.queryParameters = ["api_key": "canary-query"]
        request.formParameters = ["password": "canary-body"]
        request.headers[.authorization] = "Bearer canary-header"
        request.headers["X-Api-Key"] = "canary-key"
        return request
    }
}
