import Foundation
import Testing
import WebServiceCore
import WebServiceMocking

@testable import BreweryModels

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@MainActor @Suite("The list", .timeLimit(.minutes(2)))
struct BrewerListTests {
    let clock = TestClock()
    let mock: MockService
    let list: BrewerList

    init() {
        mock = MockService(clock: clock)
        list = BreweryApp(service: mock.service, executor: clock.executor).list()
    }

    private func brewers(_ ids: Range<Int>) -> [Brewer] {
        ids.map { Brewer(id: $0, name: "Brewer \($0)", state: "vermont") }
    }

    @Test("Reaching the last brewer loads the next page, until a page is short")
    func pages() async throws {
        mock.on(.path("/brewers") && .query("offset", "0"), .json(brewers(0..<20))).times(1)
        mock.on(.path("/brewers") && .query("offset", "20"), .json(brewers(20..<25))).times(1)
        list.reload()
        #expect(list.isLoading)
        await list.work?.value
        #expect(list.brewers == brewers(0..<20))
        list.appeared(list.brewers[5])  // not the last
        #expect(!list.isLoading)
        list.appeared(list.brewers[19])
        await list.work?.value
        #expect(list.brewers == brewers(0..<25))
        list.appeared(list.brewers[24])  // there is no further page
        #expect(!list.isLoading)
        try mock.verify()
    }

    @Test("Only the text that has not changed for 300 milliseconds is searched for")
    func debounce() async throws {
        mock.on(.GET, "/brewers", .json(brewers(7..<8)))
        for text in ["l", "lo", "lon", "long"] {
            list.text = text
            await clock.advance(by: .milliseconds(299))
        }
        #expect(mock.receivedRequests.isEmpty)
        await clock.advance(by: .milliseconds(1))
        await list.work?.value
        #expect(mock.receivedRequests.map { $0.queryItems.first?.value } == ["long"])
        #expect(list.brewers == brewers(7..<8))
    }

    @Test("A new search cancels the request of the previous one, whose response is not shown")
    func replacedSearch() async throws {
        mock.on(.path("/brewers") && .query("name", "ale"), .json(brewers(1..<2)).after(.seconds(5)))
        mock.on(.path("/brewers") && .query("name", "lager"), .json(brewers(2..<3)))
        list.text = "ale"
        let first = list.work
        await clock.advance(by: .seconds(1))
        #expect(mock.service.exchanges.count == 1)
        list.text = "lager"
        await first?.value
        #expect(mock.service.exchanges.isEmpty)
        await clock.advance(by: .seconds(10))
        await list.work?.value
        #expect(list.brewers == brewers(2..<3))
        #expect(list.message == nil)
    }

    @Test("Without a connection, the list remains and the user is informed")
    func offline() async throws {
        mock.on(.GET, "/brewers", [.json(brewers(0..<3)), .error(URLError(.notConnectedToInternet))])
        list.reload()
        await list.work?.value
        list.reload()
        await clock.advance(by: .seconds(60))  // the pauses of the retries
        await list.work?.value
        #expect(list.brewers == brewers(0..<3))
        #expect(list.message == "You are offline.")
        #expect(!list.isLoading)
    }
}
