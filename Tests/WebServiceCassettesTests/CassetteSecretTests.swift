import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceCassettes
@testable import WebServiceMocking

/// Secrets do not reach the file of a cassette.
@Suite(.permit) struct CassetteSecretTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url.appendingPathComponent("cassettes") }
    private var file: URL { folder.appendingPathComponent("secrets.json") }
    private let mock = MockSession()

    private func service(_ session: any Session) -> WebService {
        WebService("https://h/v1", session: session)
    }

    private func recorder(secrets: [String] = [], allowed: Set<String> = [], unsearched: Bool = false) throws
        -> CassetteSession
    {
        try CassetteSession(
            file: file, mode: .record, session: mock, secrets: secrets, allowed: allowed,
            recordsUnsearchedBodies: unsearched)
    }

    private func text() throws -> String { try String(contentsOf: file, encoding: .utf8) }

    private static let login = """
        {"token_type": "Bearer", "access_token": "canary-\\u0074oken", "pin": 1234, \
        "pins": {"secrets": [true, "canary-token", null]}}
        """

    @Test("Equal secrets of requests and responses have equal placeholders, and numbers remain")
    func placeholders() async throws {
        mock.on(
            .POST, "/v1/login",
            MockResponse(
                statusCode: 200,
                headers: ["Content-Type": "application/json", "Set-Cookie": "sid=canary-cookie; Path=/"],
                data: Data(Self.login.utf8)))
        mock.on(.GET, "/v1/me", .status(204))
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            let service = service(cassette)
            service.cookieJar = CookieJar()
            let login = service.POST("/login").setFormParameters(["user": "ann", "password": "canary pass&word"])
            let token = try await login.json().value["access_token"]?.string
            let me = service.GET("/me?access_token=\(token ?? "")")
            _ = try await me.setHeaderValue("Bearer \(token ?? "")", forName: "Authorization").empty().value
            try cassette.finish()
        }
        let text = try text()
        #expect(!text.contains("canary"))
        for expected in [
            #""text" : "user=ann&password=redacted-1""#, "Set-Cookie: sid=redacted-2; Path=/",
            #"{\"token_type\": \"Bearer\", \"access_token\": \"redacted-3\", \"pin\": 1234, "#
                + #"\"pins\": {\"secrets\": [true, \"redacted-3\", null]}}"#,
            "me?access_token=redacted-3", "Authorization: Bearer redacted-3", "Cookie: sid=redacted-2",
        ] {
            #expect(text.contains(expected), "\(expected) in \(text)")
        }
    }

    @Test("A cookie without a name is a secret")
    func namelessCookie() async throws {
        mock.on(.any, MockResponse(statusCode: 200, headers: ["Set-Cookie": "canary-third; Path=/"]))
        let cassette = try CassetteSession(file: file, mode: .record, session: mock)
        let task = service(cassette).GET("/").setHeaderValue("a=1; canary-second", forName: "Cookie")
        _ = try await task.data().value
        try cassette.finish()
        let text = try text()
        #expect(!text.contains("canary"), "\(text)")
        #expect(text.contains("Cookie: a=redacted-"), "\(text)")
    }

    @Test("A replay accepts other secrets than those of the recording")
    func otherSecrets() async throws {
        mock.on(.any, .text("ale"))
        for (mode, key) in [(CassetteSession.Mode.record, "canary-real"), (.replay, "dummy"), (.replay, "redacted-9")] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock)
            let task = service(cassette).POST("/?api_key=\(key)&page=1").setJSON(["password": key, "pin": key])
            #expect(try await task.string().value == "ale")
            try cassette.finish()
        }
        #expect(mock.receivedRequests.count == 1)
    }

    @Test(
        "A secret that remains elsewhere is an error that does not contain it, and no file is written",
        arguments: ["path", "header", "body", "binary"])
    func remains(place: String) async throws {
        let secret = "canary-4711"
        var response = MockResponse.json([
            "access_token": .string(secret), "text": .string(place == "body" ? secret : ""),
        ])
        if place == "header" { response.headers["X-Debug"] = "for \(secret)" }
        mock.on(.GET, "/v1/token", response)
        mock.on(.any, MockResponse(statusCode: 200, data: Data([0, 1]) + Data((place == "binary" ? secret : "").utf8)))
            .optional()
        mock.on(.GET, "/v1/token", response)
        let cassette = try recorder(unsearched: true)
        _ = try await service(cassette).GET("/token").data().value
        _ = try await service(cassette).GET(place == "path" ? "/users/canary%2D4711" : "/users").data().value
        let error = #expect(throws: WebServiceError.self) { try cassette.finish() }
        #expect(error?.code == .cassetteSecret)
        #expect(error?.message.contains("a redacted value") == true)
        #expect(error?.message.contains("canary") == false)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("Values that are named as secret are replaced wherever they occur, also in a replay")
    func named() async throws {
        mock.on(.any) { .text("hello canary-user, \($0.target)") }
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: file, mode: mode, session: mock, secrets: ["canary-user"])
            _ = try await service(cassette).GET("/users/canary-user").string().value
            try cassette.finish()
        }
        #expect(try text().contains("https://h/v1/users/redacted-1"))
        #expect(try !text().contains("canary"))
    }

    @Test(
        "A value that looks like a token is not written unless it is allowed",
        arguments: ["q9ZtX4mB7vLr2KpW8sYc3NdF", "eyJhbGciOiJIUzI1NiJ9.e30", "AKIAIOSFODNN7EXAMPLE"])
    func tokens(token: String) async throws {
        mock.on(.any, .json(["value": .string(token)]))
        let refused = try recorder()
        _ = try await service(refused).GET("/").data().value
        let error = #expect(throws: WebServiceError.self) { try refused.finish() }
        #expect(error?.code == .cassetteSecret)
        #expect(error?.message.contains(token) == false)
        #expect(error?.message.contains("exchange 1 has a value that looks like a token in its response body") == true)
        let permitted = try recorder(allowed: [token])
        _ = try await service(permitted).GET("/").data().value
        try permitted.finish()
        #expect(try text().contains(token))
    }

    @Test("Identifiers, digests, dates and words are not mistaken for tokens")
    func harmless() async throws {
        var response = MockResponse.json([
            "id": "6F9619FF-8B86-D011-B42D-00CF4FC964FF", "sha": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "date": "2026-11-22T13:00:00.000Z", "name": "Trillium-Brewing-Company-Boston",
            "agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
        ])
        response.headers["ETag"] = "\"q9ZtX4mB7vLr2KpW8sYc3NdF\""
        mock.on(.any, response)
        let cassette = try recorder()
        _ = try await service(cassette).GET("/v1/6F9619FF-8B86-D011-B42D-00CF4FC964FF").data().value
        try cassette.finish()
    }

    @Test("The password of Basic credentials is redacted and searched for")
    func basic() async throws {
        mock.on(.any, .text("canary-password"))
        let cassette = try recorder()
        let credentials = Data("ann:canary-password".utf8).base64EncodedString()
        _ = try await service(cassette).GET("/").setHeaderValue("Basic \(credentials)", forName: "Authorization")
            .string().value
        let error = #expect(throws: WebServiceError.self) { try cassette.finish() }
        #expect(error?.code == .cassetteSecret)
    }

    @Test(
        "A body in which secrets cannot be recognized is not written unless the caller permits it",
        arguments: ["application/octet-stream", "application/x-protobuf", nil] as [String?])
    func unsearched(type: String?) async throws {
        var response = MockResponse(statusCode: 200, data: Data("\u{5}canary-bytes".utf8))
        if let type { response.headers[.contentType] = type }
        mock.on(.any, response)
        let refused = try recorder()
        _ = try await service(refused).GET("/").data().value
        let error = #expect(throws: WebServiceError.self) { try refused.finish() }
        #expect(error?.code == .cassetteSecret)
        #expect(
            error?.message.contains("the response body of exchange 1 has \(type.map { "the type \($0)" } ?? "no type")")
                == true)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        let permitted = try recorder(unsearched: true)
        _ = try await service(permitted).GET("/").data().value
        try permitted.finish()
        let replay = try CassetteSession(file: file, mode: .replay)
        #expect(try await service(replay).GET("/").data().value == response.data)
    }

    @Test("Multipart bodies with random boundaries are recorded, and match with another boundary")
    func multipart() async throws {
        mock.on(.any, .status(204))
        for round in 0..<8 {
            for mode in [CassetteSession.Mode.record, .replay] {
                let cassette = try CassetteSession(file: file, mode: mode, session: mock)
                var form = MultipartFormData()
                form.append("ann \(round)", name: "user")
                form.append("canary-\(mode)", name: "password")
                form.append(Data(#"{"token":"canary-json"}"#.utf8), name: "meta", contentType: "application/json")
                _ = try await service(cassette).POST("/").setMultipart(form).empty().value
                try cassette.finish()
            }
            #expect(try !text().contains("canary"))
        }
        #expect(mock.receivedRequests.count == 8)
    }
}
