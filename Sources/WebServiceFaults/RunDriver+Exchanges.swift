import Foundation
import WebServiceCore
import WebServiceMocking

// Requests and messages wait until the driver releases them, one at a time.
extension RunDriver: ExchangeGate {
    /// A request or a message that waits.
    struct Parked: Sendable {
        let exchange: any GatedExchange
        let kind: FaultTrace.Exchange.Kind
        /// The name without its number.
        let name: String
        /// The number of the arrival.
        let arrival: Int

        /// Returns whether this request or message is released before another one.
        func precedes(_ other: Parked) -> Bool {
            if name != other.name { return name < other.name }
            let (first, second) = (exchange.request, other.exchange.request)
            if first.target != second.target { return first.target < second.target }
            if first.body != second.body { return first.body.lexicographicallyPrecedes(second.body) }
            // The bytes of a message from a client contain a random mask.
            if kind != other.kind { return kind == .sentMessage }
            return arrival < other.arrival
        }
    }

    func receive(_ exchange: any GatedExchange) { park(exchange, .request, name(exchange.request)) }

    /// Lets a request or a message wait.
    func park(_ exchange: any GatedExchange, _ kind: FaultTrace.Exchange.Kind, _ name: String) {
        work.noteEvent()
        let isLate = state.withLock { state in
            state.events += 1
            state.parked?.append(Parked(exchange: exchange, kind: kind, name: name, arrival: state.events))
            return state.isComplete
        }
        if isLate { onLateRequest() }
        wake.signal()
    }

    func connection(_ connection: any ByteConnection, of exchange: any GatedExchange) -> any ByteConnection {
        let name = state.withLock { $0.names.removeValue(forKey: ObjectIdentifier(exchange)) }
        return GatedSocket(connection, of: exchange.request, "\(name ?? "").", self)
    }

    /// Removes and returns what is released next (``Parked/precedes(_:)``), and removes what no
    /// client waits for.
    func takeNext() -> Parked? {
        var parked = state.withLock { state in
            defer { state.parked = [] }
            return state.parked ?? []
        }
        parked.removeAll { $0.exchange.isOver }
        guard let next = parked.min(by: { $0.precedes($1) }) else { return nil }
        let others = parked.filter { $0.arrival != next.arrival }
        if !others.isEmpty { state.withLock { $0.parked?.append(contentsOf: others) } }
        return next
    }

    // MARK: Faults

    /// A closure that receives the result of a stub.
    private typealias Respond = @Sendable (any MockableDataTaskResult) -> Void

    /// Records an exchange, and returns its index and its fault.
    private func begin(_ parked: Parked) -> (Int, Fault?) {
        state.withLock { state in
            let number = state.numbers[parked.name, default: 0] + 1
            state.numbers[parked.name] = number
            let fault = steps.first { step in
                step.name == parked.name && (step.number == number || step.isLasting && step.number < number)
            }?.fault
            let name = "\(parked.name)\(parked.kind == .request ? "#" : "")\(number)"
            state.names[ObjectIdentifier(parked.exchange)] = name
            var exchange = FaultTrace.Exchange(
                kind: parked.kind, name: name, request: parked.exchange.request, fault: fault?.name,
                instant: clock.elapsed, isAfterEnd: state.end != nil, arrival: parked.arrival, release: state.events)
            // Other faults of a plan have no effect at a message.
            let occurs = parked.kind == .request || fault?.condition(exchange) == true
            if !occurs { exchange.fault = nil }
            state.trace.exchanges.append(exchange)
            return (state.trace.exchanges.count - 1, occurs ? fault : nil)
        }
    }

    /// Lets a request or a message proceed with its fault.
    func release(_ parked: Parked, _ cancel: @escaping Cancel) {
        let exchange = parked.exchange
        let (index, fault) = begin(parked)
        guard let fault else {
            // The target of `redirected` is another server, which has no resources.
            if exchange.request.origin == Fault.otherOrigin {
                return deliver(MockResponse.text("not found", status: 404), to: exchange, index)
            }
            return process(exchange, index) { [self] in deliver($0, to: exchange, index) }
        }
        if !fault.isAfterEffect {
            guard fault.cancelsCaller else {
                return deliver(fault.response(MockResponse(statusCode: 200), exchange.request), to: exchange, index)
            }
            cancel()
            _ = settle()
            // Code that does not propagate its cancellation still waits for the response.
            if !exchange.isOver { process(exchange, index) { [self] in deliver($0, to: exchange, index) } }
        } else if fault.delay > .zero {
            _ = TaskClock(clock).schedule(after: fault.delay) { [self, clock] in
                TaskClock(clock).async { [self] in
                    if !exchange.isOver { apply(fault, to: exchange, index, cancel) }
                }
            }
        } else {
            apply(fault, to: exchange, index, cancel)
        }
    }

    /// Lets the stub process a request, and delivers the response with a fault.
    private func apply(_ fault: Fault, to exchange: any GatedExchange, _ index: Int, _ cancel: @escaping Cancel) {
        let respond: Respond = { [self] result in
            if fault.cancelsCaller {
                cancel()
                // The response arrives after the consequences of the cancellation.
                return TaskClock(clock).async { [self] in deliver(result, to: exchange, index) }
            }
            deliver(fault.response(MockResponse(result, to: exchange.request), exchange.request), to: exchange, index)
        }
        process(exchange, index) { [self] result in
            if fault.deliveries == 1 { respond(result) } else { process(exchange, index, respond) }
        }
    }

    private func process(_ exchange: any GatedExchange, _ index: Int, _ then: @escaping Respond) {
        exchange.process { [self] result in
            let response = MockResponse(result, to: exchange.request)
            let facts = FaultTrace.Facts(response)
            change(index) { exchange in
                exchange.deliveries += 1
                exchange.facts = facts
                let hasStatus = exchange.kind == .request && response.failure == nil
                exchange.serverStatus = hasStatus ? response.statusCode : nil
                if hasStatus, response.statusCode < 400 { exchange.effects += 1 }
            }
            guard response.hasProducedBody else { return then(result) }
            then(response.observingParts { [self] count in change(index) { $0.facts.add(count) } })
        }
    }

    private func deliver(_ result: any MockableDataTaskResult, to exchange: any GatedExchange, _ index: Int) {
        guard !exchange.isOver else { return }
        let delivery = exchange.deliver(result)
        let error = delivery.error.map(FaultTrace.text)
        change(index) { ($0.status, $0.error) = (delivery.status, error) }
    }

    private func change(_ index: Int, _ body: (inout FaultTrace.Exchange) -> Void) {
        state.withLock { body(&$0.trace.exchanges[index]) }
    }
}
