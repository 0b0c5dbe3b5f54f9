public import WebServiceCore

/// What every `Session` promises, as scenarios: whoever writes a session of their own runs them all over it.
///
/// ```swift
/// @Test(arguments: SessionScenario.all) func conforms(_ scenario: SessionScenario) async throws {
///     try await scenario.run(over: MySession())
/// }
/// ```
/// A scenario starts a ``MockServer`` of its own on 127.0.0.1, sends requests as a service would send them, and looks at what the server received
/// and at what the completions were called with. It keeps no state, so the same one can run several times and at the same time as others. All are
/// deterministic but for the order in which threads run, and all of them together take a few seconds over a session that keeps its promises.
public struct SessionScenario: Sendable, CustomStringConvertible {
    /// Every scenario. The names differ.
    public static let all: [SessionScenario] =
        requests + answers + framings + connections + surplus + uploads + lifecycles + timeOuts + faults + hostileHeads + codings + limits

    /// What is promised, as a sentence.
    public let name: String

    /// Whether the promise is about connections or bytes, so that it means nothing to a session that sends none.
    public let needsWire: Bool

    private let play: @Sendable (ScenarioStage) async throws -> Void

    init(_ name: String, needsWire: Bool = false, _ play: @escaping @Sendable (ScenarioStage) async throws -> Void) {
        self.name = name
        self.needsWire = needsWire
        self.play = play
    }

    /// The same as ``name``.
    public var description: String { name }

    /// Runs the scenario over a session.
    ///
    /// For a ``MockSession`` no server is started: the mock is given stubs for the answers and errors that the scenario is about, for a host that
    /// only this run uses, and they stay there. A scenario that ``needsWire`` does nothing then.
    ///
    /// - Parameters:
    ///   - session: The session. It has to be able to reach 127.0.0.1, and is not to follow redirects or to answer challenges.
    ///   - limit: How long a completion, or anything else that has to happen, is waited for. What is still under way then is cancelled.
    /// - Throws: ``Failure`` for a promise that is not kept, or `WebServiceError` with the code `mockServer` where the system gives no server.
    public func run(over session: any Session, limit: Duration = .seconds(10)) async throws {
        try await run(over: session, mock: session as? MockSession, limit: limit)
    }

    /// Runs the scenario over a session that leaves the answers to a mock, such as ``RequestRecordingSession`` around one.
    ///
    /// - Parameters:
    ///   - session: The session.
    ///   - mock: The mock that answers its requests; see ``run(over:limit:)``.
    ///   - limit: How long anything that has to happen is waited for.
    /// - Throws: ``Failure`` for a promise that is not kept.
    public func run(over session: any Session, answeredBy mock: MockSession, limit: Duration = .seconds(10)) async throws {
        try await run(over: session, mock: mock, limit: limit)
    }

    private func run(over session: any Session, mock: MockSession?, limit: Duration) async throws {
        if mock != nil, needsWire { return }
        let stage = try ScenarioStage(name, session, mock, limit: limit)
        do {
            try await play(stage)
        } catch {
            try? stage.finish()  // the first failure is the one to tell
            throw error
        }
        try stage.finish()
    }

    /// A promise that a session does not keep.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The name of the scenario.
        public let scenario: String
        /// What should have come.
        public let expected: String
        /// What came.
        public let received: String

        /// All of it in one line; header fields and bodies are those of the scenario, so nothing of the user's is in it.
        public var description: String { "\(scenario): expected \(expected), received \(received)" }
    }
}
