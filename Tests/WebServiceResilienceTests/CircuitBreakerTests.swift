import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceResilience

@Suite("CircuitBreaker", .permit)
struct CircuitBreakerTests {
    private let clock = ManualTimekeeper()

    private func service(_ session: any Session, _ breaker: CircuitBreaker) -> WebService {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [breaker]
        return service
    }

    private func status(_ service: WebService, _ path: String = "/x") async throws -> Int {
        try await service.GET(path).data().validateNothing().response.status
    }

    /// Returns the time until the next trial of a request that is refused.
    private func refusal(_ service: WebService, _ path: String = "/x") async -> Duration? {
        let error = await #expect(throws: WebServiceError.self) { try await service.GET(path).data().value }
        #expect(error?.code == .circuitOpen)
        return error?.timeUntilTrial
    }

    private func errorCode(_ body: () async throws -> Void) async -> URLError.Code? {
        do { try await body() } catch { return (error as? URLError)?.code }
        return nil
    }

    @Test("A circuit opens after consecutive failures, and closes after a successful trial")
    func cycle() async throws {
        let session = ScriptedSession([.status(500), .error(.timedOut), .status(503), .status(502), .status(404)])
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(3), openDuration: .seconds(10)))
        #expect(try await status(service) == 500)
        #expect(await errorCode { _ = try await status(service) } == .timedOut)
        #expect(try await status(service) == 503)
        #expect(await refusal(service) == .seconds(10))
        clock.advance(by: .seconds(9))
        #expect(await refusal(service) == .seconds(1))
        #expect(session.sent.count == 3)
        clock.advance(by: .seconds(1))
        #expect(try await status(service) == 502)
        #expect(await refusal(service) == .seconds(10))
        clock.advance(by: .seconds(10))
        for _ in 0..<5 { #expect(try await status(service) == 404) }
        #expect(session.sent.count == 9)
    }

    @Test("A success between failures, a cancellation and an error of this device do not open a circuit")
    func closed() async throws {
        let session = ScriptedSession([
            .status(500), .status(200), .status(500), .error(.notConnectedToInternet), .error(.cancelled),
            .error(.badURL), .status(200), .status(500), .status(200),
        ])
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(2)))
        var results: [Int?] = []
        for _ in 0..<9 { results.append(try? await status(service)) }
        #expect(results == [500, 200, 500, nil, nil, nil, 200, 500, 200])
    }

    @Test("While a trial is in flight, other requests fail; a cancelled trial is followed by another one")
    func trial() async throws {
        let session = HandSession()
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10)))
        let first = service.GET("/a").data().resume()
        await session.exchanges.wait().last?.respond(status: 500)
        _ = await first.result
        clock.advance(by: .seconds(10))
        let cancelled = service.GET("/b").data().resume()
        await session.exchanges.wait(for: 2)
        #expect(await refusal(service) == .zero)
        cancelled.cancel()
        _ = await cancelled.result
        var trial = service.GET("/c").data().resume()
        // The circuit changes after the cancelled task has its result.
        while true {
            await eventually { session.exchanges.values.count == 3 || trial.settled != nil }
            if session.exchanges.values.count == 3 { break }
            trial = service.GET("/c").data().resume()
        }
        #expect(await refusal(service) == .zero)
        session.exchanges.values[2].respond()
        #expect(try await trial.response.status == 200)
        let after = service.GET("/d").data().resume()
        await session.exchanges.wait(for: 4).last?.respond()
        #expect(try await after.response.status == 200)
        #expect(trial.timeline.events.filter { $0.kind == .circuit }.map(\.detail) == ["closed"])
    }

    @Test("A request that was sent before the circuit opened does not affect it", arguments: [200, 500])
    func late(status: Int) async throws {
        let session = HandSession()
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10)))
        let tasks = (0..<2).map { service.GET("/\($0)").data().validateNothing().resume() }
        await session.exchanges.wait(for: 2).last?.respond(status: 500)
        await eventually { tasks.contains { $0.settled != nil } }
        clock.advance(by: .seconds(5))
        session.exchanges.values[0].respond(status: status)
        for task in tasks { _ = await task.result }
        #expect(await refusal(service) == .seconds(5))
        #expect(tasks.flatMap { $0.timeline.events.filter { $0.kind == .circuit }.map(\.detail) } == ["opened"])
    }

    @Test(
        "After the end of a trial's exchange, the next request is the trial, even if the first never returns",
        arguments: ["deadline", "cancellation"])
    func hungTrial(end: String) async throws {
        let (session, gate, isHung) = (ScriptedSession([.status(500), .status(200)]), Once<Void>(), OnceFlag())
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10)))
        service.interceptors.append(
            .closure { request, next in
                if request.url?.lastPathComponent == "hung" {
                    _ = isHung.set()
                    await gate.value
                }
                return try await next(request)
            })
        #expect(try await status(service) == 500)
        clock.advance(by: .seconds(10))
        let hung = service.GET("/hung").setDeadline(.seconds(5)).data().resume()
        await eventually { isHung.isSet }
        #expect(await refusal(service) == .zero)
        if end == "deadline" { clock.advance(by: .seconds(5)) } else { hung.cancel() }
        _ = await hung.result
        await eventually { (try? await status(service)) == 200 }  // refused while the trial is in flight
        gate.set(())
        #expect(try await status(service) == 200)
    }

    @Test("The error of a refused request contains the last failure, and its message is always the same")
    func lastFailure() async throws {
        let session = ScriptedSession([.status(500), .error(.timedOut), .status(503)])
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10)))
        #expect(try await status(service) == 500)
        var errors: [WebServiceError?] = []
        for delay in [Duration.zero, .seconds(4), .seconds(6)] {
            clock.advance(by: delay)
            if delay == .seconds(6) {
                #expect(await errorCode { _ = try await status(service) } == .timedOut)
            }
            errors.append(await #expect(throws: WebServiceError.self) { try await service.GET("/x").data().value })
        }
        #expect(errors.map { $0?.code } == [.circuitOpen, .circuitOpen, .circuitOpen])
        #expect(errors.map { $0?.response?.status } == [500, 500, nil])
        #expect(errors.map { ($0?.underlying as? URLError)?.code } == [nil, nil, .timedOut])
        #expect(errors.map { $0?.timeUntilTrial } == [.seconds(10), .seconds(6), .seconds(10)])
        #expect(
            Set(errors.map { $0?.message })
                == ["recent requests failed, so no request is sent; try again after timeUntilTrial"])
        #expect(Set(errors.map { $0?.description }).count == 1)
    }

    @Test("A refused request records the last failure and the next trial in its timeline")
    func refusedTimeline() async throws {
        let session = ScriptedSession([.status(503)])
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10)))
        #expect(try await status(service) == 503)
        let task = service.GET("/x").data()
        _ = await task.result
        #expect(task.timeline.events.map(\.kind) == [.circuit])
        #expect(task.timeline.events.map(\.detail) == ["not sent after status 503; the next trial is in 10.0 seconds"])
    }

    @Test("An open circuit retains the head of the last failure, not its body")
    func failureBody() async throws {
        let session = HandSession()
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1)))
        let first = service.GET("/a").data().validateNothing().resume()
        await session.exchanges.wait().last?.respond("details", status: 500)
        #expect(try await first.response.data == Data("details".utf8))
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/x").data().value }
        #expect(error?.response?.status == 500)
        #expect(error?.body == nil)
    }

    @Test("A circuit releases the last failure when it closes")
    func releasedFailure() async throws {
        struct Failure: Error { let canary: Canary }
        let isReleased = OnceFlag()
        let breaker = CircuitBreaker(
            opensAfter: .consecutiveFailures(1), openDuration: .seconds(10), isFailure: { (try? $0.get()) == nil })
        let service = service(ScriptedSession([.status(200)]), breaker)
        service.interceptors.append(
            .closure { request, next in
                guard request.url?.lastPathComponent == "failing" else { return try await next(request) }
                throw Failure(canary: Canary { _ = isReleased.set() })
            })
        _ = try? await status(service, "/failing")
        #expect(await refusal(service) == .seconds(10))
        #expect(!isReleased.isSet)
        clock.advance(by: .seconds(10))
        #expect(try await status(service) == 200)
        await eventually { isReleased.isSet }
        // The service retains the circuit until here.
        #expect(try await status(service) == 200)
    }

    @Test("Each origin, or each custom key, has its own circuit")
    func keys() async throws {
        let session = ScriptedSession([.status(500)])
        let service = service(session, CircuitBreaker(opensAfter: .consecutiveFailures(1)))
        for url in ["https://a/x", "https://b/x"] { #expect(try await status(service, url) == 500) }
        #expect(await refusal(service, "https://a/y") == .seconds(30))
        let byPath = self.service(
            session, CircuitBreaker(opensAfter: .consecutiveFailures(1), by: { $0.url?.path ?? "" }))
        #expect(try await status(byPath, "https://a/x") == 500)
        #expect(try await status(byPath, "https://a/y") == 500)
        #expect(await refusal(byPath, "https://b/x") == .seconds(30))
    }

    @Test("A custom rule defines the failures, and an open circuit is not retried")
    func rule() async throws {
        let session = ScriptedSession([.status(429), .status(500)])
        let breaker = CircuitBreaker(opensAfter: .consecutiveFailures(1), isFailure: { (try? $0.get())?.status == 429 })
        let service = service(session, breaker)
        service.interceptors = [.retry(statuses: [500]), breaker]
        #expect(try await status(service) == 429)
        #expect(await refusal(service) == .seconds(30))
        #expect(session.sent.count == 1)
        let other = self.service(
            session, CircuitBreaker(opensAfter: .consecutiveFailures(1), isFailure: { _ in false }))
        for _ in 0..<3 { #expect(try await status(other) == 500) }
    }

    /// Creates a service with a breaker that opens at a ratio of one half.
    private func halfService(_ session: any Session) -> WebService {
        let threshold = CircuitBreaker.Threshold.failureRatio(0.5, minimumRequests: 4, window: .seconds(10))
        return service(session, CircuitBreaker(opensAfter: threshold, openDuration: .seconds(5)))
    }

    @Test("A circuit opens at a ratio of failures, although no two are consecutive")
    func ratio() async throws {
        let session = ScriptedSession([.status(500), .status(200), .status(200), .status(500), .status(200)])
        let service = halfService(session)
        for expected in [500, 200, 200, 500] { #expect(try await status(service) == expected) }
        #expect(await refusal(service) == .seconds(5))
        clock.advance(by: .seconds(5))
        #expect(try await status(service) == 200)
        // The results before the trial no longer count.
        #expect(try await status(service) == 200)
    }

    @Test("A circuit does not open below the minimum number of requests")
    func minimumRequests() async throws {
        let service = halfService(ScriptedSession([.status(500)]))
        for _ in 0..<4 { #expect(try await status(service) == 500) }
        #expect(await refusal(service) == .seconds(5))
    }

    @Test("Results older than the window do not count")
    func window() async throws {
        let service = halfService(ScriptedSession([.status(500)]))
        for _ in 0..<3 { #expect(try await status(service) == 500) }
        clock.advance(by: .seconds(10))
        for _ in 0..<4 { #expect(try await status(service) == 500) }
        #expect(await refusal(service) == .seconds(5))
    }

    @Test("Extreme values neither trap nor refuse the first request")
    func extremes() async throws {
        let long = Duration.seconds(Int64.max)
        for (failures, duration) in [(Int.min, Duration.seconds(-1)), (Int.max, long), (1, long)] {
            let service = service(
                ScriptedSession([.status(500)]),
                CircuitBreaker(opensAfter: .consecutiveFailures(failures), openDuration: duration))
            #expect(try await status(service) == 500)
            if failures == 1 { #expect(await refusal(service) ?? .zero > .seconds(1_000_000)) }
        }
        let service = WebService.make()
        service.interceptors = [.circuitBreaker(opensAfter: .consecutiveFailures(4), openDuration: .seconds(3))]
        let breaker = try #require(service.interceptors.last as? CircuitBreaker)
        #expect((breaker.threshold, breaker.openDuration) == (.consecutiveFailures(4), .seconds(3)))
    }

    // MARK: State

    private static let origin = "https://h"

    /// Starts a request that the test responds to.
    private func begin(_ service: WebService, _ session: HandSession, number: Int) async -> TypedTask<Data> {
        let task = service.GET("/\(number)").data().validateNothing().resume()
        await session.exchanges.wait(for: number)
        return task
    }

    /// Responds to a request, and waits until its circuit has the result.
    private func end(
        _ task: TypedTask<Data>, _ session: HandSession, number: Int, status: Int
    ) async {
        session.exchanges.values[number - 1].respond(status: status)
        _ = await task.result
    }

    @Test("The state of a circuit is available by key and by origin")
    func states() async throws {
        let session = HandSession()
        let breaker = CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10))
        let service = service(session, breaker)
        #expect(breaker.state(of: Self.origin) == .closed)
        await end(await begin(service, session, number: 1), session, number: 1, status: 500)
        #expect(breaker.state(of: Self.origin) == .open(remaining: .seconds(10)))
        clock.advance(by: .seconds(4))
        #expect(breaker.state(of: try #require(Origin("https://H:443/x"))) == .open(remaining: .seconds(6)))
        #expect(breaker.state(of: "https://other") == .closed)
        clock.advance(by: .seconds(7))
        #expect(breaker.state(of: Self.origin) == .open(remaining: .zero))
        let trial = await begin(service, session, number: 2)
        #expect(breaker.state(of: Self.origin) == .halfOpen)
        await end(trial, session, number: 2, status: 200)
        #expect(breaker.state(of: Self.origin) == .closed)
    }

    @Test("Changes of state are delivered in order, to each sequence")
    func changes() async throws {
        let session = ScriptedSession([.status(500), .status(503), .status(200)])
        let breaker = CircuitBreaker(opensAfter: .consecutiveFailures(1), openDuration: .seconds(10))
        let service = service(session, breaker)
        let sequences = [breaker.changes, breaker.changes]
        for _ in 0..<3 {
            _ = try await status(service)
            clock.advance(by: .seconds(10))
        }
        breaker.open(Self.origin)
        breaker.close(Self.origin)
        for sequence in sequences {
            var received: [CircuitBreaker.State] = []
            for await change in sequence {
                #expect(change.key == Self.origin)
                received.append(change.state)
                if received.count == 7 { break }
            }
            #expect(
                received == [
                    .open(remaining: .seconds(10)), .halfOpen, .open(remaining: .seconds(10)), .halfOpen, .closed,
                    .open(remaining: nil), .closed,
                ])
        }
    }

    @Test("The sequence of changes ends with the circuit breaker")
    func endOfChanges() async {
        var breaker: CircuitBreaker? = CircuitBreaker()
        let changes = breaker?.changes
        breaker?.open("a")
        breaker = nil
        var states: [CircuitBreaker.State] = []
        if let changes { for await change in changes { states.append(change.state) } }
        #expect(states == [.open(remaining: nil)])
    }

    @Test("Changes by several threads are delivered in the order in which they took place")
    func orderOfChanges() async {
        let breaker = CircuitBreaker()
        let changes = breaker.changes
        Thread.concurrently(4) { _ in
            for _ in 0..<100 {
                breaker.open("a")
                breaker.close("a")
            }
        }
        breaker.open("end")
        var states: [CircuitBreaker.State] = []
        for await change in changes {
            if change.key == "end" { break }
            states.append(change.state)
        }
        // A closed circuit is not closed again.
        let closed = states.indices.filter { states[$0] == .closed }
        #expect(closed.allSatisfy { $0 > 0 && states[$0 - 1] == .open(remaining: nil) })
        #expect(states.count { $0 == .open(remaining: nil) } == 400)
        #expect(states.last == .closed)
        #expect(breaker.state(of: "a") == .closed)
    }

    @Test("A circuit that was opened manually refuses requests until it is closed manually")
    func manual() async throws {
        let session = ScriptedSession([.status(200)])
        let breaker = CircuitBreaker(openDuration: .seconds(10))
        let service = service(session, breaker)
        breaker.open(try #require(Origin("https://h/v1")))
        #expect(breaker.state(of: Self.origin) == .open(remaining: nil))
        let task = service.GET("/x").data()
        let error = await #expect(throws: WebServiceError.self) { try await task.value }
        #expect(error?.code == .circuitOpen)
        #expect(error?.timeUntilTrial == nil)
        #expect(
            error?.message == "the circuit was opened manually, so no request is sent; close it to send requests again")
        #expect(task.timeline.events.map(\.detail) == ["not sent, because the circuit was opened manually"])
        clock.advance(by: .seconds(100_000))
        #expect(await refusal(service) == nil)
        #expect(try await status(service, "https://other/x") == 200)
        breaker.close(try #require(Origin("https://h")))
        #expect(try await status(service) == 200)
    }

    @Test("Closing a circuit manually forgets its failures, and requests in flight do not affect it")
    func reset() async throws {
        let session = HandSession()
        let breaker = CircuitBreaker(opensAfter: .consecutiveFailures(2), openDuration: .seconds(10))
        let service = service(session, breaker)
        await end(await begin(service, session, number: 1), session, number: 1, status: 500)
        breaker.close(Self.origin)
        await end(await begin(service, session, number: 2), session, number: 2, status: 500)
        #expect(breaker.state(of: Self.origin) == .closed)
        let late = await begin(service, session, number: 3)
        breaker.open(Self.origin)
        breaker.close(Self.origin)
        await end(late, session, number: 3, status: 500)
        await end(await begin(service, session, number: 4), session, number: 4, status: 500)
        #expect(breaker.state(of: Self.origin) == .closed)
    }

    /// Creates a service whose circuit is open and has two trials, of which the first can be sent.
    private func twoTrials(_ session: HandSession) async -> (service: WebService, breaker: CircuitBreaker) {
        let breaker = CircuitBreaker(
            opensAfter: .consecutiveFailures(1), openDuration: .seconds(10), maximumTrials: 2)
        let service = service(session, breaker)
        await end(await begin(service, session, number: 1), session, number: 1, status: 500)
        clock.advance(by: .seconds(10))
        return (service, breaker)
    }

    @Test("Several trials are sent at the same time, and the circuit closes when all have succeeded")
    func trials() async {
        let session = HandSession()
        let (service, breaker) = await twoTrials(session)
        let first = await begin(service, session, number: 2)
        let second = await begin(service, session, number: 3)
        #expect(await refusal(service) == .zero)
        await end(first, session, number: 2, status: 200)
        #expect(breaker.state(of: Self.origin) == .halfOpen)
        #expect(await refusal(service) == .zero)
        await end(second, session, number: 3, status: 200)
        #expect(breaker.state(of: Self.origin) == .closed)
    }

    @Test(
        "A trial that fails opens the circuit, and the result of the other one does not count", arguments: [200, 500])
    func failedTrial(status: Int) async {
        let session = HandSession()
        let (service, breaker) = await twoTrials(session)
        let first = await begin(service, session, number: 2)
        let second = await begin(service, session, number: 3)
        await end(second, session, number: 3, status: 503)
        #expect(breaker.state(of: Self.origin) == .open(remaining: .seconds(10)))
        clock.advance(by: .seconds(3))
        await end(first, session, number: 2, status: status)
        #expect(breaker.state(of: Self.origin) == .open(remaining: .seconds(7)))
    }

    @Test("A trial that is cancelled is followed by another one")
    func cancelledTrial() async {
        let session = HandSession()
        let (service, breaker) = await twoTrials(session)
        let first = await begin(service, session, number: 2)
        let second = await begin(service, session, number: 3)
        second.cancel()
        // The circuit changes after the cancelled task has its result.
        var third = service.GET("/x").data().resume()
        while true {
            await eventually { session.exchanges.values.count == 4 || third.settled != nil }
            if session.exchanges.values.count == 4 { break }
            third = service.GET("/x").data().resume()
        }
        await end(first, session, number: 2, status: 200)
        await end(third, session, number: 4, status: 200)
        #expect(breaker.state(of: Self.origin) == .closed)
    }
}
