import Foundation
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking

@testable import BreweryModels

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@MainActor @Suite("The screen of a brewer", .timeLimit(.minutes(2)))
struct BrewerDetailTests {
    let clock = TestClock()
    let mock: MockService
    let app: BreweryApp
    let old = Brewer(id: 1, name: "Long Trail", state: "vermont")
    let new = Brewer(id: 1, name: "Long Trail Brewing", state: "vermont")

    init() {
        mock = MockService(clock: clock)
        app = BreweryApp(service: mock.service)
    }

    @Test("The stored value is shown first, then the server's")
    func storedThenServer() async throws {
        mock.on(.GET, "/brewers/1", [.json(old), .json(new).after(.seconds(2))])
        await app.detail(1).load()
        await mock.service.finishStoring()
        await clock.advance(by: .seconds(3_600))

        let detail = app.detail(1)
        let loading = Task { await detail.load() }
        await until { detail.brewer != nil }
        #expect(detail.brewer == old)
        #expect(detail.storedDate == clock.date.addingTimeInterval(-3_600))
        await clock.advance(by: .seconds(2))
        await loading.value
        #expect(detail.brewer == new)
        #expect(detail.storedDate == nil)
    }

    @Test("Without a connection, the stored value remains, with its date")
    func offline() async throws {
        mock.on(.GET, "/brewers/1", [.json(old), .error(URLError(.notConnectedToInternet))])
        await app.detail(1).load()
        await mock.service.finishStoring()
        let detail = app.detail(1)
        let loading = Task { await detail.load() }
        await until { detail.brewer != nil }
        await clock.advance(by: .seconds(60))  // the pauses of the retries
        await loading.value
        #expect(detail.brewer == old)
        #expect(detail.storedDate != nil)
        #expect(detail.message == "You are offline.")
    }

    @Test("A screen that disappears cancels its request and shows no error")
    func disappearance() async throws {
        mock.on(.GET, "/brewers/1", .json(new).after(.seconds(60)))
        let detail = app.detail(1)
        let loading = Task { await detail.load() }
        await mock.service.requestInFlight()
        loading.cancel()
        await loading.value
        #expect(detail.brewer == nil)
        #expect(detail.message == nil)
    }
}
