import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

/// The same stubs and requests over a mock session, and over a server with real sessions.
@Suite("Stubs over all transports", .permit) struct StubScenarioTests {
    @Test("A stub responds in the same way over every transport", arguments: StubTransport.allCases, StubScenario.all)
    func same(transport: StubTransport, scenario: StubScenario) async throws {
        let (stubs, service) = try transport.make()
        let results = try await scenario.play(stubs, service)
        #expect(results == scenario.differences[transport]?.expected ?? scenario.expected)
    }

    @Test("At least 30 scenarios have the same results over every transport, and the differences are named")
    func count() {
        #expect(StubScenario.all.filter(\.differences.isEmpty).count >= 30)
        #expect(
            StubScenario.all.filter { !$0.differences.isEmpty }.map(\.name) == [
                "an error thrown by a closure is the error of the request",
                "an error as a response is the error of the request", "a request without a stub is an error",
            ])
        #expect(Set(StubScenario.all.map(\.name)).count == StubScenario.all.count)
    }
}
