import Foundation
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking

@testable import BreweryModels

@MainActor @Suite("The account", .timeLimit(.minutes(2)))
struct AccountTests {
    let mock = MockService()
    let app: BreweryApp
    let brewer = Brewer(id: 1, name: "Long Trail", state: "vermont")

    init() {
        app = BreweryApp(service: mock.service)
    }

    @Test("After a log-in, requests are sent with the token; after a log-out, without")
    func logInAndOut() async throws {
        mock.on(.POST, "/token", .json(["access_token": "t1"]))
        mock.on(.GET, "/brewers/1", .json(brewer))
        await app.account.logIn(user: "ann", password: "malt")
        #expect(app.account.state == .loggedIn(user: "ann"))
        await app.detail(1).load()
        await app.account.logOut()
        #expect(app.account.state == .loggedOut)
        await app.detail(1).load()
        let tokens = mock.receivedRequests.map { $0.headers[.authorization] }
        #expect(tokens == [nil, "Bearer t1", nil])
    }

    @Test("A wrong password is reported, and the user remains logged out")
    func wrongPassword() async throws {
        mock.on(.POST, "/token", .status(401))
        await app.account.logIn(user: "ann", password: "hops")
        #expect(app.account.state == .loggedOut)
        #expect(app.account.message == "The password is wrong.")
    }

    @Test("A log-out cancels requests and removes stored values")
    func logOutRemoves() async throws {
        mock.on(.GET, "/brewers/1", .json(brewer))
        mock.on(.GET, "/brewers/2", .json(brewer).after(.seconds(60)))
        await app.detail(1).load()
        await mock.service.finishStoring()
        let slow = app.detail(2)
        let loading = Task { await slow.load() }
        await mock.service.requestInFlight()
        await app.account.logOut()
        await loading.value
        #expect(slow.message == nil)
        let stored = await mock.service.stored(BrewerRequest(id: 1)).result
        #expect(throws: WebServiceError.self) { try stored.get() }
    }
}
