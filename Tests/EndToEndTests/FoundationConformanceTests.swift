import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

/// H-48: Foundation keeps the promises of every session, apart from its known defects.
///
/// Scenarios run one at a time because they measure time and share one connection pool.
@Suite("The conformance suite over Foundation", .covers("H-48"), .serialized, .permit)
struct FoundationConformanceTests {
    @Test(
        "Foundation passes all other scenarios",
        .covers(
            "C-44", "C-46", "C-47", "C-48", "C-49", "H-01", "H-02", "H-12", "H-19", "H-20", "H-21", "H-33", "H-34",
            "H-35"),
        arguments: FoundationBacked.allCases, SessionScenario.all)
    func foundation(kind: FoundationBacked, scenario: SessionScenario) async throws {
        if KnownDefect.all.contains(where: { $0.kind == kind && $0.scenario == scenario.name }) { return }
        try await scenario.run(over: kind.session)
    }
}
