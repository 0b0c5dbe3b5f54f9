import Testing
import WebServiceCurl
import WebServiceMocking

@Suite("Curl session: conformance", .serialized, .timeLimit(.minutes(10)))
struct CurlConformanceTests {
    private static let session = Result { try CurlSession() }

    @Test(
        "H-07, H-48: A CurlSession passes every scenario with handles that other scenarios have used",
        arguments: SessionScenario.all)
    func conforms(_ scenario: SessionScenario) async throws {
        try await scenario.run(over: Self.session.get())
    }

    @Test("H-48: a CurlSession passes every scenario with fresh handles", arguments: SessionScenario.all)
    func conformsWithFreshHandles(_ scenario: SessionScenario) async throws {
        try await scenario.run(over: CurlSession())
    }
}
