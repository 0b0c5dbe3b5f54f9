@testable import BreweryKit
import Foundation
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.mockService("https://brewery.test/v1"), .timeLimit(.minutes(5))) struct BreweryClientTests {
    let longTrail = Brewer(id: 1, name: "Long Trail", state: "vermont")

    @Test("The brewers of a state are requested by its name")
    func brewers() async throws {
        let mock = try MockService.current
        mock.on(.path("/v1/brewers") && .query("state", "new york"), .json([longTrail]))
        #expect(try await BreweryClient(service: mock.service).brewers(in: "new york") == [longTrail])
    }

    @Test("A brewer is found by its id, and an unknown id is nil")
    func brewer() async throws {
        let mock = try MockService.current
        mock.on(.GET, "/v1/brewers/{id}", .status(404))
        mock.on(.GET, "/v1/brewers/1", .json(longTrail))
        let client = BreweryClient(service: mock.service)
        #expect(try await client.brewer(1) == longTrail)
        #expect(try await client.brewer(2) == nil)
    }

    @Test("A new brewer is sent as JSON and returned with its id")
    func add() async throws {
        let mock = try MockService.current
        mock.on(.method(.POST) && .path("/v1/brewers") && .json(["name": "Trillium"])) { request in
            let sent = try JSONDecoder().decode([String: String].self, from: request.body)
            return .json(Brewer(id: 7, name: sent["name"] ?? "", state: sent["state"] ?? ""), status: 201)
        }
        let brewer = try await BreweryClient(service: mock.service).add(name: "Trillium", state: "massachusetts")
        #expect(brewer == Brewer(id: 7, name: "Trillium", state: "massachusetts"))
    }

    @Test("A busy server is asked again, up to three times")
    func retries() async throws {
        let mock = try MockService.current
        let stub = mock.on(.GET, "/v1/brewers", [503, 503, .json([longTrail])])
        #expect(try await BreweryClient(service: mock.service).brewers(in: "vermont") == [longTrail])
        #expect(stub.callCount == 3)
    }

    @Test("Two clients of one service send a request up to three times, as one client does")
    func sharedService() async throws {
        let mock = try MockService.current
        let stub = mock.on(.GET, "/v1/brewers", .status(503))
        let clients = [BreweryClient(service: mock.service), BreweryClient(service: mock.service)]
        for client in clients { _ = try? await client.brewers(in: "vermont") }  // each request fails
        #expect(stub.callCount == 6)
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

    @Test("Without a network, the error is that of the transport")
    func offline() async throws {
        let mock = try MockService.current
        mock.on(.any, .error(URLError(.notConnectedToInternet)))
        let error = await #expect(throws: URLError.self) {
            try await BreweryClient(service: mock.service).brewers(in: "vermont")
        }
        #expect(error?.code == .notConnectedToInternet)
    }
}
