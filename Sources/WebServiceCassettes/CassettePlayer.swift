import Foundation
import WebServiceCore
import WebServiceMocking

/// A player of a cassette's exchanges. It records which of them have been replayed.
final class CassettePlayer: Sendable {
    private let name: String
    let exchanges: [Cassette.Exchange]
    private let requests: [CassetteRequest]
    /// The indices of the exchanges for each target, in order.
    private let places: [CassetteRequest.Target: [Int]]
    private let order: CassetteSession.Order
    private let repeats: Bool
    private let matches: [@Sendable (ReceivedRequest, ReceivedRequest) -> Bool]
    private let compare: @Sendable (Cassette.Message) -> CassetteRequest
    private let used: Mutex<Set<Int>> = Mutex([])
    private let failures: Mutex<[WebServiceError]> = Mutex([])

    /// - Parameters:
    ///   - criteria: The criteria for comparing requests. Only the custom ones are applied here.
    ///   - compare: A closure that reduces a request to the compared parts.
    init(
        _ cassette: Cassette, name: String, order: CassetteSession.Order, repeats: Bool,
        criteria: [CassetteSession.Criterion], compare: @escaping @Sendable (Cassette.Message) -> CassetteRequest
    ) {
        matches = criteria.compactMap { if case .custom(let matches) = $0 { matches } else { nil } }
        self.name = name
        self.order = order
        self.repeats = repeats
        self.compare = compare
        exchanges = cassette.exchanges
        let requests = exchanges.map { compare($0.request) }
        self.requests = requests
        places = Dictionary(grouping: requests.indices) { requests[$0].target }
    }

    /// Returns the exchange that matches a request, and marks it as replayed.
    ///
    /// - Throws: `WebServiceError` with the code `cassetteMismatch` if no exchange matches.
    func exchange(for message: Cassette.Message) throws -> Cassette.Exchange {
        let request = compare(message)
        let matching = places(of: request)
        if let exchange = take(matching) { return exchange }
        throw WebServiceError(.cassetteMismatch, explanation(for: request, matching))
    }

    /// Returns the exchange that matches a request, and marks it as replayed. Returns `nil` if the
    /// request was not recorded.
    ///
    /// - Throws: `WebServiceError` with the code `cassetteMismatch` if the order requires other
    ///   exchanges to be replayed before a new one.
    func exchange(ifRecorded message: Cassette.Message) throws -> Cassette.Exchange? {
        let request = compare(message)
        let matching = places(of: request)
        if let exchange = take(matching) { return exchange }
        guard order == .byMatch || used.withLock({ $0.count }) == exchanges.count else {
            throw WebServiceError(.cassetteMismatch, explanation(for: request, matching))
        }
        return nil
    }

    private func places(of request: CassetteRequest) -> [Int] {
        places[request.target, default: []].filter { place in
            requests[place].hasBody(of: request) && matches.allSatisfy { $0(requests[place].request, request.request) }
        }
    }

    private func take(_ matching: [Int]) -> Cassette.Exchange? {
        used.withLock { used -> Int? in
            let place =
                switch order {
                case .byMatch: matching.first { !used.contains($0) } ?? (repeats ? matching.last : nil)
                case .inOrder: matching.contains(used.count) ? used.count : nil
                }
            if let place { used.insert(place) }
            return place
        }.map { exchanges[$0] }
    }

    /// Returns a description of the request that `order` expects, or else of the most similar one,
    /// and of its differences from the given request.
    private func explanation(for request: CassetteRequest, _ matching: [Int]) -> String {
        let used = used.withLock { $0 }
        let next = order == .inOrder ? used.count : nil
        if next == nil, !matching.isEmpty {
            let count = matching.count == 1 ? "the only exchange" : "all \(matching.count) exchanges"
            return "\(count) of \(name) for \(request.summary) \(matching.count == 1 ? "was" : "were") already replayed"
                + "; record the cassette again or pass repeats: true"
        }
        let differences = requests.map { $0.differences(from: request) }
        let nearest = next ?? differences.indices.min { differences[$0].count < differences[$1].count }
        guard let nearest, requests.indices.contains(nearest) else {
            return
                "no exchange of \(name) is left for \(request.summary) (\(requests.count) were recorded); correct the "
                + "program or record the cassette again"
        }
        let lines = differences[nearest].isEmpty ? ["a custom criterion is not met"] : differences[nearest]
        let what = next == nil ? "the nearest of \(requests.count) is" : "the next of \(requests.count) is"
        return "no exchange of \(name) matches \(request.summary); \(what) exchange \(nearest + 1), "
            + "\(requests[nearest].summary): \(lines.joined(separator: "; ")); correct the program or record "
            + "the cassette again"
    }

    /// The error of the first message that differed from the recorded one; `nil` if all messages
    /// were equal.
    var failure: WebServiceError? { failures.withLock { $0.first } }

    /// Returns the error of a connection whose client sent a message that differs from the recorded
    /// one.
    ///
    /// - Parameters:
    ///   - expected: The recorded message; `nil` if there is none.
    ///   - number: The number of the message among the messages that the client has sent.
    /// - Returns: `nil` if the messages are equal.
    func mismatch(
        _ expected: WebSocketMessage?, sent: WebSocketMessage, number: Int, in exchange: Cassette.Exchange
    ) -> WebServiceError? {
        let sent = CassetteMessage(sent, compare)
        let expected = expected.map { CassetteMessage($0, compare) }
        let difference = expected.map { $0.difference(from: sent) } ?? "expected no further message, received \(sent)"
        guard let difference else { return nil }
        let error = WebServiceError(
            .cassetteMismatch,
            "message \(number) of \(compare(exchange.request).summary) differs from the recorded one in \(name): "
                + "\(difference); correct the program or record the cassette again")
        failures.withLock { $0.append(error) }
        return error
    }

    /// The descriptions of the exchanges that were not replayed.
    var unused: [String] {
        let used = used.withLock { $0 }
        return requests.indices.filter { !used.contains($0) }.map { "exchange \($0 + 1), \(requests[$0].summary)" }
    }
}
