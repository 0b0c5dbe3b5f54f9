import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// The recorder of an exchange, with a clock under the control of the test.
@Suite("Exchange log", .permit)
struct ExchangeLogTests {
    private let clock = ManualTimekeeper()

    private func task(_ timekeeper: (any Timekeeper)? = nil) -> SessionTask {
        WebService(baseURLString: "", passthroughDelegate: nil, timekeeper: timekeeper ?? clock).GET("/")
    }

    @Test("An exchange sends at most 100 requests")
    func requestLimit() throws {
        let task = self.task()
        let request = try Request(url: "https://h/").encode()
        for _ in 0..<SessionTask.maximumAttempts { try task.willSend(request, source: .mock) }
        #expect { try task.willSend(request, source: .mock) } throws: {
            ($0 as? WebServiceError)?.code == .tooManyAttempts
        }
        #expect(task.log.attempts == SessionTask.maximumAttempts)
    }

    @Test(
        "An interruption ends the attempt in flight and does not change an attempt that has ended",
        arguments: [false, true])
    func interruptedAttempt(isInFlight: Bool) throws {
        let task = self.task()
        task.begin(Request(url: "https://h/"))
        let request = try Request(url: "https://h/").encode()
        let receiver = try task.willSend(request, source: .mock)
        clock.advance(by: .seconds(1))
        task.didReceive(.success(Response(body: Data(), source: .mock)), nil, receiver)
        clock.advance(by: .seconds(1))
        if isInFlight { try task.willSend(request, source: .mock) }
        clock.advance(by: .seconds(1))
        task.complete(.failure(TestError()))
        let attempts = task.log.timeline.events
        #expect(attempts.map(\.start) == (isInFlight ? [.zero, .seconds(2)] : [.zero]))
        #expect(attempts.map(\.duration) == (isInFlight ? [.seconds(1), .seconds(1)] : [.seconds(1)]))
        #expect(attempts.last?.detail == (isInFlight ? "TestError" : ""))
    }

    @Test("Attempts and other events at the same instant keep their order")
    func simultaneousEvents() throws {
        let task = self.task()
        task.begin(Request(url: "https://h/"))
        let request = try Request(url: "https://h/").encode()
        for _ in 0..<2 {
            let receiver = try task.willSend(request, source: .mock)
            task.didReceive(.success(Response(body: Data(), source: .mock)), nil, receiver)
            task.record(.redirect)
        }
        #expect(task.log.timeline.events.map(\.kind) == [.attempt, .redirect, .attempt, .redirect])
    }

    @Test("The time of an event is not before that of the previous one, also if another thread read the clock earlier")
    func lateEvents() {
        let exchange = ObservedExchange(
            id: 1, parent: nil, request: nil, type: nil, isComposite: false, date: Date(timeIntervalSince1970: 0))
        struct Times: Observer {
            let values = Collected<UInt64>()
            func observe(_ event: ExchangeEvent) { values.add(event.nanoseconds) }
        }
        let times = Times()
        let events = EventQueue(exchange, [times], TaskClock(clock), start: 10)
        for instant in [10, 15, 12, 16, 3] as [UInt64] where events.add(.created, at: instant) { events.deliver() }
        #expect(times.values.values == [0, 5, 5, 6, 6])
    }

    @Test("A request that is about to be sent when the exchange ends is not reported to observers")
    func lateAttempt() throws {
        let task = self.task()
        let recorder = EventRecorder()
        task.begin(Request(url: "https://h/"))
        task.observe(by: [recorder], Request(url: "https://h/"))
        task.complete(.failure(TestError()))
        let request = try Request(url: "https://h/").encode()
        #expect { try task.willSend(request, source: .mock) } throws: { ($0 as? URLError)?.code == .cancelled }
        #expect(recorder.lines().count == 2)
        #expect(recorder.lines().last?.hasPrefix("ended") == true)
    }

    @Test("The dates of a task that was not resumed are those of the service's clock")
    func datesWithoutResume() {
        let date = Date(timeIntervalSince1970: 1_000)
        let task = self.task(TestTimekeeper(clock, date: { date }))
        task.mark(.updateUIStart, at: clock.instant)
        clock.advance(by: .seconds(2))
        task.mark(.updateUIEnd, at: clock.instant)
        #expect(task.log.metrics.updateUIStart == date)
        #expect(task.log.metrics.updateUIEnd == date.addingTimeInterval(2))
    }

    @Test("An exchange that ends without a request has no end of a response")
    func nothingSent() {
        let task = self.task()
        task.begin(Request(url: "https://h/"))
        task.complete(.failure(TestError()))
        #expect(task.log.metrics.responseEnd == nil)
    }

    @Test("The account of an exchange is the first value that each owner provides")
    func account() {
        let (one, other) = (NSObject(), NSObject())
        let task = self.task()
        #expect(task.account(ObjectIdentifier(one), .afterLogOuts(1)) == .afterLogOuts(1))
        #expect(task.account(ObjectIdentifier(one), .named(nil)) == .afterLogOuts(1))
        #expect(task.account(ObjectIdentifier(other), .named([3])) == .named([3]))
    }
}

/// The permission to send of an exchange.
@Suite("Permission to send", .permit)
struct PermissionTests {
    private let task = WebService.make().GET("/x")
    private let sent = Collected<Int>()

    private var heldCount: Int {
        task.call.withLock { if case .held(let turns) = $0.permission { turns.count } else { 0 } }
    }

    /// Starts requests that wait one after another.
    private func hold(_ numbers: ClosedRange<Int>) async -> [Task<Void, any Error>] {
        task.call.withLock { task.holdRequests(&$0) }
        var requests: [Task<Void, any Error>] = []
        for number in numbers {
            requests.append(
                Task {
                    try await task.permission()
                    sent.add(number)
                })
            await eventually { heldCount == requests.count }
        }
        return requests
    }

    @Test("A suspended exchange holds its requests, and grants them in order")
    func held() async throws {
        try await task.permission()
        let requests = await hold(1...3)
        task.call.withLock { task.holdRequests(&$0) }
        #expect(task.holdsRequests == true)
        #expect(sent.values.isEmpty)
        for (turn, request) in zip(task.call.withLock { task.grantPermission(&$0) }, requests) {
            turn.set(true)
            try await request.value
        }
        #expect(sent.values == [1, 2, 3])
        #expect(task.holdsRequests == false)
        try await task.permission()
    }

    @Test("An exchange that has ended sends no request that was held")
    func ended() async throws {
        let requests = await hold(1...1)
        task.complete(.failure(TestError()))
        await #expect { try await requests[0].value } throws: { ($0 as? URLError)?.code == .cancelled }
        #expect(task.call.withLock { task.grantPermission(&$0) }.isEmpty)
        #expect(sent.values.isEmpty)
    }
}
