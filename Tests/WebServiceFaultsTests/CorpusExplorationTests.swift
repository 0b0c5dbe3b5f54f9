import Foundation
import TestSupport
import Testing
import WebServiceFaults

/// Explorations of the corpus. `WEBSERVICE_SOAK=1` runs all clients and the control.
@Suite(.exclusive) struct CorpusExplorationTests {
    @Test("the explorer finds the fault of a faulty client", arguments: sample(CorpusClient.faulty, every: 5))
    func found(client: CorpusClient) async {
        let report = await client.run(Exploration(maximumFailures: 1))
        let plan = report.failures.first.map { "\($0.plan)" } ?? ""
        print("FOUND", client.name, report.runs, report.duration, client.isSmallest(plan) ? "smallest" : "other", plan)
        #expect(!report.failures.isEmpty, "\(client.name), expected \(client.plans.prefix(4))\n\(report)")
        #expect(report.problems == [])
    }

    @Test(
        "the explorer has no alarm in a correct client",
        arguments: sample(CorpusClient.correct, every: 5, thorough: 5))
    func noAlarm(client: CorpusClient) async {
        let report = await client.run(Exploration())
        #expect(report.failures.isEmpty, "\(client.name)\n\(report)")
        #expect(report.problems == [])
    }

    @Test(
        "with the same number of runs, random plans find fewer faults",
        .enabled(if: ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1"), arguments: 1...3)
    func control(seed: Int) async {
        var random = SplitMix(state: UInt64(seed))
        var found = 0
        var (steps, runs) = (0, 0)
        let names = Fault.standard.map(\.name)
        for client in CorpusClient.faulty {
            // The same number of runs that the explorer needs for its first failure.
            let report = await client.run(Exploration(maximumFailures: 1))
            let later = report.exchanges.map { $0.prefix { $0 != "#" } + "#2" }
            let exchanges = Array(Set(report.exchanges + later.map { String($0) })).sorted()
            let plans = (0..<report.runs).map { _ in
                var steps: [FaultPlan.Step] = []
                for exchange in exchanges where Int.random(in: 0..<4, using: &random) == 0 {
                    let fault = names.randomElement(using: &random) ?? "lost"
                    steps.append(.init(exchange, fault, isLasting: Int.random(in: 0..<3, using: &random) == 0))
                }
                return FaultPlan(steps)
            }
            let control = await client.run(Exploration(plans: plans, maximumFailures: 1))
            runs += control.runs
            if let failure = control.failures.first {
                found += 1
                steps += failure.plan.steps.count
            }
        }
        #expect(found < CorpusClient.faulty.count)
        print(
            "CONTROL seed \(seed): found \(found) of 40, \(Double(steps) / Double(max(1, found))) faults a plan, "
                + "\(runs) runs")
    }
}

private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
