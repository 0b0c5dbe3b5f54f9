import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The exchanges of a cassette and which of them have been replayed.
final class CassettePlayer: Sendable {
    private let name: String
    private let exchanges: [Cassette.Exchange]
    private let requests: [CassetteRequest]
    /// The places of the exchanges with each target, in order.
    private let places: [CassetteRequest.Target: [Int]]
    private let order: CassetteSession.Order
    private let repeats: Bool
    private let compare: @Sendable (Cassette.Message) -> CassetteRequest
    private let used: Mutex<Set<Int>> = Mutex([])

    init(
        _ cassette: Cassette, name: String, order: CassetteSession.Order, repeats: Bool,
        compare: @escaping @Sendable (Cassette.Message) -> CassetteRequest
    ) {
        self.name = name
        self.order = order
        self.repeats = repeats
        self.compare = compare
        exchanges = cassette.exchanges
        let requests = exchanges.map { compare($0.request) }
        self.requests = requests
        places = Dictionary(grouping: requests.indices) { requests[$0].target }
    }

    /// Returns the exchange of a request and marks it as replayed.
    ///
    /// - Throws: `WebServiceError` with the code `cassetteMismatch`.
    func exchange(for message: Cassette.Message) throws -> Cassette.Exchange {
        let request = compare(message)
        let matching = places[request.target, default: []].filter { requests[$0].hasBody(of: request) }
        let place = used.withLock { used -> Int? in
            let place =
                switch order {
                case .byMatch: matching.first { !used.contains($0) } ?? (repeats ? matching.last : nil)
                case .inOrder: matching.contains(used.count) ? used.count : nil
                }
            if let place { used.insert(place) }
            return place
        }
        if let place { return exchanges[place] }
        throw WebServiceError(.cassetteMismatch, explanation(for: request, matching))
    }

    /// The request that `order` expects, or the most similar one, with the differences.
    private func explanation(for request: CassetteRequest, _ matching: [Int]) -> String {
        let used = used.withLock { $0 }
        let next = order == .inOrder ? used.count : nil
        if next == nil, !matching.isEmpty {
            let count = matching.count == 1 ? "the only exchange" : "all \(matching.count) exchanges"
            return "\(count) of \(name) for \(request.summary) \(matching.count == 1 ? "was" : "were") replayed already"
        }
        let differences = requests.map { $0.differences(from: request) }
        let nearest = next ?? differences.indices.min { differences[$0].count < differences[$1].count }
        guard let nearest, requests.indices.contains(nearest) else {
            return "no exchange of \(name) is left for \(request.summary); it has \(requests.count)"
        }
        let what = next == nil ? "the nearest of \(requests.count) is" : "the next of \(requests.count) is"
        return "no exchange of \(name) matches \(request.summary); \(what) exchange \(nearest + 1), "
            + "\(requests[nearest].summary): \(differences[nearest].joined(separator: "; "))"
    }

    /// The descriptions of the exchanges that were not replayed.
    var unused: [String] {
        let used = used.withLock { $0 }
        return requests.indices.filter { !used.contains($0) }.map { "exchange \($0 + 1), \(requests[$0].summary)" }
    }
}

/// A data task that replays an exchange, in the background and after `resume()`.
final class CassetteReplayTask: DataTask {
    private let phase = Mutex(TaskPhase.suspended(()))
    private let delivery: BodyDelivery
    private let clock: TaskClock
    private let find: @Sendable () throws -> Cassette.Exchange

    /// - Parameter find: Returns the exchange, or throws the error of the request.
    init(_ delivery: BodyDelivery, _ clock: TaskClock, find: @escaping @Sendable () throws -> Cassette.Exchange) {
        self.delivery = delivery
        self.clock = clock
        self.find = find
    }

    var state: DataTaskState { phase.withLock { $0.state } }

    func resume() {
        guard phase.withLock({ $0.resume() }) != nil else { return }
        clock.async { [self] in
            guard state == .running else { return }
            do { try replay(find()) } catch { delivery.finish(.failure(error)) }
            cancel()
        }
    }

    func suspend() {}

    /// The delivery completes with `URLError.cancelled` (``DeliveringTask``).
    func cancel() { _ = phase.withLock { $0.complete() } }

    private func replay(_ exchange: Cassette.Exchange) {
        let error = exchange.error.map { URLError(URLError.Code(rawValue: $0) ?? .unknown) }
        if exchange.response == nil, let error { return delivery.finish(.failure(error)) }
        guard let response = exchange.response, let head = response.head(url: exchange.request.url ?? "") else {
            return delivery.finish(.failure(URLError(.badServerResponse)))
        }
        let sent = Int64(exchange.request.body.count)
        if sent > 0 { delivery.send(sent, of: sent) }
        let body = response.body
        let length = response.length ?? Int64(body.count)
        delivery.receive(head, length: length < 0 ? nil : length)
        for start in stride(from: 0, to: body.count, by: 64 << 10) {
            delivery.receive(Data(body[start..<min(start + 64 << 10, body.count)]))
        }
        delivery.finish(error.map { .failure($0) } ?? .success(response.trailerFields))
    }
}
