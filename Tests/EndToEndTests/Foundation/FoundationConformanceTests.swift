import Foundation
import TestSupport
import Testing
import WebServiceConformance
import WebServiceCore
import WebServiceMocking

/// Foundation keeps the promises of every session, apart from its known defects.
///
/// Scenarios run one at a time because they measure time and share one connection pool.
@Suite("The conformance suite over Foundation", .serialized, .permit)
struct FoundationConformanceTests {
    @Test(
        "Foundation passes all other scenarios",
        arguments: FoundationBacked.allCases, SessionScenario.all)
    func foundation(kind: FoundationBacked, scenario: SessionScenario) async throws {
        if KnownDefect.all.contains(where: { $0.kind == kind && $0.scenario == scenario.name }) { return }
        try await scenario.run(over: kind.session, limit: scenarioLimit)
    }
}
