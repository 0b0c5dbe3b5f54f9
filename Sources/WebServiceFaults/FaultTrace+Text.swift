import Foundation
import WebServiceCore

extension FaultTrace: CustomStringConvertible {
    /// The exchanges with their instants, faults and results, one per line, and how the run ended.
    public var description: String {
        (exchanges.map(\.description) + ["  \(Self.text(elapsed))  \(outcome)"]).joined(separator: "\n")
    }

    /// How the explored code ended, with the kind of its error.
    var outcome: String { errorKind.map { "threw \($0)" } ?? end.text }

    static func text(_ duration: Duration) -> String { String(format: "%9.3f s", duration.inSeconds) }

    /// Returns a short description of an error.
    static func text(_ error: any Error) -> String {
        if let error = error as? URLError { return "URLError \(codeNames[error.code] ?? "\(error.code.rawValue)")" }
        let text = "\(error)".split(separator: "\n").first ?? ""
        return text.count > 160 ? "\(text.prefix(160))…" : String(text)
    }

    private static let codeNames: [URLError.Code: String] = [
        .cancelled: "cancelled", .cannotConnectToHost: "cannotConnectToHost",
        .networkConnectionLost: "networkConnectionLost", .timedOut: "timedOut",
    ]

    /// Returns the type of an error, and its code.
    static func kind(_ error: any Error) -> String {
        if let error = error as? WebServiceError { return "WebServiceError \(error.code)" }
        return error is URLError ? text(error) : "\(type(of: error))"
    }

    /// Returns the first difference from an earlier run with the same plan, and its probable cause;
    /// `nil` if there is no difference.
    func difference(from other: FaultTrace) -> String? {
        for (old, new) in zip(other.exchanges, exchanges) where old.name != new.name {
            let names = (other.exchanges.map(\.name).sorted(), exchanges.map(\.name).sorted())
            let cause =
                names.0 == names.1
                ? "the order of concurrent requests differs: a thread, or a task that waits in real time"
                : "a random number, an identifier or Date() in the URL (set the explorer's `name`), or static state"
            return "\(old.name) in the first run, \(new.name) in the second one; probably \(cause)"
        }
        if exchanges.count != other.exchanges.count {
            let (longer, run) = exchanges.count > other.exchanges.count ? (self, "second") : (other, "first")
            let name = longer.exchanges[min(exchanges.count, other.exchanges.count)].name
            return "\(name) occurs only in the \(run) run; probably static state, such as a shared cache or token"
        }
        for (old, new) in zip(other.exchanges, exchanges) {
            if old.instant != new.instant {
                return "\(new.name) is sent after \(old.instant) and \(new.instant); "
                    + "probably a thread or a wait in real time"
            }
            if old.status != new.status || old.error != new.error {
                return "\(new.name) has the result \(old.result) and \(new.result); probably a stub that keeps state"
            }
        }
        return end == other.end ? nil : "the code \(other.end.text) in the first run, and \(end.text) in the second one"
    }
}

extension FaultTrace.Exchange: CustomStringConvertible {
    /// The instant, the name, the fault and the results.
    public var description: String {
        var parts = ["  \(FaultTrace.text(instant))", name]
        if let fault { parts.append("[\(fault)]") }
        let server = "server: \(serverStatus.map(String.init) ?? "error")\(deliveries > 1 ? ", twice" : "")"
        if kind != .request { parts.append(deliveries > 0 ? "arrived" : "did not arrive") }
        if kind == .request { parts += (deliveries > 0 ? [server] : []) + ["client: \(result)"] }
        return (parts + (isAfterEnd ? ["(after the end)"] : [])).joined(separator: "  ")
    }

    var result: String { error ?? status.map(String.init) ?? "no response" }
}

extension FaultTrace.End {
    var text: String {
        switch self {
        case .returned: "returned a value"
        case .threw: "threw an error"
        case .hung: "hung"
        case .endless: "sent too many requests"
        case .overtime: "took more than an hour"
        case .busy: "computed without end"
        }
    }

    /// The reason why the code has not ended; `nil` if it has.
    var problem: String? {
        switch self {
        case .returned, .threw: nil
        case .hung:
            "the code waits for something that no request and no alarm can end; "
                + "if it sleeps in real time, use the service's clock"
        case .endless: "the code sends requests without end, or more than the budget allows"
        case .overtime: "the code takes more than an hour by the test clock"
        case .busy: "the code ran for more than 10 seconds, or a million jobs, without a request or an alarm"
        }
    }
}
