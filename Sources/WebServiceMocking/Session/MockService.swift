public import WebServiceCore

/// A service over a ``MockSession``, for one test.
///
/// ```swift
/// let mock = MockService()
/// mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
/// let client = BreweryClient(service: mock.service)
/// ```
/// All members may be called from any thread.
public final class MockService: StubResponder {
    /// The session of the service.
    public let session: MockSession

    /// The service, which sends its requests over ``session``.
    public let service: WebService

    /// The clock of the service and the session; `nil` for the system clock.
    public let clock: TestClock?

    /// Creates a service over a session without stubs.
    ///
    /// - Parameters:
    ///   - baseURLString: The base URL of the service. By default, nothing is sent to it.
    ///   - clock: The clock of the service and the session. Defaults to `nil`: the system clock.
    public convenience init(baseURLString: String = "https://mock.test", clock: TestClock? = nil) {
        self.init(baseURLString: baseURLString, clock: clock, gate: nil)
    }

    /// - Parameter gate: The gate that decides when requests reach the stubs; `nil` if they reach
    ///   them immediately.
    package init(baseURLString: String, clock: TestClock?, gate: (any ExchangeGate)?) {
        self.clock = clock
        session = MockSession(timekeeper: clock, gate: gate)
        service = WebService(baseURLString: baseURLString, passthroughDelegate: nil, timekeeper: clock)
        service.session = session
    }

    /// The stubs and the requests of the session.
    public var stubTable: StubTable { session.stubTable }
}
