public import WebServiceCore
import WebServiceMocking

/// A condition that must hold after each run, regardless of the purpose of the code.
///
/// ```swift
/// try run.require(.everyCallEnds)
/// try run.require(.noEffectTwice(.POST, "/orders"))
/// ```
public struct FaultInvariant: Sendable {
    /// A closure that returns what is wrong; `nil` if the invariant holds.
    let violation: @Sendable (FaultTrace) -> String?

    /// Creates a custom invariant.
    ///
    /// - Parameter violation: A closure that returns what is wrong; `nil` if the invariant holds.
    public init(_ violation: @escaping @Sendable (_ trace: FaultTrace) -> String?) { self.violation = violation }

    /// The explored code returns a value or throws an error.
    public static let everyCallEnds = FaultInvariant { $0.end.problem }

    /// Requests with the given method and path have at most one effect; see
    /// ``FaultTrace/effects(_:_:honoursKeys:)``.
    public static func noEffectTwice(
        _ method: Request.Method, _ path: String, honoursKeys: Bool = true
    ) -> FaultInvariant {
        FaultInvariant { trace in
            trace.effects(method, path, honoursKeys: honoursKeys) > 1
                ? "\(method) \(path) had more than one effect" : nil
        }
    }

    /// If the code returns a value, a request with the given method and path had an effect.
    public static func noEffectLost(_ method: Request.Method, _ path: String) -> FaultInvariant {
        FaultInvariant { trace in
            trace.end == .returned && trace.effects(method, path) == 0
                ? "the code reported success, but \(method) \(path) had no effect" : nil
        }
    }

    /// No request to an origin other than that of the first request has a credential, which is a
    /// field `Authorization`, `Cookie` or `Proxy-Authorization`, or one of `fields`.
    public static func noCredentialElsewhere(fields: [Headers.Name] = []) -> FaultInvariant {
        let names: [Headers.Name] = ["Authorization", "Cookie", "Proxy-Authorization"] + fields
        return FaultInvariant { trace in
            let origin = trace.exchanges.first?.request.origin
            let sent = trace.exchanges.filter { $0.request.origin != origin }
                .compactMap { exchange in names.first { exchange.headers[$0] != nil } }
            return sent.first.map { "\($0.rawValue) was sent to another origin" }
        }
    }

    /// After a request of one user, no request has the credential of another user.
    ///
    /// - Parameter user: A closure that returns the user whose credential a request has, or `nil`
    ///   if it has none.
    public static func oneUser(
        _ user: @escaping @Sendable (_ exchange: FaultTrace.Exchange) -> String?
    ) -> FaultInvariant {
        FaultInvariant { trace in
            Set(trace.exchanges.compactMap(user)).count > 1 ? "requests have the credentials of several users" : nil
        }
    }

    /// After the last request with the given method and path, such as a log-out, no request has one
    /// of the given fields, which default to `Authorization` and `Cookie`.
    public static func noCredential(
        after method: Request.Method, _ path: String, fields: [Headers.Name] = ["Authorization", "Cookie"]
    ) -> FaultInvariant {
        let matcher = RequestMatcher.route(method, path)
        return FaultInvariant { trace in
            let requests = trace.exchanges.filter { $0.kind == .request }
            guard let last = requests.lastIndex(where: { matcher.matches($0.request) }) else { return nil }
            let sent = requests[(last + 1)...].flatMap { request in fields.filter { request.headers[$0] != nil } }
            return sent.isEmpty ? nil : "a request with a credential follows \(method) \(path)"
        }
    }

    /// The explored code sends at most the given number of requests.
    public static func atMost(_ count: Int) -> FaultInvariant {
        FaultInvariant { trace in
            trace.exchanges.count { $0.kind == .request } > count ? "more than \(count) requests were sent" : nil
        }
    }

    /// Values such as the progress of a transfer never decrease.
    public static func neverBackwards<Value: Comparable & Sendable>(_ values: [Value]) -> FaultInvariant {
        FaultInvariant { _ in
            zip(values, values.dropFirst()).contains { $0 > $1 } ? "the progress goes backwards" : nil
        }
    }

    /// Values that were shown to a user, such as those of a cache, belong to that user.
    public static func noneOfAnotherUser<Value: Sendable>(
        _ values: [Value], _ belongs: @escaping @Sendable (_ value: Value) -> Bool
    ) -> FaultInvariant {
        FaultInvariant { _ in values.allSatisfy(belongs) ? nil : "a value of another user was shown" }
    }
}
