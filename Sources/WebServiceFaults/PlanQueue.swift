import WebServiceCore
import WebServiceMocking

/// The plans that are still to run: first single faults and pairs at concurrent exchanges, then
/// lasting faults, and further faults at exchanges that a fault has caused and that no earlier run
/// had.
struct PlanQueue {
    private let faults: [Fault]
    private let maximumDepth: Int
    private var plans = Queue<FaultPlan>()
    private var queued: Set<FaultPlan> = []
    private var known: Set<String> = []
    /// The situations of new exchanges: the name, the faulty exchanges, and whether each fault
    /// followed an effect.
    private var situations: Set<[String]> = []
    /// The number of lasting faults of an exchange after which the code did not end.
    private var endless: [String: Int] = [:]
    /// The number of such faults after which no more are tried, because each takes a long time.
    private static let patience = 3

    init(faults: [Fault], maximumDepth: Int) { (self.faults, self.maximumDepth) = (faults, maximumDepth) }

    /// Creates a queue with given plans, to which no plans are added.
    init(_ plans: [FaultPlan]) {
        self.init(faults: [], maximumDepth: 0)
        for plan in plans { self.plans.append(plan) }
    }

    /// The number of plans that are known and have not run.
    var count: Int { plans.count }

    mutating func popFirst() -> FaultPlan? {
        while let plan = plans.popFirst() {
            guard let last = plan.steps.last, last.isLasting, endless[last.exchange, default: 0] >= Self.patience else {
                return plan
            }
        }
        return nil
    }

    /// Adds the single faults of the exchanges of a run without faults, and pairs of faults.
    mutating func add(baseline: FaultTrace) {
        known = Set(baseline.exchanges.map(\.name))
        for exchange in baseline.exchanges { add(exchange, to: []) }
        guard maximumDepth > 1 else { return }
        let requests = baseline.exchanges.filter { $0.kind == .request }
        for (place, first) in requests.enumerated() {
            // The same fault at two requests that were in flight at the same time.
            for second in requests[(place + 1)...] where second.arrival <= first.release {
                for fault in faults where !fault.cancelsCaller && fault.condition(first) && fault.condition(second) {
                    add([FaultPlan.Step(first.name, fault.name), FaultPlan.Step(second.name, fault.name)])
                }
            }
        }
    }

    /// Adds the plans that follow from a run.
    ///
    /// - Parameter hasFailed: Whether a check has failed. Longer plans then show nothing new.
    mutating func add(after trace: FaultTrace, hasFailed: Bool) {
        let steps = trace.plan.steps
        guard let last = steps.last, maximumDepth > 0 else { return }
        if last.isLasting, trace.end == .endless || trace.end == .overtime { endless[last.exchange, default: 0] += 1 }
        addLasting(last, after: steps.dropLast(), trace)
        let names = Set(trace.exchanges.map(\.name))
        defer { if steps.count > 1 { known.formUnion(names) } }
        guard !hasFailed, steps.count < maximumDepth else { return }
        let effects = trace.exchanges.filter { $0.fault != nil }.map { $0.deliveries > 0 ? "effect" : "no effect" }
        for exchange in trace.exchanges where exchange.fault == nil && !known.contains(exchange.name) {
            let situation = [exchange.name] + steps.map(\.exchange) + effects
            if situations.insert(situation).inserted { add(exchange, to: steps) }
        }
    }

    /// Adds the lasting form of a fault, if there were later exchanges that it affects.
    private mutating func addLasting(_ step: FaultPlan.Step, after steps: [FaultPlan.Step], _ trace: FaultTrace) {
        guard !step.isLasting, let sign = step.exchange.lastIndex(of: "#"), !step.exchange[sign...].contains("."),
            let fault = faults.first(where: { $0.name == step.fault }) ?? Fault(positioned: step.fault),
            !fault.cancelsCaller, let place = trace.exchanges.firstIndex(where: { $0.name == step.exchange }),
            trace.exchanges[(place + 1)...].contains(where: { $0.name.hasPrefix(step.exchange[...sign]) })
        else { return }
        add(steps + [FaultPlan.Step(step.exchange, step.fault, isLasting: true)])
    }

    private mutating func add(_ exchange: FaultTrace.Exchange, to steps: [FaultPlan.Step]) {
        // The target of a redirect is the same resource as before.
        guard exchange.request.origin != Fault.otherOrigin else { return }
        let names = faults.filter { $0.condition(exchange) }.map(\.name)
        for name in names + exchange.facts.positions.map({ "cut@\($0)" }) {
            add(steps + [FaultPlan.Step(exchange.name, name)])
        }
    }

    private mutating func add(_ steps: [FaultPlan.Step]) {
        let plan = FaultPlan(steps)
        if queued.insert(plan).inserted { plans.append(plan) }
    }
}
