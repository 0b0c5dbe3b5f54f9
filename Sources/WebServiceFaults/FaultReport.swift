import Foundation
import WebServiceCore

/// The result of an exploration.
public struct FaultReport: Sendable, CustomStringConvertible {
    /// A condition that did not hold, with the first plan that showed it.
    public struct Failure: Sendable, CustomStringConvertible {
        /// The first plan for which the condition did not hold.
        public let plan: FaultPlan
        /// The description of the violated condition.
        public let message: String
        /// The exchanges of the run, one per line, and how it ended.
        public let timeline: String
        /// The further plans with the same message.
        public internal(set) var otherPlans: [FaultPlan] = []
        /// How the second run with the plan differed; `nil` if it failed in the same way.
        public internal(set) var difference: String?
        /// What failures that are reported together have in common.
        let key: String

        /// The plan, the message, the timeline and the line for a regression test.
        public var description: String {
            var lines = ["\(plan): \(message)", timeline]
            if let difference { lines.append("  not repeatable: \(difference)") }
            if !otherPlans.isEmpty {
                // A fault of another exchange may show another cause.
                var seen: Set = [plan.steps.map(\.exchange)]
                let first = otherPlans.filter { seen.insert($0.steps.map(\.exchange)).inserted }
                let shown = (first + otherPlans.filter { !first.contains($0) }).prefix(8).map(\.description)
                let more = otherPlans.count > 8 ? " and \(otherPlans.count - 8) more" : ""
                lines.append("  fails in the same way with: \(shown.joined(separator: ", "))\(more)")
            }
            lines.append("  try await explorer.replay(\"\(plan)\") { mock in … } check: { run in … }")
            return lines.joined(separator: "\n")
        }
    }

    /// The conditions that did not hold, in the order in which they were found.
    public internal(set) var failures: [Failure] = []
    /// The number of runs.
    public internal(set) var runs = 0
    /// The number of known plans that did not run because a limit of ``FaultExplorer/Budget`` was
    /// reached or the exploration could not continue after a problem.
    public internal(set) var remaining = 0
    /// The reason why the ``remaining`` plans did not run.
    var earlyEnd: String?
    /// The names of the exchanges without faults, in order.
    public internal(set) var exchanges: [String] = []
    /// The number of runs with faults by their outcome, such as `returned a value` or
    /// `threw WebServiceError deadline`.
    public internal(set) var outcomes: [String: Int] = [:]
    /// The duration in real time.
    public internal(set) var duration = Duration.zero
    /// The problems of the exploration, such as two runs without faults that differ.
    public internal(set) var problems: [String] = []
    /// For each exchange with a single fault, the number of those faults after which the code
    /// returned a value.
    private var recoveries: [String: Int] = [:]

    mutating func note(_ trace: FaultTrace) {
        outcomes[trace.outcome, default: 0] += 1
        guard trace.plan.steps.count == 1, let step = trace.plan.steps.first, !step.isLasting else { return }
        recoveries[step.exchange, default: 0] += trace.end == .returned ? 1 : 0
    }

    /// Adds a failure, or only its plan if an earlier failure has the same key.
    ///
    /// - Returns: Whether the failure is new.
    @discardableResult
    mutating func add(_ violation: FaultViolation, of trace: FaultTrace) -> Bool {
        if let index = failures.firstIndex(where: { $0.key == violation.key }) {
            if failures[index].plan != trace.plan { failures[index].otherPlans.append(trace.plan) }
            return false
        }
        let (message, timeline) = (violation.description, trace.description)
        failures.append(Failure(plan: trace.plan, message: message, timeline: timeline, key: violation.key))
        return true
    }

    /// The exchanges for which the code returned no value after any single fault.
    public var unrecovered: [String] { exchanges.filter { recoveries[$0] == 0 } }

    /// The failures, the problems and a summary.
    public var description: String {
        var lines = failures.map(\.description) + problems
        let seconds = String(format: "%.1f", duration.inSeconds)
        let kinds = outcomes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) \($0.key)" }
        lines.append(
            "\(outcomes.values.reduce(0, +)) plans of faults in \(runs) runs of \(exchanges.count) exchanges, "
                + "\(seconds) s: \(kinds.isEmpty ? "no plan ran" : kinds.joined(separator: ", "))")
        let lost = unrecovered.joined(separator: ", ")
        if !lost.isEmpty { lines.append("the code recovered from no fault of: \(lost)") }
        if remaining > 0, let earlyEnd { lines.append("\(earlyEnd); \(remaining) known plans did not run") }
        return lines.joined(separator: "\n")
    }
}
