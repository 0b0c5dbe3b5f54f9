import TestSupport
import Testing
import WebServiceConformance
import WebServiceCurl
import WebServiceMocking

@Suite("Curl session: conformance", .serialized, .permit)
struct CurlConformanceTests {
    private static let session = Result { try CurlSession() }

    @Test(
        "A CurlSession passes every scenario with handles that other scenarios have used",
        arguments: SessionScenario.all)
    func conforms(_ scenario: SessionScenario) async throws {
        try await scenario.run(over: Self.session.get(), limit: scenarioLimit)
    }

    @Test("A CurlSession passes the scenarios with fresh handles", arguments: sample(SessionScenario.all, every: 4))
    func conformsWithFreshHandles(_ scenario: SessionScenario) async throws {
        try await scenario.run(over: CurlSession(), limit: scenarioLimit)
    }
}
