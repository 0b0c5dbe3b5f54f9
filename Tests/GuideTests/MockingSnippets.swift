import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTesting

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

        session.on(.url("https://cdn.example.com/labels/{id}"), .json(["id": id, "name": name, "note": nil]))
        session.on(.host("api.example.com"), .json(["kegs": kegs]).headers(["ETag": "\"7\"", "Age": "0"]))
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

    private let service = WebService(baseURLString: "https://h/v1")

    @Test(.cassette("brewers")) func recordedBrewers() async throws {
        service.session = try CassetteSession.current
        #expect(try await service.GET("/brewers").string().value == "ale")
    }
}
