import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The environment of a scenario: the session under test, and the server or the mock that responds.
final class ScenarioStage: Sendable {
    let scenario: String
    /// The base URL of all requests, without a trailing slash.
    let base: String
    let limit: Duration
    /// The server that responds; `nil` if a mock responds.
    let server: MockServer?
    let script = ScenarioScript()
    let session: any Session
    private let exchanges = Mutex<[ScenarioTask]>([])
    private static let stageCount = Mutex(0)

    init(_ scenario: String, _ session: any Session, _ mock: MockSession?, limit: Duration) throws {
        self.scenario = scenario
        self.session = session
        self.limit = limit
        if let mock {
            let number = Self.stageCount.withLock { count in
                count += 1
                return count
            }
            let host = "scenario-\(number).test"  // a host per scenario, so that scenarios can share a mock
            server = nil
            base = "http://\(host)"
            mock.addStub(
                requestMatcher: { URL(string: $0.sentURL ?? "")?.host == host },
                responder: { [script] in script.response(to: $0) })
        } else {
            let server = try MockServer { [script] in script.response(to: $0) }
            self.server = server
            base = server.baseURLString
        }
    }

    /// Cancels all exchanges and stops the server.
    ///
    /// - Throws: ``SessionScenario/Failure`` if a completion was called more than once.
    func finish() throws {
        let all = exchanges.withLock { exchanges in
            defer { exchanges = [] }
            return exchanges
        }
        for exchange in all { exchange.end() }
        server?.stop()
        let most = all.map(\.completionCount).max() ?? 0
        try expect(most <= 1, "one completion for each task", "\(most) completions for one task")
    }

    // MARK: Exchanges

    func serve(_ responder: @escaping ScenarioScript.Responder) {
        script.set(responder)
    }

    /// The requests that have arrived, in order.
    var requests: [ScenarioRequest] { script.requests }

    /// Returns the request with the given number, counted from 1.
    ///
    /// - Throws: ``SessionScenario/Failure`` if it has not arrived.
    func arrived(_ number: Int) throws -> ScenarioRequest {
        let requests = requests
        try expect(number <= requests.count, "request \(number) has arrived", "\(requests.count) requests")
        return requests[number - 1]
    }

    func request(_ path: String = "/", _ method: Request.Method = .GET) -> Request {
        Request(method, url: base + path)
    }

    /// Creates a task for a request that is encoded like a request of a service.
    func begin(_ request: Request) throws -> ScenarioTask {
        begin(encoded: try request.encode())
    }

    /// Creates a task for an encoded request.
    func begin(encoded request: any URLRequestEncodable) -> ScenarioTask {
        let exchange = ScenarioTask(request, over: session)
        exchanges.withLock { $0.append(exchange) }
        return exchange
    }

    /// Sends a request and returns its outcome.
    func send(_ request: Request) async throws -> ScenarioOutcome {
        let exchange = try begin(request)
        exchange.resume()
        return try await outcome(of: exchange)
    }

    func outcome(of exchange: ScenarioTask) async throws -> ScenarioOutcome {
        guard let outcome = await exchange.outcome(limit: limit) else {
            throw failure("one completion", "no completion within \(limit)")
        }
        return outcome
    }

    /// Waits until the request with the given number, counted from 1, has arrived.
    func arrival(_ number: Int) async throws {
        let hasCome = await script.arrivals.wait(for: number, limit: limit)
        try expect(hasCome, "request \(number) arrives", "\(script.arrivals.count) requests within \(limit)")
    }

    /// Waits until a condition holds, for at most the limit.
    func eventually(_ expected: String, _ isSo: () -> Bool) async throws {
        let end = ContinuousClock.now + limit
        while !isSo() {
            guard ContinuousClock.now < end else {
                throw failure(expected, "a condition that did not hold within \(limit)")
            }
            try await TaskClock.system.sleep(for: .milliseconds(2))
        }
    }

    // MARK: Expectations

    func expect(_ isSo: Bool, _ expected: @autoclosure () -> String, _ received: @autoclosure () -> String) throws {
        guard isSo else { throw failure(expected(), received()) }
    }

    func expect<Value: Equatable>(_ what: String, _ value: Value, is expected: Value) throws {
        try expect(value == expected, "\(what): \(expected)", "\(what): \(value)")
    }

    func expect(_ what: String, _ value: String?, is expected: String?) throws {
        try expect(value == expected, "\(what): \(expected ?? "none")", "\(what): \(value ?? "none")")
    }

    func expect(_ expectation: ScenarioExpectation, _ outcome: ScenarioOutcome, _ what: String = "") throws {
        try expect(expectation.allows(outcome), what + expectation.description, what + outcome.description)
    }

    private func failure(_ expected: String, _ received: String) -> SessionScenario.Failure {
        SessionScenario.Failure(scenario: scenario, expected: expected, received: received)
    }
}
