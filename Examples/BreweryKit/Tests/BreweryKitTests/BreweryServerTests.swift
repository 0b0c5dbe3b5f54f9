@testable import BreweryKit
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The client over real connections.
@Suite(.timeLimit(.minutes(5))) struct BreweryServerTests {
    @Test("A request whose connection is closed without a response is sent again")
    func lostConnection() async throws {
        let server = try MockServer()
        defer { server.stop() }
        let brewers = MockResponse.json([Brewer(id: 1, name: "Long Trail", state: "vermont")])
        var lost = MockResponse.status(200)
        lost.wire = .disconnect
        server.on(.GET, "/brewers", [lost, brewers])
        let client = BreweryClient(service: WebService(baseURLString: server.baseURLString))
        #expect(try await client.brewers(in: "vermont").map(\.name) == ["Long Trail"])
        try server.verify()
    }
}
