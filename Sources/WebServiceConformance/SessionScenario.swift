public import WebServiceCore
public import WebServiceMocking

/// A guarantee of the `Session` protocol, as an executable scenario.
///
/// Run all scenarios to test a custom session:
///
/// ```swift
/// @Test(arguments: SessionScenario.all) func conforms(_ scenario: SessionScenario) async throws {
///     try await scenario.run(over: MySession())
/// }
/// ```
///
/// A scenario starts a `MockServer` on 127.0.0.1, sends requests encoded like those of a service,
/// and checks the requests that the server received and the arguments of the completions. A
/// scenario has no state, so it may run several times and concurrently with others. Except for the
/// scheduling of threads, the scenarios are deterministic. All of them together take a few seconds
/// if the session passes.
public struct SessionScenario: Sendable, CustomStringConvertible {
    /// All scenarios, with distinct names.
    public static let all: [SessionScenario] =
        requests + responses + framings + connections + surplus + uploads + lifecycles + timeOuts + faults
        + hostileHeads
        + codings + limits + streams

    /// The guarantee, as a sentence.
    public let name: String

    /// Whether the scenario requires network connections.
    ///
    /// Such a scenario does not apply to a session that sends no bytes.
    public let requiresSocket: Bool

    private let play: @Sendable (ScenarioStage) async throws -> Void

    init(_ name: String, requiresSocket: Bool = false, _ play: @escaping @Sendable (ScenarioStage) async throws -> Void)
    {
        self.name = name
        self.requiresSocket = requiresSocket
        self.play = play
    }

    /// The same as ``name``.
    public var description: String { name }

    /// Runs the scenario with a session.
    ///
    /// For a `MockSession`, no server is started. Instead, the scenario adds a stub to the mock,
    /// for a host name that is unique to this run, and does not remove it. A scenario with
    /// ``requiresSocket`` then returns immediately.
    ///
    /// - Parameters:
    ///   - session: The session. It must be able to connect to 127.0.0.1 and must not follow
    ///     redirects or respond to authentication challenges.
    ///   - limit: The maximum duration to wait for a completion or any other expected event. Tasks
    ///     that are still in progress afterwards are cancelled. A timeout may be exceeded by a
    ///     tenth of this duration. Pass a longer duration on a busy machine.
    /// - Throws: ``Failure`` if the session does not behave as guaranteed, or
    ///   `WebServiceError.Code.mockServer` if the server cannot be started.
    public func run(over session: any Session, limit: Duration = .seconds(10)) async throws {
        try await run(over: session, mock: session as? MockSession, limit: limit)
    }

    /// Runs the scenario with a session that wraps a mock, such as `RequestRecordingSession`.
    ///
    /// - Parameters:
    ///   - session: The session.
    ///   - mock: The mock that responds to its requests; see ``run(over:limit:)``.
    ///   - limit: The maximum duration to wait for an expected event.
    /// - Throws: ``Failure`` if the session does not behave as guaranteed.
    public func run(over session: any Session, stubbedBy mock: MockSession, limit: Duration = .seconds(10))
        async throws
    {
        try await run(over: session, mock: mock, limit: limit)
    }

    private func run(over session: any Session, mock: MockSession?, limit: Duration) async throws {
        if mock != nil, requiresSocket { return }
        let stage = try ScenarioStage(name, session, mock, limit: limit)
        do {
            try await play(stage)
        } catch {
            try? stage.finish()  // the first failure is reported
            throw error
        }
        try stage.finish()
    }

    /// Runs all scenarios one after another and returns the failures.
    ///
    /// ```swift
    /// #expect(try await SessionScenario.failures(over: MySession()) == [])
    /// ```
    ///
    /// - Parameters:
    ///   - session: The session, evaluated for each scenario; see ``run(over:limit:)``.
    ///   - limit: The maximum duration to wait for an expected event in a scenario.
    /// - Throws: `WebServiceError.Code.mockServer` if a server cannot be started, and
    ///   `CancellationError` if the Swift task is cancelled.
    public static func failures(over session: @autoclosure () -> any Session, limit: Duration = .seconds(10))
        async throws -> [Failure]
    {
        var failures: [Failure] = []
        for scenario in all {
            try Task.checkCancellation()
            do { try await scenario.run(over: session(), limit: limit) } catch let failure as Failure {
                failures.append(failure)
            }
        }
        return failures
    }

    /// The error of a scenario whose guarantee does not hold.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The name of the scenario.
        public let scenario: String
        /// The expected outcome.
        public let expected: String
        /// The actual outcome.
        public let received: String

        /// The scenario and both outcomes in one line.
        ///
        /// The text contains only data of the scenario and no data of the application.
        public var description: String { "\(scenario): expected \(expected), received \(received)" }
    }
}
