@testable import BreweryKit
import Foundation
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The client with a clock that the test advances, and with recorded exchanges.
@Suite(.timeLimit(.minutes(5))) struct BreweryClockTests {
    @Test("A server that does not respond for 60 seconds is given up")
    func silence() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        var silence = MockResponse.status(200)
        silence.wire = .noResponse
        mock.on(.any, silence).times(1)
        let client = BreweryClient(service: mock.service)
        let brewers = Task(executorPreference: clock.executor) { try await client.brewers(in: "vermont") }
        await clock.advance(by: .seconds(61))
        let error = await #expect(throws: URLError.self) { try await brewers.value }
        #expect(error?.code == .timedOut)
    }

    @Test("The brewers of a recorded response are decoded")
    func cassette() async throws {
        let file = try #require(Bundle.module.url(forResource: "brewers", withExtension: "json"))
        let cassette = try CassetteSession(file: file, mode: .replay)
        let service = WebService(baseURLString: "https://brewery.example/v1")
        service.session = cassette
        let brewers = try await BreweryClient(service: service).brewers(in: "vermont")
        #expect(brewers.map(\.name) == ["Long Trail", "Hill Farmstead"])
        try cassette.finish()
    }
}
