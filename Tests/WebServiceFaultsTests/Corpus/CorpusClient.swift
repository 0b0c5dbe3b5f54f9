import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

/// A client of which the explorer must find the fault, or about which it must not complain.
struct CorpusClient: Sendable {
    /// Who wrote a client: a reader of public reports before the explorer existed, or its authors.
    enum Author: Sendable { case reader, maker }

    var name: String
    /// The kind of the fault, or what a correct client does right.
    var kind: String
    /// The public report from which the client was written; `nil` for correct clients.
    var source: String?
    var author = Author.maker
    /// The smallest plans that show the fault, verified by hand, any of which is right; empty for
    /// correct clients.
    var plans: [String] = []
    /// Explores the client.
    var run: @Sendable (_ explore: Exploration) async -> FaultReport

    var isFaulty: Bool { !plans.isEmpty }

    /// Returns whether a plan is one of the smallest that show the fault.
    func isSmallest(_ plan: String) -> Bool { plans.contains(plan.replacing(/@[0-9]+/, with: "")) }

    /// The number of faults that the smallest plan has.
    var faultCount: Int { plans.first.map { $0.split(separator: "&").count } ?? 0 }

    /// All clients.
    static let all = faulty + correct
    /// The faulty clients.
    static let faulty = reported + orders + sessions + lists + files + streams + stores + twoFaults
    /// The correct clients.
    static let correct = correctOrders + correctReads + correctTransfers
}

/// The faults that plans name. `cut` stands for `cut@N` with any number of bytes.
enum Faults {
    /// Nothing arrives at the server, and the client gets an error.
    static let before = ["refused", "reset", "stalled"]
    /// The request has no effect, and the client gets another response.
    static let refusals = ["401", "403", "408", "409", "429", "429retry", "500", "503", "redirected"]
    /// The request has its effect, and the client gets an error.
    static let after = ["lost", "cut", "stalledAfter", "500After"]
    /// The caller is cancelled, before or after the effect.
    static let cancellations = ["cancelled", "cancelledAfter"]
    /// Faults of the content of JSON responses; the request has its effect.
    static let content = ["empty", "truncated", "html"]
    /// Each fault after which a request without content fails.
    static let failures = before + refusals + after
    /// Each fault after which a request for JSON fails.
    static let all = failures + content
    /// The failures that take no time.
    static let quick = failures.filter { !$0.hasPrefix("stalled") }
}

extension [String] {
    /// The plans with one of several faults at an exchange, once or lasting.
    static func at(_ exchange: String, _ faults: [String]) -> [String] {
        faults.flatMap { ["\(exchange)=\($0)", "\(exchange)+=\($0)"] }
    }

    /// The plans with one of several faults at an exchange, once.
    static func once(_ exchange: String, _ faults: [String]) -> [String] { faults.map { "\(exchange)=\($0)" } }

    /// The plans with one of several lasting faults at an exchange.
    static func lasting(_ exchange: String, _ faults: [String]) -> [String] { faults.map { "\(exchange)+=\($0)" } }

    /// The plans with two faults, in this order.
    static func both(_ first: [String], _ second: [String]) -> [String] {
        first.flatMap { first in second.map { "\(first) & \($0)" } }
    }
}

/// A value that several threads share, such as the state of a server.
final class Shared<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) { mutex = Mutex(value) }

    var value: Value {
        get { mutex.withLock { $0 } }
        set { mutex.withLock { $0 = newValue } }
    }

    @discardableResult func update<Result: Sendable>(_ body: @Sendable (inout Value) throws -> Result) rethrows
        -> Result
    {
        try mutex.withLock { value in try body(&value) }
    }
}
