@testable import BreweryKit
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTesting

@Suite(.mockService("https://brewery.test/v1"), .timeLimit(.minutes(5))) struct BreweryClientTests {
    let longTrail = Brewer(id: 1, name: "Long Trail", state: "vermont")

    @Test("The brewers of a state are requested by its name")
    func brewers() async throws {
        let mock = try MockService.current
        mock.on(.path("/v1/brewers") && .query("state", "new york"), .json([longTrail]))
        #expect(try await BreweryClient(service: mock.service).brewers(in: "new york") == [longTrail])
    }
}
