import Foundation
public import WebServiceMocking

/// An explorer that runs code with each fault of each exchange, and checks what must always hold.
///
/// ```swift
/// let explorer = FaultExplorer { mock in
///     mock.on(.POST, "/orders", .json(order, status: 201))
///     mock.on(.GET, "/orders/1", .json(order))
/// }
/// let report = await explorer.explore { mock in
///     try await Shop(mock.service).checkout()
/// } check: { run in
///     try run.require(run.effects(.POST, "/orders") <= 1, "ordered twice")
/// }
/// print(report)  // POST /orders#1=lost: ordered twice
/// ```
public struct FaultExplorer<Model: Sendable>: Sendable {
    /// The limits of an exploration, which ends when ``runs``, ``time`` or ``failures`` is reached.
    public struct Budget: Sendable {
        /// The maximum number of runs. Defaults to 10,000.
        public var runs = 10_000
        /// The maximum duration in real time. Defaults to 60 seconds.
        public var time = Duration.seconds(60)
        /// The maximum number of exchanges of one run. Defaults to 1,000.
        public var exchanges = 1_000
        /// The maximum number of faults of one plan. Defaults to 3.
        public var depth = 3
        /// The maximum number of failures. Defaults to no limit.
        public var failures = Int.max

        /// Creates the default limits.
        public init() {}
    }

    /// The faults that are tried at each exchange.
    public var faults: [Fault]
    /// The limits of an exploration.
    public var budget: Budget
    /// The service's base URL.
    public var baseURLString = "https://mock.test"
    /// A closure that returns the name of an exchange without its number. Defaults to `nil`: the
    /// method and the path, preceded by any origin other than that of the base URL.
    ///
    /// Set this closure if a URL contains a random number, for example `{ _ in "PUT /files/{id}" }`.
    /// Each `&` in the name is replaced with `%26`.
    public var name: (@Sendable (_ request: ReceivedRequest) -> String)?

    /// A closure that receives a line of progress from time to time if an exploration takes more
    /// than 5 seconds, on the exploring task. Defaults to a closure that writes to the standard
    /// error output.
    public var progress: (@Sendable (_ line: String) -> Void)? = {
        FileHandle.standardError.write(Data("\($0)\n".utf8))
    }

    /// The plans to run; `nil` to run the plans that follow from the code.
    package var plans: [FaultPlan]?

    let makeModel: @Sendable (MockService) throws -> Model

    /// Creates an explorer of code that uses a mocked service.
    ///
    /// - Parameters:
    ///   - faults: The faults that are tried at each exchange. Defaults to ``Fault/standard``.
    ///   - budget: The limits. Defaults to 10,000 runs and 60 seconds.
    ///   - stubs: A closure that adds the server's stubs to a new mock service, and returns a model
    ///     of the server if the stubs keep state. It is called before each run, and once
    ///     at the end of an exploration.
    public init(
        faults: [Fault] = Fault.standard, budget: Budget = Budget(),
        stubs: @escaping @Sendable (_ mock: MockService) throws -> Model
    ) {
        (self.faults, self.budget, makeModel) = (faults, budget, stubs)
    }

    /// Runs code without faults, and then with each fault of each of its exchanges.
    ///
    /// - Parameters:
    ///   - isolation: The actor of the caller, on which `check` runs.
    ///   - fileID: The module and file of the call, which name a temporary file with the plan in
    ///     progress. If the process ends during a run, the next exploration at the same place
    ///     reports that plan.
    ///   - line: The line in that file.
    ///   - body: The code, which uses the service of the mock. Its result is part of the run.
    ///   - check: A closure that checks what must hold after each run. An error that it throws is a
    ///     failure of the plan.
    public func explore<Output: Sendable>(
        isolation: isolated (any Actor)? = #isolation, fileID: String = #fileID, line: Int = #line,
        _ body: @escaping @Sendable (_ mock: MockService) async throws -> Output,
        check: (_ run: FaultRun<Model, Output>) async throws -> Void
    ) async -> FaultReport {
        let runner = Runner(self, body)
        var exploration = Exploration(self, runner, at: "\(fileID):\(line)")
        await withTaskExecutorPreference(runner.thread) { await exploration.explore(check) }
        return exploration.report
    }

    /// Runs code once, with the faults of a plan. Use it as the regression test of a failure.
    ///
    /// - Parameters:
    ///   - plan: The plan, such as `"POST /orders#1=lost"`.
    ///   - isolation: The actor of the caller, on which `check` runs.
    ///   - body: The code.
    ///   - check: A closure that checks what must hold.
    /// - Returns: The run.
    /// - Throws: The error of `check` or of the stubs, or ``FaultViolation`` if an exchange or a
    ///   fault of the plan does not occur, a fault does not exist, or a step names no exchange.
    @discardableResult
    public func replay<Output: Sendable>(
        _ plan: FaultPlan, isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable (_ mock: MockService) async throws -> Output,
        check: (_ run: FaultRun<Model, Output>) async throws -> Void = { _ in }
    ) async throws -> FaultRun<Model, Output> {
        let run = try await Runner(self, body).run(plan, RunDriver.Settings(maximumExchanges: budget.exchanges))
        for step in plan.steps {
            let exchange = run.requests.first { $0.name == step.exchange }
            guard exchange?.fault != step.fault else { continue }
            let missing = exchange == nil ? "exchange \(step.exchange)" : "fault \(step)"
            throw FaultViolation("the \(missing) of the plan '\(plan)' did not occur\n\(run.trace)")
        }
        try await check(run)
        return run
    }

    var exchangeName: @Sendable (ReceivedRequest) -> String {
        { [name, base = baseURLString.originAndTarget.origin] request in
            let origin = request.origin == base ? "" : request.origin ?? ""
            // A plan separates its steps with "&".
            return (name?(request) ?? "\(request.method) \(origin)\(request.path)").replacing("&", with: "%26")
        }
    }
}
