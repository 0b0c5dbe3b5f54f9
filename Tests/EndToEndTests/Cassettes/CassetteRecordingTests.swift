import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Cassettes of exchanges over real connections.
@Suite(.permit) struct CassetteRecordingTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url.appendingPathComponent("cassettes") }

    /// What a client received.
    private struct Received: Equatable {
        var texts: [String] = []
        var chunkBytes = 0
        var cookies: [String] = []
    }

    /// Sends requests with secrets in each part, and returns what was received.
    private func use(_ session: any Session, _ baseURL: String) async throws -> Received {
        let service = WebService(baseURLString: baseURL)
        let jar = CookieJar()
        (service.session, service.cookieJar) = (session, jar)
        var received = Received()
        let login = service.POST("/login").setFormParameters(["user": "ann", "password": "canary-password"])
        let token = try await login.json().value["access_token"]?.string ?? ""
        for task in [
            service.GET("/me?api_key=canary-key&page=1"),
            service.POST("/orders").setJSON(["kegs": 2, "card": ["cvv": "canary-cvv"]]),
            service.GET("/moved"),
        ] {
            task.setHeaderValue("Bearer \(token)", forName: "Authorization")
            received.texts.append(try await task.string().value)
        }
        for try await chunk in try await service.GET("/stream").stream().value.body {
            received.chunkBytes += chunk.count
        }
        received.cookies = jar.cookies.map(\.name)
        return received
    }

    @Test(
        "A recording of a server contains no secret and replays without the server",
        arguments: RealSession.allCases)
    func record(kind: RealSession) async throws {
        let file = folder.appendingPathComponent("\(kind).json")
        let server = try MockServer()
        let baseURL = server.baseURLString
        server.on(
            .POST, "/login",
            .json(["access_token": "canary-token"]).header(.setCookie, "sid=canary-cookie; Path=/"))
        server.on(.GET, "/me", .text("me"))
        server.on(.POST, "/orders", .json(["client_secret": "canary-secret"], status: 201))
        server.on(.GET, "/moved", .status(302).header(.location, "/landing?code=canary-code"))
        server.on(.GET, "/landing", .text("landed"))
        let binary = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        server.on(
            .GET, "/stream",
            MockResponse(statusCode: 200) { body in
                for start in stride(from: 0, to: binary.count, by: 50_000) {
                    try body.write(binary[start..<start + 50_000])
                }
            })
        let recording = try CassetteSession(
            file: file, mode: .record, session: kind.service(server).session, recordsUnsearchedBodies: true)
        let first = try await use(recording, baseURL)
        try recording.finish()
        #expect(first.texts.count == 3)
        #expect(first.chunkBytes == 200_000)
        #expect(first.cookies == ["sid"])
        #expect(server.receivedRequests.count == 6)
        server.stop()

        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(!text.contains("canary"))
        for expected in [
            "Bearer redacted-", "sid=redacted-", "password=redacted-", "api_key=redacted-", "code=redacted-",
        ] {
            #expect(text.contains(expected))
        }

        for _ in 0..<2 {
            let replay = try CassetteSession(file: file, mode: .replay)
            var second = try await use(replay, baseURL)
            #expect(second.texts[1].contains("redacted-"))
            second.texts[1] = first.texts[1]
            #expect(second == first)
            try replay.finish()
        }
    }
    @Test(
        "Missing exchanges are sent to a server and added, and the others are replayed",
        arguments: RealSession.allCases)
    func recordMissing(kind: RealSession) async throws {
        let file = folder.appendingPathComponent("\(kind)-missing.json")
        let server = try MockServer()
        defer { server.stop() }
        server.on(.any) { .text($0.path) }
        for paths in [["/a", "/b"], ["/b", "/c", "/a"]] {
            let cassette = try CassetteSession(
                file: file, mode: .recordMissing, session: kind.service(server).session)
            let service = WebService(baseURLString: server.baseURLString)
            service.session = cassette
            for path in paths {
                let body = String(repeating: path, count: 100_000)
                let task = service.POST(path).setBody(Data(body.utf8))
                task.setHeaderValue("text/plain", forName: "Content-Type")
                #expect(try await task.string().value == path)
            }
            try cassette.finish()
        }
        #expect(server.receivedRequests.map(\.path) == ["/a", "/b", "/c"])
    }
}
