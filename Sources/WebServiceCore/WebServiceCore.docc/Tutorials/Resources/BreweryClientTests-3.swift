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

    @Test("A busy server is asked again, up to three times")
    func retries() async throws {
        let mock = try MockService.current
        let stub = mock.on(.GET, "/v1/brewers", [503, 503, .json([longTrail])])
        #expect(try await BreweryClient(service: mock.service).brewers(in: "vermont") == [longTrail])
        #expect(stub.callCount == 3)
    }

    @Test("A rejected order is an error with the reason of the server, and is not repeated")
    func rejectedOrder() async throws {
        let mock = try MockService.current
        mock.on(.POST, "/v1/orders", .problem(409, title: "Out of stock", detail: "2 kegs are left")).times(1)
        let error = await #expect(throws: BreweryProblem.self) {
            try await BreweryClient(service: mock.service).order(Order(brewer: 1, kegs: 5))
        }
        #expect(error?.title == "Out of stock" && error?.detail == "2 kegs are left")
        let request = try #require(mock.receivedRequests.first)
        #expect(RequestMatcher.json(["brewer": 1, "kegs": 5]).mismatches(in: request) == [])
    }
}
