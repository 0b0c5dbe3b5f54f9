import Foundation
import SystemCrypto
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceOAuth

/// What the server issues, and what the client sends, reaches no log, archive, timeline, cassette,
/// error or description.
@Suite("Secrecy", .permit)
struct SecrecyTests {
    private let server = FakeServer()

    /// Runs each flow, and returns the secrets that the requests contained.
    private func runAll(_ service: WebService) async throws -> [String] {
        let dpop = try DPoP()
        let client = OAuth.Client.secret("\(FakeServer.mark)-password", id: "client", inBody: true)
        let oauth = OAuth(issuer: try server.issuer, client: client, dpop: dpop, service: service)
        let tokens = try await server.logIn(oauth)
        let new = try #require(try await oauth.refresh(tokens))
        try await oauth.revoke(new)
        _ = try await server.advancing(by: .seconds(60)) { try await oauth.deviceAuthorization().tokens() }
        let key = try OAuth.SigningKey()
        let keyed = OAuth(issuer: try server.issuer, client: .privateKey(key, id: "client"), service: service)
        _ = try await keyed.clientCredentials().refresh(nil)
        let metadata = try await OAuth.ServerMetadata.discover(server.issuer, service: service)
        var registration = OAuth.Registration(name: "Test", redirects: [try server.url(FakeServer.redirect)])
        registration.authentication = .basic
        _ = try await OAuth.register(
            registration, metadata: metadata, accessToken: "\(FakeServer.mark)-initial", service: service)
        service.interceptors = [Authentication(oauth.tokenSource(new)), dpop]
        try await service.GET("/me").empty().value
        let secret: Set = ["code_verifier", "client_assertion", "code", "refresh_token", "token", "device_code"]
        return server.mock.receivedRequests.flatMap { request in
            request.formItems.filter { secret.contains($0.name) }.map(\.value)
                + [request.headers["DPoP"], request.headers[.authorization]].compactMap(\.self)
        } + [key.rawRepresentation.base64URL]
    }

    @Test("Logs, archives and timelines contain no secret")
    func observers() async throws {
        let lines = Collected<String>()
        let file = TemporaryFolder.forTest().url.appendingPathComponent("log-in.har")
        let archives = try ArchiveObserver(file: file, bodyLimit: 1 << 20)
        let service = server.mock.service
        service.observers = [ExchangeLogger(level: .trace) { lines.add("\($0)") }, archives]
        let secrets = try await runAll(service)
        #expect(secrets.count >= 15)
        await archives.finish()
        let archive = try String(contentsOf: file, encoding: .utf8)
        #expect(archive.contains("client_assertion_type"))
        #expect(lines.values.count > 10)
        for text in lines.values + [archive] {
            #expect(!text.contains(FakeServer.mark))
            for secret in secrets { #expect(!text.contains(secret)) }
        }
    }

    @Test("Descriptions contain no secret")
    func descriptions() async throws {
        let oauth = try server.oauth(client: .secret("\(FakeServer.mark)-password", id: "client"))
        let authorization = try await oauth.authorization(redirect: server.url(FakeServer.redirect))
        let tokens = try await authorization.tokens(from: server.callback(to: authorization.url))
        let device = try await oauth.deviceAuthorization()
        let values: [Any] = [
            oauth.client, authorization, tokens, device, try await server.register(), try OAuth.SigningKey(),
        ]
        for value in values {
            var dumped = ""
            dump(value, to: &dumped)
            let texts = ["\(value)", String(reflecting: value), dumped]
            #expect(!texts.contains { $0.contains(FakeServer.mark) || $0.contains("state=") }, "\(texts)")
        }
    }

    @Test("Errors of a refused token request contain none of its values")
    func errors() async throws {
        server.replace(.token) { request in
            .json(
                ["error": "invalid_grant", "error_description": String(decoding: request.body, as: UTF8.self)],
                status: 400)
        }
        let oauth = try server.oauth(client: .secret("\(FakeServer.mark)-password", id: "client", inBody: true))
        let error = try await #require(throws: WebServiceError.self) { try await server.logIn(oauth) }
        var dumped = ""
        dump(error, to: &dumped)
        let request = try #require(server.requests("/token").first)
        let secrets = ["code", "code_verifier", "client_secret"].compactMap { request.form[$0] }
        #expect(secrets.count == 3)
        for text in ["\(error)", String(reflecting: error), error.localizedDescription, dumped] {
            #expect(!secrets.contains { text.contains($0) }, "\(text)")
        }
        #expect(error.authorizationFailure?.code == "invalid_grant")
        #expect(error.authorizationFailure?.detail?.contains("code_verifier") == true)
    }

    @Test("A cassette contains no secret")
    func cassette() async throws {
        let folder = TemporaryFolder.forTest()
        let file = folder.url.appendingPathComponent("log-in.json")
        let session = try CassetteSession(
            file: file, mode: .record, session: server.mock.session, clock: server.clock)
        let service = server.mock.service.clone()
        service.session = session
        let secrets = try await runAll(service)
        try session.finish()
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("grant_type"))
        #expect(!text.contains(FakeServer.mark))
        for secret in secrets { #expect(!text.contains(secret)) }
    }
}
