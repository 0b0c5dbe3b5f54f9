import Foundation
import TestSupport

@testable import WebServiceResilience

/// The distribution of the duration of requests without a queue. The mean is 1.
///
/// The parameters of the gradient were selected with the first two, with constant times, with sums
/// of four exponential times, and with a mixture of two constants.
enum ServiceTimes: String, CaseIterable {
    case exponential
    /// The logarithms have a standard deviation of 0.8.
    case lognormal
    /// Pareto, with the exponent 2.5. Not used to select parameters.
    case pareto

    func next(_ generator: inout SeededGenerator) -> Double {
        let number = generator.unit()
        switch self {
        case .exponential: return -log(number)
        case .lognormal:
            let normal = (-2 * log(number)).squareRoot() * cos(2 * .pi * generator.unit())
            return exp(0.8 * normal - 0.32)
        case .pareto: return 0.6 / pow(number, 1 / 2.5)
        }
    }
}

extension SeededGenerator {
    /// Returns a number between 0 and 1.
    mutating func unit() -> Double { (Double(next() >> 11) + 0.5) / 0x1p53 }
}

/// A discrete-event simulation of a server with workers and a queue, first in, first out.
///
/// The client always has more requests than the limit. The unit of time is a round trip without a
/// queue: the mean service time, 1. A request that is rejected takes 0.01.
struct ServerModel {
    /// The end of a request.
    private struct Event {
        var time: Double
        var sent: Double
        var outcome: RequestOutcome
    }

    private(set) var limit: any LimitAlgorithm
    private let times: ServiceTimes
    /// The number of requests that may wait for each worker; further ones are rejected.
    private let queuePerWorker: Double
    private var generator: SeededGenerator
    private var events = Heap<Event>()
    private var queue: [Double] = []
    private var head = 0
    private var workers = 0
    private var busy = 0
    private var inFlight = 0
    private var now = 0.0
    private(set) var served = 0
    private(set) var rejected = 0
    /// The limits, with the time from which they applied.
    private(set) var limits: [(time: Double, limit: Int)] = []

    init(_ limit: ConcurrencyLimit, _ times: ServiceTimes, seed: UInt64, queuePerWorker: Double = .infinity) {
        self.limit = limit.algorithm
        self.times = times
        self.queuePerWorker = queuePerWorker
        generator = SeededGenerator(seed: seed)
        limits = [(0, limit.algorithm.limit)]
    }

    private var waiting: Int { queue.count - head }

    /// Runs the server with a number of workers.
    mutating func run(workers: Int, until end: Double) {
        self.workers = workers
        dispatch()
        send()
        while let event = events.first, event.time < end {
            events.removeFirst()
            now = event.time
            if event.outcome == .success { (busy, served) = (busy - 1, served + 1) } else { rejected += 1 }
            dispatch()
            let roundTrip = UInt64((now - event.sent) * 1e8)
            limit.end(
                EndedRequest(
                    roundTrip: roundTrip, inFlight: inFlight, outcome: event.outcome, instant: UInt64(now * 1e8)))
            inFlight -= 1
            if limit.limit != limits.last?.limit { limits.append((now, limit.limit)) }
            send()
        }
        now = end
    }

    private mutating func send() {
        while inFlight < limit.limit {
            inFlight += 1
            if busy >= workers, Double(waiting) >= queuePerWorker * Double(workers) {
                events.insert(Event(time: now + 0.01, sent: now, outcome: .overload), at: now + 0.01)
            } else {
                queue.append(now)
                dispatch()
            }
        }
    }

    private mutating func dispatch() {
        while busy < workers, head < queue.count {
            let time = now + times.next(&generator)
            events.insert(Event(time: time, sent: queue[head], outcome: .success), at: time)
            (head, busy) = (head + 1, busy + 1)
        }
        if head > 1_000 {
            queue.removeFirst(head)
            head = 0
        }
    }

    /// The mean of the limit over a period.
    func mean(from start: Double, to end: Double) -> Double {
        let ends = limits.dropFirst().map(\.time) + [now]
        let sum = zip(limits, ends).reduce(0) { sum, step in
            sum + Double(step.0.limit) * max(0, min(step.1, end) - max(step.0.time, start))
        }
        return sum / (end - start)
    }
}

/// A binary heap: the element with the lowest key is the first.
private struct Heap<Element> {
    private var nodes: [(key: Double, element: Element)] = []

    var first: Element? { nodes.first?.element }

    mutating func insert(_ element: Element, at key: Double) {
        nodes.append((key, element))
        var place = nodes.count - 1
        while place > 0, nodes[place].key < nodes[(place - 1) / 2].key {
            nodes.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func removeFirst() {
        nodes.swapAt(0, nodes.count - 1)
        nodes.removeLast()
        var place = 0
        while true {
            let children = [2 * place + 1, 2 * place + 2].filter { $0 < nodes.count }
            guard let least = children.min(by: { nodes[$0].key < nodes[$1].key }), nodes[least].key < nodes[place].key
            else { return }
            nodes.swapAt(place, least)
            place = least
        }
    }
}
