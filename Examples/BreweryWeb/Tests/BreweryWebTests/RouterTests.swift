import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Testing
import WebServiceCore
import WebServiceMocking

@testable import BreweryWeb

@Suite("The handlers", .timeLimit(.minutes(2)))
struct RouterTests {
    let clock = TestClock()
    let mock: MockService

    init() {
        mock = MockService(clock: clock)
        configure(mock.service)
    }

    private func get(_ path: String, headers: [String: String] = [:]) async throws -> TestResponse {
        var fields = HTTPFields()
        for (name, value) in headers { fields[name] = value }
        return try await Application(router: breweryRouter(service: mock.service)).test(.router) { [fields] client in
            try await client.execute(uri: path, method: .get, headers: fields)
        }
    }

    @Test("A handler returns values of the brewery API")
    func values() async throws {
        mock.on(.path("/brewers") && .query("state", "vermont"), .json([["name": "Long Trail"]]))
        let response = try await get("/states/vermont/brewers")
        #expect(response.status == .ok)
        #expect(String(buffer: response.body) == #"["Long Trail"]"#)
    }

    @Test("A handler combines the values of two requests")
    func twoRequests() async throws {
        mock.on(.GET, "/brewers/1", .json(["name": "Long Trail"]))
        mock.on(.GET, "/brewers/1/reviews", .json(JSONValue.array(["malty"])))
        let response = try await get("/brewers/1")
        let page = try JSONDecoder().decode(JSONValue.self, from: Data(response.body.readableBytesView))
        #expect(page == ["name": "Long Trail", "reviews": ["malty"]])
    }

    @Test("The requests of a handler end after the time that its client waits")
    func deadline() async throws {
        mock.on(.GET, "/brewers/1", .json(["name": "Long Trail"]))
        mock.on(.GET, "/brewers/1/reviews", .json(JSONValue.array([])).after(.seconds(5)))
        let response = Task { try await get("/brewers/1", headers: ["X-Request-Timeout": "2000"]) }
        for await exchanges in mock.service.exchangeUpdates where !exchanges.isEmpty { break }
        await clock.advance(by: .seconds(2))
        #expect(try await response.value.status == .gatewayTimeout)
        #expect(mock.service.exchanges.isEmpty)
    }

    @Test("The trace of the incoming request continues with a new span")
    func trace() async throws {
        mock.on(.GET, "/brewers", .json(JSONValue.array([])))
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        _ = try await get("/states/maine/brewers", headers: ["traceparent": parent, "tracestate": "a=1"])
        let request = try #require(mock.receivedRequests.first)
        let sent = try #require(request.headers["traceparent"]).split(separator: "-")
        #expect(sent[1] == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(sent[2] != "00f067aa0ba902b7")
        #expect(request.headers["tracestate"] == "a=1")
    }

    @Test("Errors of the brewery API have a status of this server", arguments: [(404, 404), (400, 502), (401, 502)])
    func failures(upstream: Int, status: Int) async throws {
        mock.on(.GET, "/brewers", .status(upstream))
        #expect(try await get("/states/maine/brewers").status.code == status)
    }

    @Test("A body is forwarded completely")
    func log() async throws {
        mock.on(.GET, "/log", .text("first\nsecond\n"))
        let response = try await get("/log")
        #expect(String(buffer: response.body) == "first\nsecond\n")
        #expect(response.headers[.contentType]?.hasPrefix("text/plain") == true)
    }
}
