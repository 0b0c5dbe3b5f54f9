import Foundation
import TestSupport
import Testing
import WebServiceConformance
import WebServiceCore
import WebServiceMocking

/// Reports when a newer Foundation no longer has a listed defect.
@Suite("Known defects of Foundation", .serialized, .permit)
struct KnownDefectTests {
    @Test("Every listed defect names a scenario")
    func names() {
        let names = Set(SessionScenario.all.map(\.name))
        for defect in KnownDefect.all { #expect(names.contains(defect.scenario)) }
    }

    @Test(
        "A known defect of Foundation outside the scenarios is still present",
        arguments: sample(PlatformDefect.all, every: 4))
    func platformDefect(_ defect: PlatformDefect) async throws {
        let run = try await SessionProbe.run(["probe", defect.probe])
        if run.isImpossible { return print("SKIPPED: \(defect.probe): the environment does not allow it") }
        switch defect.effect {
        case .kills: #expect(run.status < 0, "\(run.status == 0 ? gone : run.output)")
        default: #expect(run.status == 1, "\(run.status == 0 ? gone : run.output)")
        }
    }

    @Test(
        "A known defect of Foundation is still present",
        arguments: sample(KnownDefect.all, every: 8))
    func knownDefect(_ defect: KnownDefect) async throws {
        let run = try await probe(defect)
        switch defect.effect {
        case .breaks:
            #expect(
                run.status == 1, "\(run.status == 0 ? gone : run.output)")
        case .kills: #expect(run.status < 0, "\(run.status == 0 ? gone : run.output)")
        case .varies: #expect([0, 1].contains(run.status), "\(run.output)")
        case .mayKill: #expect(run.status < 0 || run.status == 0, "\(run.output)")
        }
    }

    private let gone = "the defect no longer exists: remove it from the list"

    /// Runs the scenario in a separate process: some scenarios end their process, and others affect
    /// later ones.
    private func probe(_ defect: KnownDefect) async throws -> SessionProbe.Run {
        // A busy machine may need more than a second until the process ends.
        let limit = [.kills, .mayKill].contains(defect.effect) ? "20" : "1"
        return try await SessionProbe.run([defect.kind.rawValue, defect.scenario, limit])
    }
}
