import WebServiceFaults
import WebServiceMocking

/// How the clients of the corpus are run: the only place that knows how an explorer is configured.
struct Exploration: Sendable {
    /// The plans; `nil` for those of the explorer.
    var plans: [FaultPlan]?
    var maximumFailures = Int.max

    /// Explores a client.
    ///
    /// - Parameters:
    ///   - stubs: Creates the stubs of each run, and returns the state of the server.
    ///   - client: The client's code.
    ///   - check: Throws if the run violates what the client must guarantee. In addition, each
    ///     client must end.
    func callAsFunction<Model: Sendable, Output: Sendable>(
        _ stubs: @escaping @Sendable (_ mock: MockService) -> Model,
        client: @escaping @Sendable (_ mock: MockService) async throws -> Output,
        check: @escaping @Sendable (_ run: FaultRun<Model, Output>) throws -> Void
    ) async -> FaultReport {
        var explorer = FaultExplorer(stubs: stubs)
        explorer.plans = plans
        explorer.budget.failures = maximumFailures
        return await explorer.explore(client) { run in
            try check(run)
            try run.require(.everyCallEnds)
        }
    }
}
