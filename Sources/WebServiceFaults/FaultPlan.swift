import WebServiceCore

/// The faults of one run, as a list of exchanges, each with the name of its fault.
///
/// ```swift
/// let plan: FaultPlan = "POST /orders#1=lost & POST /orders#2=refused"
/// ```
/// The name of an exchange consists of the method, the path, and its number among the exchanges
/// with the same method and path, counted from 1. `POST /orders#1+=refused` is a lasting fault,
/// which affects this exchange and all later ones with the same method and path.
/// `GET /socket#1.3=cut` is a fault of the third message of a WebSocket connection.
public struct FaultPlan: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// A fault of an exchange.
    public struct Step: Sendable, Hashable, CustomStringConvertible {
        /// The name of the exchange, such as `POST /orders#1`.
        public let exchange: String
        /// The name of the fault, such as `lost`.
        public let fault: String
        /// Whether the fault also affects all later exchanges with the same method and path.
        public let isLasting: Bool

        /// Creates a step of a plan.
        public init(_ exchange: String, _ fault: String, isLasting: Bool = false) {
            (self.exchange, self.fault, self.isLasting) = (exchange, fault, isLasting)
        }

        /// The step in the notation of a plan.
        public var description: String { "\(exchange)\(isLasting ? "+" : "")=\(fault)" }
    }

    /// The steps, in the order in which the exchanges are expected.
    public var steps: [Step]

    /// Creates a plan, by default one without faults.
    public init(_ steps: [Step] = []) { self.steps = steps }

    /// Creates a plan from its description.
    ///
    /// A part without `=` is a step whose fault has an empty name. No explorer has such a fault.
    public init(_ description: String) {
        // A plan without faults is described by words.
        let steps = description == "no fault" ? "" : description
        self.init(
            steps.split(separator: "&").compactMap { part in
                let text = Substring(ASCII.trimmed(part.utf8))
                guard !text.isEmpty else { return nil }
                // A path may contain "=", but the name of a fault does not.
                let equals = text.lastIndex(of: "=") ?? text.endIndex
                let (name, fault) = (text[..<equals], text[equals...].dropFirst())
                return Step(
                    String(name.hasSuffix("+") ? name.dropLast() : name), String(fault), isLasting: name.hasSuffix("+"))
            })
    }

    /// Creates a plan from its description.
    public init(stringLiteral value: String) { self.init(value) }

    /// The steps, separated by `&`; `no fault` if there are none.
    public var description: String {
        steps.isEmpty ? "no fault" : steps.map(\.description).joined(separator: " & ")
    }
}
