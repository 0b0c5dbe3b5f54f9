import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets
import WebServiceTesting

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

// Further snippets of the chapter "Testing your client" of Guide.md.

@Suite("Snippets of mocks", .permit) struct MockingSnippets {
    private struct Store: Sendable {
        func kegs() async throws -> Int { 12 }
    }

    @Test("Stubs with variables, hosts and URLs, and an asynchronous closure")
    func variables() async throws {
        let session = MockSession()
        let service = WebService("https://api.example.com/v1", session: session)
        let (id, name, kegs, store) = (7, "Long Trail", 3, Store())

        session.on(
            .url("https://cdn.example.com/labels/{id}"), .json(["id": id, "name": name, "note": nil]))
        session.on(
            .host("api.example.com"), .json(["kegs": kegs]).headers(["ETag": "\"7\"", "Age": "0"]))
        session.on(.GET, "/v1/stock") { _ in .json(["kegs": try await store.kegs()]) }

        let label = try await service.GET("https://cdn.example.com/labels/7").json().value
        #expect(label == ["id": 7, "name": "Long Trail", "note": nil])
        #expect(try await service.GET("/stock").json().value == ["kegs": 12])
        #expect(try await service.GET("/other").json().value == ["kegs": 3])
    }

    @Test("A mock session passes requests to a real session, and a server returns the next request")
    func passthrough() async throws {
        let server = try MockServer.forTest()
        server.on(.POST, "/orders", 201)
        let session = MockSession()

        session.passthrough = FoundationSession.shared

        _ = try await WebService(server.baseURLString, session: session).POST("/orders").data().value

        let order = try await server.nextRequest()

        #expect(order.path == "/orders")
        try session.verify()
    }

    @Test("A cassette with criteria and a change of exchanges, and one from a browser")
    func cassettes() async throws {
        let temporary = TemporaryFolder()
        let file = temporary.url.appendingPathComponent("brewers.json")

        let session = try CassetteSession(
            file: file, mode: .record,
            matching: [
                .method, .path, .header("Accept-Language"),
                .custom { recorded, received in
                    (try? recorded.json()["id"]) == (try? received.json()["id"])
                },
            ],
            willRecord: { exchange in
                if exchange.url.hasSuffix("/metrics") { return nil }
                var exchange = exchange
                exchange.responseHeaders.remove("X-Trace")
                return exchange
            })

        let archive = temporary.url.appendingPathComponent("brewers.har")
        let entry = { (host: String) in
            """
            {"request": {"method": "GET", "url": "https://\(host)/brewers", "headers": [{"name": "DNT", "value": "1"}]},
             "response": {"status": 200, "headers": [{"name": "Content-Type", "value": "text/plain"},
              {"name": "X-Trace", "value": "7"}], "content": {"text": "ale"}}}
            """
        }
        let text = #"{"log": {"entries": [\#(entry("api.example.com")), \#(entry("example.com"))]}}"#
        try Data(text.utf8).write(to: archive)
        #expect(try session.importArchive(archive) == 2)
        try session.finish()
        #expect(try !String(contentsOf: file, encoding: .utf8).contains("X-Trace"))

        let cassette = try CassetteSession(
            file: file, mode: .record,
            willRecord: { exchange in
                var exchange = exchange
                exchange.requestHeaders = [:]
                return exchange
            })
        try cassette.importArchive(archive) { $0.url?.host == "api.example.com" }
        try cassette.finish()

        let replay = try CassetteSession(file: file, mode: .replay)
        let service = WebService("https://api.example.com", session: replay)
        #expect(try await service.GET("/brewers").string().value == "ale")
        try replay.finish()
        #expect(try !String(contentsOf: file, encoding: .utf8).contains("DNT"))
    }

    #if WEBSERVICE_CURL
    @Test("A cassette of a WebSocket connection")
    func conversation() async throws {
        let temporary = TemporaryFolder()
        let file = temporary.url.appendingPathComponent("prices.json")
        let server = try MockServer.forTest()
        server.on(
            .GET, "/prices",
            .webSocket { socket in
                _ = try await socket.next()
                try await socket.send(#"{"gold": 7}"#)
                try await socket.send("heartbeat")
                _ = try await socket.next()
            })
        let service = WebService(baseURLString: server.baseURLString)

        func use() async throws -> WebSocketMessage? {
            let cassette = try CassetteSession(
                file: file, mode: .once, session: CurlSession(),
                willRecord: { exchange in
                    var exchange = exchange
                    exchange.messages.removeAll { $0.content == .message(.text("heartbeat")) }
                    return exchange
                })
            service.session = cassette
            let socket = try await service.webSocket("/prices")
            try await socket.send(#"{"subscribe": "gold"}"#)
            let price = try await socket.messages.first { _ in true }
            try await socket.close()
            try cassette.finish()
            return price
        }

        let recorded = try await use()
        #expect(recorded == .text(#"{"gold": 7}"#))
        server.stop()
        #expect(try await use() == recorded)
        #expect(try !String(contentsOf: file, encoding: .utf8).contains("heartbeat"))
    }
    #endif

    private let service = WebService(baseURLString: "https://h/v1")

    @Test(.cassette("brewers")) func recordedBrewers() async throws {
        service.session = try CassetteSession.current
        #expect(try await service.GET("/brewers").string().value == "ale")
    }
}
