import Foundation
import WebServiceCore
import WebServiceMocking

extension Fault {
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
        Fault("empty", afterEffect: true) { changed($0) { $0.data = Data() } },
        Fault("truncated", afterEffect: true) { changed($0) { $0.data = $0.data.prefix($0.data.count / 2) } },
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
        guard parts.count == 2, let count = Int(parts[1]), count >= 0 else { return nil }
        switch parts[0] {
        case "cut": self = .cut(after: count)
        case "stall": self = .stall(after: count)
        default: return nil
        }
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
