import TestSupport
import Testing
import WebServiceCurl
import WebServiceMocking

@Suite("Curl session: conformance", .serialized, .permit)
struct CurlConformanceTests {
    private static let session = Result { try CurlSession() }

    @Test(
        "A CurlSession passes every scenario with handles that other scenarios have used", .covers("H-07", "H-48"),
        arguments: SessionScenario.all)
    func conforms(_ scenario: SessionScenario) async throws {
        try await scenario.run(over: Self.session.get())
    }

    @Test("A CurlSession passes every scenario with fresh handles", .covers("H-48"), arguments: SessionScenario.all)
    func conformsWithFreshHandles(_ scenario: SessionScenario) async throws {
        try await scenario.run(over: CurlSession())
    }
}
