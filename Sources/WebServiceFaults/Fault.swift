public import WebServiceMocking

/// A fault of one exchange, which defines what the server does and what the client receives.
///
/// ```swift
/// let maintenance = Fault("maintenance", afterEffect: false) { _ in .status(503) }
/// let explorer = FaultExplorer(faults: Fault.standard + [maintenance]) { mock in … }
/// ```
/// ``standard`` contains the faults that an explorer tries by default. A ``FaultPlan`` identifies a
/// fault by its name.
public struct Fault: Sendable, CustomStringConvertible {
    /// The name, without spaces, `&` and `=`.
    public let name: String

    /// Whether the server processes the request before the fault.
    public let isAfterEffect: Bool

    /// Whether the Swift task of the explored code is cancelled, either before the server processes
    /// the request or between the effect and the response.
    public let cancelsCaller: Bool

    /// The number of times that the stub processes the request.
    var deliveries = 1
    /// The delay before the server receives the request.
    var delay = Duration.zero
    /// A closure that returns whether the fault can occur at an exchange, by default at all requests
    /// and no messages.
    var condition: @Sendable (FaultTrace.Exchange) -> Bool = { $0.kind == .request }
    /// A closure that returns what the client receives.
    var response: @Sendable (MockResponse, ReceivedRequest) -> MockResponse

    /// Creates a custom fault.
    ///
    /// - Parameters:
    ///   - name: The name. Spaces, line feeds, `&` and `=` are replaced with `-`.
    ///   - afterEffect: Whether the stub processes the request.
    ///   - cancelsCaller: Whether the Swift task of the explored code is cancelled. The client then
    ///     receives the response of the stub, if it still waits. Defaults to `false`.
    ///   - response: A closure that returns the response that the client receives. Its parameter is
    ///     the response of the stub, or an empty response with status 200 if the stub does not
    ///     process the request. `MockResponse.error(_:)` is a transport error. The closure is not
    ///     called if `cancelsCaller` is `true`.
    public init(
        _ name: String, afterEffect: Bool, cancelsCaller: Bool = false,
        response: @escaping @Sendable (_ response: MockResponse) -> MockResponse
    ) {
        self.name = String(name.map { " &=\n".contains($0) ? "-" : $0 })
        (isAfterEffect, self.cancelsCaller) = (afterEffect, cancelsCaller)
        self.response = { stubbed, _ in response(stubbed) }
    }

    /// The same as ``name``.
    public var description: String { name }
}
