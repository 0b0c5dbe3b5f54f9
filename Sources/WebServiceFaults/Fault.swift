import Foundation
import WebServiceCore
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
    ///   - name: The name. Spaces, line feeds, `&` and `=` are replaced with `-`. An empty name
    ///     becomes `-`.
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
        self.name = String((name.isEmpty ? "-" : name).map { " &=\n".contains($0) ? "-" : $0 })
        (isAfterEffect, self.cancelsCaller) = (afterEffect, cancelsCaller)
        self.response = { stubbed, _ in response(stubbed) }
    }

    /// The same as ``name``.
    public var description: String { name }

    // MARK: Standard faults

    /// All faults of ``transport``, ``server``, ``cancellation``, ``content`` and ``messages``. An
    /// explorer also loses the connection at positions of a body; see ``cut(after:)``.
    public static let standard = transport + server + cancellation + content + messages

    /// Faults of the connection. `refused` and `reset` occur before the server receives the
    /// request, `lost` after the effect. With `stalled` (before) and `stalledAfter` (after the
    /// effect), nothing arrives until the timeout. With `slow`, the head arrives after 30 seconds.
    /// With `overtaken`, the server receives the request 5 seconds late; with `duplicated`, it
    /// receives an idempotent request, or one with an `Idempotency-Key`, twice.
    public static let transport: [Fault] = [
        failing("refused", .cannotConnectToHost, afterEffect: false),
        failing("reset", .networkConnectionLost, afterEffect: false),
        changed(failing("lost", .networkConnectionLost, afterEffect: true)) { $0.condition = { _ in true } },
        changed(silent("stalled", afterEffect: false)) { $0.condition = { _ in true } },
        silent("stalledAfter", afterEffect: true),
        Fault("slow", afterEffect: true) { $0.after($0.delay + .seconds(30)) },
        changed(Fault("overtaken", afterEffect: true) { $0 }) { $0.delay = .seconds(5) },
        changed(Fault("duplicated", afterEffect: true) { $0 }) { fault in
            fault.deliveries = 2
            fault.condition = { $0.kind == .request && $0.isRepeatable }
        },
    ]

    /// Responses of the server, named by status: 401, 403, 408, 409, 429 without and with
    /// `Retry-After` (`429retry`), 500 and 503, and `redirected`, which is status 307 with another
    /// origin. All occur before the effect, except `500After`.
    public static let server: [Fault] = [
        status(500), Fault("500After", afterEffect: true) { _ in .status(500) }, status(503), status(429),
        Fault("429retry", afterEffect: false) { _ in .status(429).header("Retry-After", "2") },
        status(401), status(403), status(408), status(409),
        changed(Fault("redirected", afterEffect: false) { $0 }) { fault in
            fault.response = { _, request in .status(307).header("Location", "\(otherOrigin)\(request.target)") }
        },
    ]

    /// The origin to which `redirected` redirects requests.
    static let otherOrigin = "https://elsewhere.test"

    /// The cancellation of the calling task, either before the server receives the request
    /// (`cancelled`) or between the effect and the response (`cancelledAfter`).
    public static let cancellation: [Fault] = [
        changed(Fault("cancelled", afterEffect: false, cancelsCaller: true) { $0 }) { $0.condition = { _ in true } },
        Fault("cancelledAfter", afterEffect: true, cancelsCaller: true) { $0 },
    ]

    /// Faults of a JSON body after the effect: `empty`, `truncated`, and `html`, which is a login
    /// or proxy page with status 200.
    public static let content: [Fault] = [
        Fault("empty", afterEffect: true) { $0.replacingBody(with: Data()) },
        Fault("truncated", afterEffect: true) { $0.replacingBody(with: $0.data.prefix($0.data.count / 2)) },
        Fault("html", afterEffect: true) { _ in
            MockResponse.text("<html><body>Welcome</body></html>").header("Content-Type", "text/html")
        },
    ].map { changed($0) { $0.condition = { $0.facts.isJSON && $0.facts.byteCount > 0 } } }

    /// Faults of the messages of a WebSocket connection. With `cut`, the connection is lost before
    /// the message arrives. `lost` (after it has arrived), `stalled` (this message and all later
    /// ones in its direction never arrive) and `cancelled` can also occur at messages.
    public static let messages: [Fault] = [
        changed(failing("cut", .networkConnectionLost, afterEffect: false)) { $0.condition = { $0.kind != .request } }
    ]

    /// Returns the fault that ends a body after a number of bytes.
    public static func cut(after count: Int) -> Fault {
        Fault("cut@\(count)", afterEffect: true) {
            $0.failing(afterBytes: count, with: URLError(.networkConnectionLost))
        }
    }

    /// Returns the fault that stops a body after a number of bytes. The body fails with
    /// `URLError.timedOut` after 60 seconds, regardless of the request's timeout.
    public static func stall(after count: Int) -> Fault {
        Fault("stall@\(count)", afterEffect: true) {
            $0.failing(afterBytes: count, with: URLError(.timedOut), pause: .seconds(60))
        }
    }

    /// Creates the fault at a position that a name describes, such as `cut@12`.
    init?(positioned name: String) {
        let parts = name.split(separator: "@", maxSplits: 1)
        guard ["cut", "stall"].contains(parts.first), let count = Int(parts.last ?? ""), count >= 0 else { return nil }
        self = parts[0] == "cut" ? .cut(after: count) : .stall(after: count)
    }

    private static func failing(_ name: String, _ code: URLError.Code, afterEffect: Bool) -> Fault {
        Fault(name, afterEffect: afterEffect) { _ in .error(URLError(code)) }
    }

    private static func silent(_ name: String, afterEffect: Bool) -> Fault {
        Fault(name, afterEffect: afterEffect) { _ in changed(MockResponse(statusCode: 200)) { $0.wire = .noResponse } }
    }

    private static func status(_ status: Int) -> Fault {
        Fault("\(status)", afterEffect: false) { _ in .status(status) }
    }

    private static func changed<Value>(_ value: Value, _ change: (inout Value) -> Void) -> Value {
        var value = value
        change(&value)
        return value
    }
}
