import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// The recorder of an exchange, with a clock under the control of the test.
@Suite("Exchange log", .permit)
struct ExchangeLogTests {
    private let clock = ManualTimekeeper()

    @Test("An exchange sends at most 100 requests", .covers("H-17"))
    func requestLimit() throws {
        let log = ExchangeLog(TaskClock(clock))
        let request = try Request(url: "https://h/").encode()
        for _ in 0..<SessionTask.maximumAttempts { try log.willSend(request) }
        #expect { try log.willSend(request) } throws: { ($0 as? WebServiceError)?.code == .tooManyAttempts }
        #expect(log.record.attempts == SessionTask.maximumAttempts)
    }

    @Test(
        "An interruption ends the attempt in flight and does not change an attempt that has ended",
        arguments: [false, true])
    func interruptedAttempt(isInFlight: Bool) throws {
        let log = ExchangeLog(TaskClock(clock))
        log.begin(at: clock.instant)
        let request = try Request(url: "https://h/").encode()
        try log.willSend(request)
        clock.advance(by: .seconds(1))
        log.didReceive(.success(Response(body: Data(), source: .mock)), nil)
        clock.advance(by: .seconds(1))
        if isInFlight { try log.willSend(request) }
        clock.advance(by: .seconds(1))
        _ = log.end(.failure(TestError()))
        let attempts = log.record.timeline.events
        #expect(attempts.map(\.start) == (isInFlight ? [.zero, .seconds(2)] : [.zero]))
        #expect(attempts.map(\.duration) == (isInFlight ? [.seconds(1), .seconds(1)] : [.seconds(1)]))
        #expect(attempts.last?.detail == (isInFlight ? "TestError" : ""))
    }

    @Test("Attempts and other events at the same instant keep their order")
    func simultaneousEvents() throws {
        let log = ExchangeLog(TaskClock(clock))
        log.begin(at: clock.instant)
        let request = try Request(url: "https://h/").encode()
        for _ in 0..<2 {
            try log.willSend(request)
            log.didReceive(.success(Response(body: Data(), source: .mock)), nil)
            log.record(.redirect)
        }
        #expect(log.record.timeline.events.map(\.kind) == [.attempt, .redirect, .attempt, .redirect])
    }

    @Test("The time of an event is not before that of the previous one, also if another thread read the clock earlier")
    func lateEvents() {
        let exchange = ObservedExchange(
            id: 1, parent: nil, request: nil, type: nil, isComposite: false, date: Date(timeIntervalSince1970: 0))
        var queue = EventQueue(exchange, [], start: 10)
        let events = ([10, 15, 12, 16, 3] as [UInt64]).map { instant in
            defer { _ = queue.next() }
            return queue.add(.created, at: instant)?.event.nanoseconds
        }
        #expect(events == [0, 5, 5, 6, 6])
    }

    @Test("A request that is about to be sent when the exchange ends is not reported to observers")
    func lateAttempt() throws {
        let log = ExchangeLog(TaskClock(clock))
        let recorder = EventRecorder()
        log.begin(at: clock.instant)
        log.observe(by: [recorder], Request(url: "https://h/"))
        _ = log.end(.failure(TestError()))
        try log.willSend(try Request(url: "https://h/").encode())
        #expect(recorder.lines().count == 2)
        #expect(recorder.lines().last?.hasPrefix("ended") == true)
    }

    @Test("The dates of a task that was not resumed are those of the service's clock", .covers("M-333"))
    func datesWithoutResume() {
        let date = Date(timeIntervalSince1970: 1_000)
        let log = ExchangeLog(TaskClock(TestTimekeeper(clock, date: { date })))
        log.mark(.updateUIStart, at: clock.instant)
        clock.advance(by: .seconds(2))
        log.mark(.updateUIEnd, at: clock.instant)
        #expect(log.record.metrics.updateUIStart == date)
        #expect(log.record.metrics.updateUIEnd == date.addingTimeInterval(2))
    }

    @Test("An exchange that ends without a request has no end of a response")
    func nothingSent() {
        let log = ExchangeLog(TaskClock(clock))
        log.begin(at: clock.instant)
        _ = log.end(.failure(TestError()))
        #expect(log.record.metrics.responseEnd == nil)
    }

    @Test("The account of an exchange is the first value that each owner provides")
    func account() {
        let (one, other) = (NSObject(), NSObject())
        let log = ExchangeLog(TaskClock(clock))
        #expect(log.account(ObjectIdentifier(one), .afterLogOuts(1)) == .afterLogOuts(1))
        #expect(log.account(ObjectIdentifier(one), .named(nil)) == .afterLogOuts(1))
        #expect(log.account(ObjectIdentifier(other), .named([3])) == .named([3]))
    }
}

/// The gate that holds the requests of a suspended task.
@Suite("Send gate", .permit)
struct SendGateTests {
    @Test("An open gate grants requests, a closed gate holds them in order, and an ended gate refuses them")
    func states() {
        let gate = SendGate()
        let sent = Collected<Int>()
        #expect(gate.admit { {} } == .granted)
        gate.close()
        for number in 1...3 { #expect(gate.admit { { sent.add(number) } } == .held) }
        gate.close()
        #expect(gate.holdsRequests == true)
        #expect(sent.values.isEmpty)
        for send in gate.open() { send() }
        #expect(sent.values == [1, 2, 3])
        #expect(gate.holdsRequests == false)
        #expect(gate.admit { {} } == .granted)
        gate.close()
        #expect(gate.admit { { sent.add(4) } } == .held)
        gate.end()
        #expect(gate.open().isEmpty)
        #expect(gate.admit { {} } == .refused)
        #expect(sent.values == [1, 2, 3])
    }
}
