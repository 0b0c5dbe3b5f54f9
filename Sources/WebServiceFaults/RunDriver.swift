import Foundation
import WebServiceCore
import WebServiceMocking

/// A driver of one run on one thread. It runs the jobs of the test clock, releases the waiting
/// requests one at a time, and advances the clock if no request waits.
final class RunDriver: ExchangeGate {
    /// A closure that cancels the Swift task of the explored code.
    typealias Cancel = @Sendable () -> Void

    /// The limits and settings of a run.
    struct Settings: Sendable {
        var maximumExchanges: Int
        /// Whether code is expected that the clock does not count: threads, tasks or actors.
        var isThorough = true
        /// The real time after which code that nothing can wake is considered hung, in
        /// milliseconds.
        var patience = 2_000
        /// The requests whose effects the check counts.
        let counted = CountedRequests()
    }

    /// A step of a plan with its fault.
    struct Step: Sendable {
        /// The name of the exchange without its number: `GET /socket#` for `GET /socket#1`, and
        /// `GET /socket#1.` for the message `GET /socket#1.3`.
        let name: String
        let number: Int
        let isLasting: Bool
        let fault: Fault

        /// - Throws: ``FaultViolation`` that names what does not exist.
        init(_ step: FaultPlan.Step, of plan: FaultPlan, _ faults: [Fault]) throws(FaultViolation) {
            let sign = step.exchange.lastIndex { "#.".contains($0) } ?? step.exchange.startIndex
            let digits = step.exchange[sign...].dropFirst()
            guard step.exchange.contains("#"), let number = Int(digits), number > 0 else {
                throw FaultViolation("the step '\(step)' of '\(plan)' names no exchange such as 'GET /path#1'")
            }
            guard let fault = faults.first(where: { $0.name == step.fault }) ?? Fault(positioned: step.fault) else {
                throw FaultViolation("the fault '\(step.fault)' of the plan '\(plan)' does not exist")
            }
            name = String(step.exchange[...sign])
            (self.number, isLasting, self.fault) = (number, step.isLasting, fault)
        }
    }

    /// A request or a message that waits.
    struct Parked: Sendable {
        let exchange: any GatedExchange
        let kind: FaultTrace.Exchange.Kind
        /// The name without its number.
        let name: String
        /// The number of the arrival.
        let arrival: Int
        /// The number of requests and messages that were released while this one waited.
        var passes = 0

        /// Returns whether this request or message is released before another one.
        func precedes(_ other: Parked) -> Bool {
            // A loop of requests must not keep others waiting forever.
            if (passes < 20) != (other.passes < 20) { return passes >= 20 }
            if name != other.name { return name < other.name }
            let (first, second) = (exchange.request, other.exchange.request)
            if first.target != second.target { return first.target < second.target }
            if first.body != second.body { return first.body.lexicographicallyPrecedes(second.body) }
            // The bytes of a message from a client contain a random mask.
            if kind != other.kind { return kind == .sentMessage }
            return arrival < other.arrival
        }
    }

    private struct State {
        var trace: FaultTrace
        var numbers: [String: Int] = [:]
        var end: FaultTrace.End?
        var isStopped = false
        /// The requests and messages that wait; `nil` after the run, when later ones wait forever.
        var parked: [Parked]? = []
        /// The names of released exchanges, for the messages of handshakes.
        var names: [ObjectIdentifier: String] = [:]
        /// The number of arrivals and of ends of the explored code.
        var events = 0
        /// Whether the run has ended, and has not been abandoned.
        var isComplete = false
        /// The alarm of ``watch(after:onStop:)``.
        var watch: Alarm?
    }

    let clock: TestClock
    let work: WorkCount
    private let wake = ThreadSignal()
    private let steps: [Step]
    private let settings: Settings
    private let flush: Flush
    private let name: @Sendable (ReceivedRequest) -> String
    private let onLateRequest: @Sendable () -> Void
    private let state: Mutex<State>

    private static let maximumDuration = Duration.seconds(3600)
    /// The limits for the time after the end of the explored code.
    private static let (extraDuration, extraExchanges) = (Duration.seconds(120), 50)

    /// - Parameters:
    ///   - name: A closure that returns the name of an exchange without its number.
    ///   - onLateRequest: A closure that is called for each request that arrives after the run is
    ///     complete.
    init(
        _ plan: FaultPlan, _ steps: [Step], _ settings: Settings, _ flush: Flush,
        name: @escaping @Sendable (ReceivedRequest) -> String, onLateRequest: @escaping @Sendable () -> Void
    ) {
        work = WorkCount { [wake] in wake.signal() }
        clock = TestClock(work: work)
        (self.steps, self.settings, self.flush) = (steps, settings, flush)
        (self.name, self.onLateRequest) = (name, onLateRequest)
        state = Mutex(State(trace: FaultTrace(plan: plan, counted: settings.counted)))
    }

    /// Notes the end of the explored code.
    func bodyDidEnd<Output>(_ result: Result<Output, any Error>) {
        let kind: String? = if case .failure(let error) = result { FaultTrace.kind(error) } else { nil }
        work.noteEvent()
        state.withLock { state in
            (state.end, state.trace.errorKind) = (kind == nil ? .returned : .threw, kind)
            state.events += 1
        }
        wake.signal()
    }

    /// Ends the run as soon as the driver's thread can.
    ///
    /// - Returns: The trace so far.
    func stop() -> FaultTrace {
        state.withLock { $0.isStopped = true }
        wake.signal()
        return trace(end: .busy)
    }

    /// Calls a closure if the run makes no progress for 10 seconds of real time. The closure may
    /// also be called after the end of the run.
    func watch(after last: Int? = nil, onStop: @escaping @Sendable () -> Void) {
        let events = events
        guard events != last else { return onStop() }
        let alarm = TaskClock.system.schedule(after: .seconds(10)) { [weak self] in
            self?.watch(after: events, onStop: onStop)
        }
        state.withLock { $0.watch = alarm }
    }

    // MARK: The run

    /// Runs until the explored code and its requests have ended, or a limit is reached.
    func drive(cancel: @escaping Cancel) -> FaultTrace {
        let abnormalEnd = work.drive { run(cancel) }
        let parked = state.withLock { state in
            state.isComplete = abnormalEnd == nil
            return state.parked.take()
        }
        withExtendedLifetime(parked) {}  // deallocated outside the lock
        work.stopDriving(isAbandoned: abnormalEnd != nil)
        if let watch = state.withLock({ $0.watch }) { TaskClock.system.cancel(watch) }
        return trace(end: abnormalEnd ?? .hung)
    }

    /// Returns the trace of the run so far.
    ///
    /// - Parameter end: How the run ends if the explored code has not ended.
    private func trace(end: FaultTrace.End) -> FaultTrace {
        state.withLock { state in
            (state.trace.elapsed, state.trace.end) = (clock.elapsed, state.end ?? end)
            state.trace.seesUncounted = work.hasForeignEvents
            state.trace.isStuck = state.isStopped || state.trace.end == .busy
            return state.trace
        }
    }

    /// - Returns: The reason why the run was abandoned; `nil` if it has ended.
    private func run(_ cancel: @escaping Cancel) -> FaultTrace.End? {
        var endCount: (exchanges: Int, instant: Duration)?
        while true {
            let events = events
            guard settle() else { return .busy }
            let (end, count, isStopped) = state.withLock { ($0.end, $0.trace.exchanges.count, $0.isStopped) }
            if isStopped { return .busy }
            if end != nil, endCount == nil { endCount = (count, clock.elapsed) }
            if count >= settings.maximumExchanges { return .endless }
            if let endCount, count - endCount.exchanges >= Self.extraExchanges { return .endless }
            if let next = takeNext() {
                release(next, cancel)
                continue
            }
            // Another thread may have set an alarm for a request that has not arrived yet.
            guard events == self.events else { continue }
            let limit = endCount.map { $0.instant + Self.extraDuration } ?? Self.maximumDuration
            if let delay = clock.timeToNextAlarm {
                guard clock.elapsed + delay <= limit else { return end == nil ? .overtime : nil }
                clock.fireNextAlarm()
                continue
            }
            if end != nil { return nil }
            let start = ContinuousClock.now
            // An alarm may have been set without a signal.
            guard wait(milliseconds: settings.patience) || events != self.events else { return .hung }
            state.withLock { $0.trace.realWait = max($0.trace.realWait, ContinuousClock.now - start) }
        }
    }

    /// Runs all work, including work that the clock does not count, until nothing more happens.
    ///
    /// If no uncounted work is expected, the driver does not wait for such work. If it occurs
    /// nevertheless, the run is repeated.
    ///
    /// - Returns: `false` if the work does not end.
    private func settle() -> Bool {
        var quiet = 0
        while true {
            guard drain() else { return false }
            guard settings.isThorough, quiet < 4 else { return true }
            let before = events
            flush.round()
            quiet = work.isActive || events != before ? 0 : quiet + 1
        }
    }

    /// A number that changes with each request and each alarm.
    private var events: Int { state.withLock { $0.events } + clock.scheduledCount }

    /// Runs the jobs of the clock, and waits for the work of other threads that the clock counts.
    private func drain() -> Bool {
        var jobs = 0
        while true {
            jobs += work.runJobs(maximum: 10_000)
            guard work.isActive else { return true }
            if jobs > 1_000_000 || state.withLock({ $0.isStopped }) { return false }
            _ = wait(milliseconds: 10)
        }
    }

    /// Waits for signals, for at most the given number of milliseconds of real time.
    ///
    /// - Returns: Whether there was a signal. All signals so far are then discarded.
    private func wait(milliseconds: Int) -> Bool {
        guard wake.wait(milliseconds: milliseconds) else { return false }
        while wake.wait(milliseconds: 0) {}
        return true
    }

    // MARK: Requests and messages

    func receive(_ exchange: any GatedExchange) { park(exchange, .request, "\(name(exchange.request))#") }

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
    private func takeNext() -> Parked? {
        var parked = state.withLock { state in
            defer { state.parked = [] }
            return state.parked ?? []
        }
        parked.removeAll { $0.exchange.isOver }
        guard let next = parked.min(by: { $0.precedes($1) }) else { return nil }
        parked.removeAll { $0.arrival == next.arrival }
        for place in parked.indices { parked[place].passes += 1 }
        if !parked.isEmpty { state.withLock { $0.parked?.append(contentsOf: parked) } }
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
            let name = "\(parked.name)\(number)"
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
    private func release(_ parked: Parked, _ cancel: @escaping Cancel) {
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
        exchange.deliver(result) { [self] delivery in
            let error = delivery.error.map(FaultTrace.text)
            change(index) { ($0.status, $0.error) = (delivery.status, error) }
        }
    }

    private func change(_ index: Int, _ body: (inout FaultTrace.Exchange) -> Void) {
        state.withLock { body(&$0.trace.exchanges[index]) }
    }
}
