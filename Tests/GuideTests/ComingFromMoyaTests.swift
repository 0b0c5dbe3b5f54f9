import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking

// Every snippet of Documentation/Migrating-from-Moya.md that is not in GuideSnippets.swift, with its
// expected behavior. `DocumentationTests` verifies that none is missing.

struct BreweryAPIClient: Sendable {
    let service: WebService

    func brewers(state: String) -> TypedTask<[Brewer]> {
        service.GET("/brewers").setQueryParameters(["state": state]).decode([Brewer].self)
    }

    func add(_ brewer: Brewer) -> TypedTask<Void> {
        service.POST("/brewers").setJSON(brewer).empty()
    }
}

@Suite("Coming from Moya", .permit)
struct ComingFromMoyaTests {
    @Test("Handlers receive a value or an error on the main actor")
    func handlers() async throws {
        let mock = MockService()
        let client = BreweryAPIClient(service: mock.service)
        mock.on(.path("/brewers") && .query("state", "vermont"), [.json([Brewer(name: "Long Trail")]), .status(500)])
        let printed = Collected<String>()
        @Sendable func print(_ value: Any) { printed.add("\(value)") }
        for count in 1...2 {
            client.brewers(state: "vermont")
                .updateUI { brewers in print(brewers.count) }
                .updateErrorUI { error in print("no brewers: \(error)") }
                .resume()
            await printed.wait(for: count)
        }
        #expect(printed.values.first == "1")
        #expect(printed.values.last?.hasPrefix("no brewers: unacceptableStatus") == true)
    }

    @Test("A header field, a token and a log replace plugins")
    func plugins() async throws {
        let mock = MockService()
        let (service, token, printed) = (mock.service, "canary", Collected<String>())
        @Sendable func print(_ text: String) { printed.add(text) }
        mock.on(.header("X-Channel", "beta") && .header("Authorization", "Bearer canary"), .status(201))
        service.interceptors = [.retry(), .headers(["X-Channel": "beta"]), .bearer(token)]
        service.observers = [.log { entry in print(entry.text) }]
        try await BreweryAPIClient(service: service).add(Brewer(name: "Trillium")).value
        await printed.wait(for: 1)
        #expect(printed.values.allSatisfy { !$0.contains("canary") })
    }

    @Test("A stub of the test replaces sample data")
    func stubs() async throws {
        let mock = MockService()
        mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
        let client = BreweryAPIClient(service: mock.service)
        let brewers = try await client.brewers(state: "vermont").value
        #expect(brewers == [Brewer(name: "Long Trail")])
    }
}
