/// The course of an exploration.
struct Exploration<Model: Sendable, Output: Sendable> {
    typealias Run = FaultRun<Model, Output>
    typealias Check = (_ run: Run) async throws -> Void

    private let explorer: FaultExplorer<Model>
    private let runner: Runner<Model, Output>
    private var plans: PlanQueue
    private(set) var report = FaultReport()
    private let start = ContinuousClock.now
    private var lastProgress = ContinuousClock.now
    private let planFile: PlanFile
    private var settings: RunDriver.Settings

    init(_ explorer: FaultExplorer<Model>, _ runner: Runner<Model, Output>, at place: String) {
        (self.explorer, self.runner, planFile) = (explorer, runner, PlanFile(place))
        settings = RunDriver.Settings(maximumExchanges: explorer.budget.exchanges)
        plans = PlanQueue(faults: explorer.faults, maximumDepth: explorer.budget.depth)
    }

    nonisolated(nonsending) mutating func explore(_ check: Check) async {
        defer {
            report.duration = ContinuousClock.now - start
            planFile.remove()
        }
        if let plan = planFile.abandonedPlan {
            report.problems.append("the process of an earlier exploration ended during the plan '\(plan)'")
        }
        guard await runWithoutFaults(check) else { return }
        if let given = explorer.plans { plans = PlanQueue(given) }
        var canContinue = true
        while canContinue, reachedLimit == nil, let plan = await nextPlan() {
            canContinue = await run(plan, check)
            if canContinue { printProgress(plan) }
        }
        let limit = reachedLimit.map { "the maximum \($0) was reached" }
        (report.remaining, report.earlyEnd) = (plans.count, canContinue ? limit : "the exploration could not continue")
        for request in runner.unknown(among: settings.counted) {
            report.problems.append(
                "the check counts the effects of \(request), but no run has such a request, and no stub matches it; "
                    + "the code sends \(report.exchanges.prefix(8).joined(separator: ", "))")
        }
    }

    /// The limit of the budget that has been reached; `nil` for none.
    private var reachedLimit: String? {
        if report.failures.count >= explorer.budget.failures { return "number of failures" }
        if report.runs >= explorer.budget.runs { return "number of runs" }
        return ContinuousClock.now - start < explorer.budget.time ? nil : "duration"
    }

    /// Returns the plan of a run whose code continued after its end, if there is one, or else a new
    /// plan.
    nonisolated(nonsending) private mutating func nextPlan() async -> FaultPlan? {
        guard !settings.isThorough else { return plans.popFirst() }
        var late = runner.takeLate()
        if late == nil {
            if let plan = plans.popFirst() { return plan }
            await runner.flushLate()
            late = runner.takeLate()
        }
        settings.isThorough = late != nil
        return late
    }

    private mutating func printProgress(_ plan: FaultPlan) {
        guard let print = explorer.progress, ContinuousClock.now - lastProgress > .seconds(5) else { return }
        lastProgress = .now
        print(
            "FaultExplorer: \(report.runs) runs, \(report.failures.count) failures, \(plans.count) known plans remain; "
                + "last: \(plan)")
    }

    /// Makes the runs without faults, which show the exchanges and whether the code is
    /// deterministic.
    ///
    /// - Returns: Whether the exploration can continue.
    nonisolated(nonsending) private mutating func runWithoutFaults(_ check: Check) async -> Bool {
        guard let first = await made(FaultPlan()) else { return false }
        report.exchanges = first.requests.map(\.name)
        settings.isThorough = first.trace.seesUncounted
        guard var second = await made(FaultPlan()) else { return false }
        if !settings.isThorough, second.trace.difference(from: first.trace) != nil {
            // Code without requests may have run in the first run only because the driver waited.
            settings.isThorough = true
            guard let again = await made(FaultPlan()) else { return false }
            second = again
        }
        let wait = max(first.trace.realWait, second.trace.realWait)
        settings.patience = max(100, min(2_000, Int(wait / .milliseconds(1)) * 4))
        if let difference = second.trace.difference(from: first.trace) {
            report.problems.append("two runs without faults differ: \(difference)")
            return false
        }
        _ = await hasViolation(first, check)
        let missing = first.requests.compactMap(\.error).first { $0.contains("no stub matches") }
        let silence = first.requests.isEmpty ? "the code sends no request over the service of the mock" : nil
        if let problem = missing ?? first.end.problem ?? silence {
            report.problems.append("without faults, \(problem)")
            return false
        }
        // Code that sends many more requests than without faults repeats itself.
        settings.maximumExchanges = min(settings.maximumExchanges, max(200, 4 * first.requests.count))
        plans.add(baseline: first.trace)
        return true
    }

    /// - Returns: Whether the exploration can continue.
    nonisolated(nonsending) private mutating func run(_ plan: FaultPlan, _ check: Check) async -> Bool {
        guard let made = await made(plan) else { return false }
        report.note(made.trace)
        let hasFailed = await hasViolation(made, check)
        if made.trace.isStuck {
            let problem = made.end.problem ?? "the run did not end"
            report.problems.append("\(plan): \(problem)")
            return false
        }
        plans.add(after: made.trace, hasFailed: hasFailed)
        return true
    }

    /// Reports the violation that a check finds in a run, and how another run with the same plan
    /// differs.
    ///
    /// - Returns: Whether the check finds one.
    nonisolated(nonsending) private mutating func hasViolation(_ run: Run, _ check: Check) async -> Bool {
        guard let violation = await violation(of: run, check) else { return false }
        guard report.add(violation, of: run.trace), let again = await made(run.plan) else { return true }
        var difference = again.trace.difference(from: run.trace)
        if difference == nil, await self.violation(of: again, check) == nil {
            difference = "the second run passed the check; the code or the stubs keep state between runs"
        }
        report.failures[report.failures.count - 1].difference = difference
        return true
    }

    /// Makes a run, a second time if code has run that was not expected.
    nonisolated(nonsending) private mutating func made(_ plan: FaultPlan) async -> Run? {
        do {
            report.runs += 1
            planFile.add("\(plan)")
            let made = try await runner.run(plan, settings)
            guard made.trace.seesUncounted, !settings.isThorough else { return made }
            settings.isThorough = true
        } catch {
            report.problems.append("the stubs could not be created: \(error)")
            return nil
        }
        return await made(plan)
    }

    /// Returns why a check fails; `nil` if it does not.
    nonisolated(nonsending) private func violation(of run: Run, _ check: Check) async -> FaultViolation? {
        do { try await check(run) } catch { return error as? FaultViolation ?? FaultViolation("\(error)") }
        return nil
    }
}
