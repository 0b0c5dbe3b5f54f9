import Foundation
package import WebServiceCore

/// A request in the form in which a session or a server received it.
package protocol IncomingRequest: Sendable {
    /// The request for matchers and handlers.
    var received: ReceivedRequest { get }
    /// The request of a session; `nil` for the request of a server.
    var encodable: (any URLRequestEncodable)? { get }
}

extension ReceivedRequest: IncomingRequest {
    package var received: ReceivedRequest { self }
    package var encodable: (any URLRequestEncodable)? { nil }
}

/// The stubs of a ``StubResponder``, and the requests that it received.
public final class StubTable: Sendable {
    /// A request with its number and the stubs that existed when it arrived.
    package struct Arrival: Sendable {
        /// The number of the request, counted from 0.
        package let number: Int
        package let stubs: [Stub]
    }

    /// The stub that responds to a request.
    package struct Match {
        package let stub: Stub
        /// The number of the stub's call, counted from 1.
        package let call: Int
        package let request: ReceivedRequest?
    }

    struct State {
        fileprivate(set) var stubs: [Stub] = []
        fileprivate(set) var isClosed = false
        fileprivate(set) var requests: [any IncomingRequest] = []
        /// The values of placeholders, by the number of the request.
        fileprivate var pathParameters: [Int: [String: String]] = [:]
        /// The stubs that were used, each with the number of the request that it matched.
        fileprivate(set) var uses: [(request: Int, stub: Stub)] = []
        /// The descriptions of the requests that match no stub.
        fileprivate(set) var unmatched: [String] = []
        /// The callers of ``StubTable/nextRequest()``.
        var readers = RequestReaders()
    }

    let state = Mutex(State())

    package init() {}

    func add(_ stub: Stub) -> Stub {
        let isAdded = state.withLock { state in
            if !state.isClosed { state.stubs.append(stub) }
            return !state.isClosed
        }
        if !isAdded { stub.release() }
        return stub
    }

    func removeAll() {
        let removed = state.withLock { state in
            defer { (state.stubs, state.uses) = ([], []) }
            return (state.stubs, state.uses)
        }
        withExtendedLifetime(removed) {}  // deallocated outside the lock
    }

    /// Releases the handlers of all stubs, including those that are added later.
    ///
    /// All other data remains available for a verification.
    package func close() {
        let stubs = state.withLock { state in
            state.isClosed = true
            return state.stubs
        }
        for stub in stubs { stub.release() }
        endReaders()
    }

    // MARK: Requests

    /// Records a request.
    package func receive(_ request: some IncomingRequest) -> Arrival {
        let (arrival, reader) = state.withLock { state in
            state.requests.append(request)
            let arrival = Arrival(number: state.requests.count - 1, stubs: state.stubs)
            return (arrival, state.readers.takeFirst())
        }
        reader?.resume(returning: request.received)
        return arrival
    }

    /// Replaces a recorded request, for example with one whose body was read.
    func replace(_ number: Int, with request: some IncomingRequest) {
        state.withLock { state in
            if state.requests.indices.contains(number) { state.requests[number] = request }
        }
    }

    /// All requests, in order.
    var receivedRequests: [ReceivedRequest] {
        let (requests, parameters) = state.withLock { ($0.requests, $0.pathParameters) }
        return requests.enumerated().map { number, request in
            var received = request.received
            if let values = parameters[number] { received.pathParameters = values }
            return received
        }
    }

    /// Returns the last stub that matches and has not reached its limit, and counts its call.
    package func match(_ request: some IncomingRequest, _ arrival: Arrival) -> Match? {
        var input: MatchInput?
        for stub in arrival.stubs.reversed() {
            var values: [String: String] = [:]
            switch stub.condition {
            case .encodable(let matches):
                guard let encodable = request.encodable, matches(encodable) else { continue }
            case .matcher(let matcher):
                let current = input ?? MatchInput(request.received)
                input = current
                guard let found = matcher.match(current) else { continue }
                values = found
            }
            guard let call = stub.claim() else { continue }
            state.withLock { state in
                state.uses.append((arrival.number, stub))
                if !values.isEmpty { state.pathParameters[arrival.number] = values }
            }
            var received = input?.request
            received?.pathParameters = values
            return Match(stub: stub, call: call, request: received)
        }
        return nil
    }

    /// Returns whether a stub matches a request, without counting a call.
    package func matches(_ request: ReceivedRequest) -> Bool {
        state.withLock { $0.stubs }.contains { $0.matches(request) }
    }

    /// Records a request that matches no stub, and returns a description.
    ///
    /// - Returns: The method, the path, and the closest stubs with their mismatches.
    package func recordUnmatched(_ request: some IncomingRequest, _ arrival: Arrival) -> String {
        let description = Self.describe(request.received, closestOf: arrival.stubs)
        state.withLock { $0.unmatched.append(description) }
        return description
    }

    /// The maximum number of stubs in a description, and of mismatches for each of them.
    private static let maximum = 3

    /// Returns the method, the path and the closest stubs.
    ///
    /// The query and the user information of the URL are omitted, because they may contain secrets.
    private static func describe(_ request: ReceivedRequest, closestOf stubs: [Stub]) -> String {
        let start = "no stub matches \(request.method) \(request.path)"
        let input = MatchInput(request)
        var closest: [(stub: Stub, mismatches: [String])] = []
        for stub in stubs.reversed() {
            let mismatches = stub.mismatches(input)
            let place = closest.firstIndex { $0.mismatches.count > mismatches.count } ?? closest.count
            guard place < maximum else { continue }
            closest.insert((stub, mismatches), at: place)
            closest = Array(closest.prefix(maximum))
        }
        guard !closest.isEmpty else { return "\(start); there are no stubs" }
        let lines = closest.map { stub, mismatches in
            let reasons = mismatches.prefix(maximum).joined(separator: "; ")
            return "\n  \(stub) (\(stub.location.text)): \(reasons)\(mismatches.count > maximum ? "; …" : "")"
        }
        return "\(start); the closest of \(stubs.count) \(stubs.count == 1 ? "stub" : "stubs"):\(lines.joined())"
    }
}
