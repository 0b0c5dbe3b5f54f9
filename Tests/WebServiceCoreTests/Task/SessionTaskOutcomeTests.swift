import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// Verifies that a task has one outcome, and how deadlines, transport errors and metrics are
/// reported.
@Suite("Outcome of a session task", .permit)
struct SessionTaskOutcomeTests {
    private let session = HandSession()

    // MARK: One outcome

    @Test("Cancelling delivers URLError.cancelled to the error handlers once, and a late response is ignored")
    func cancel() async {
        let errors = Collected<URLError.Code?>()
        let task = WebService.make(session).GET("/x").response { _, _ in Issue.record("no response") }
            .responseError { errors.add(($0 as? URLError)?.code) }
        task.resume()
        task.cancel()
        task.cancel()
        session.exchanges.values.first?.respond()
        session.exchanges.values.first?.completion(nil, nil, URLError(.timedOut))
        let drained = Collected<Int>()
        task.metricsCollected { _ in drained.add(1) }
        await drained.wait()
        #expect(errors.values == [.cancelled])
        #expect(session.exchanges.values.first?.log == ["resume", "cancel"])
        // A cancelled task is completed only after its handlers have returned.
        await eventually("the task completes") { task.state == .completed }
    }

    @Test(
        "The request is cancelled before the result is delivered, so that the next one does not use its connection",
        arguments: [true, false])
    func cancelledFirst(byDeadline: Bool) async {
        let session = SlowlyCancelledSession()
        let clock = WebServiceMocking.TestClock()
        let service = WebService(baseURLString: "https://api.test", clock: clock)
        service.session = session
        let task = service.GET("/x").setDeadline(.seconds(5)).responseError { _ in session.deliver() }
        task.resume()
        if byDeadline { await clock.advance(by: .seconds(5)) } else { task.cancel() }
        await eventually("the handler runs") { session.isDelivered.isSet }
        #expect(await !session.wasDeliveredBefore.value)
    }

    @Test("Cancelling before resume runs the error handlers and sends nothing")
    func cancelBeforeResume() async {
        let errors = Collected<URLError.Code?>()
        let task = WebService.make(session).GET("/x").responseError { errors.add(($0 as? URLError)?.code) }
        task.cancel()
        task.resume()
        #expect(await errors.wait() == [.cancelled])
        #expect(session.exchanges.values.isEmpty)
    }

    @Test("Cancelling a task in its own handler or after completion has no effect")
    func cancelInside() async {
        let seen = Collected<String>()
        let task = WebService.make(HandSession(text: "{}")).GET("/x")
        task.response { _, _ in
            task.cancel()
            seen.add("first")
        }
        .response { _, _ in seen.add("second") }
        .responseError { _ in seen.add("error") }
        .resume()
        await seen.wait(for: 2)
        task.cancel()
        task.response { _, _ in seen.add("third") }
        #expect(await seen.wait(for: 3) == ["first", "second", "third"])
    }

    @Test("A task that is never resumed is deallocated together with its handlers")
    func neverResumed() async {
        let freed = Collected<String>()
        do {
            let canary = Canary { freed.add("handler") }
            let task = WebService.make(HandSession(text: "{}")).GET("/x")
                .response { _, _ in canary.touch() }
                .updateUI { _ in canary.touch() }
                .metricsCollected { _ in canary.touch() }
                .setBody {
                    canary.touch()
                    return Data()
                }
            _ = task
        }
        #expect(freed.values == ["handler"])
    }

    @Test("A completed task is deallocated with its handlers, even if a handler captures the task")
    func freedAfterEnd() async {
        let freed = Collected<String>()
        do {
            let canary = Canary { freed.add("handler") }
            let task = WebService.make(HandSession(text: "{}")).GET("/x")
            task.response { _, _ in
                canary.touch()
                _ = task.state
            }
            task.resume()
        }
        #expect(await freed.wait() == ["handler"])
    }

    @Test("A resumed task completes without a strong reference to it or to its service")
    func nobodyHoldsIt() async {
        let done = Collected<Int>()
        WebService.make(session).GET("/x").response { _, _ in done.add(1) }.resume()
        session.exchanges.values.first?.respond()
        await done.wait()
    }

    @Test(
        "A task has one outcome if its session completes repeatedly, after a cancel and on many threads")
    func adversarialSession() async {
        let session = HandSession { exchange in
            exchange.completion(nil, nil, URLError(.timedOut))
            DispatchQueue.concurrentPerform(iterations: 8) { _ in exchange.respond("{}") }
        }
        let outcomes = Collected<String>()
        let task = WebService.make(session).GET("/x").response { _, _ in outcomes.add("response") }.responseError { _ in
            outcomes.add("error")
        }
        task.resume()
        task.cancel()
        let drained = Collected<Int>()
        task.metricsCollected { _ in drained.add(1) }
        await drained.wait()
        #expect(outcomes.values == ["error"])
    }

    @Test("Suspending a task defers its unsent request and its handlers until the task is resumed")
    func suspend() async {
        let done = Collected<Int>()
        let task = WebService.make(session).GET("/x").response { _, _ in done.add(1) }
        task.suspend()
        #expect(session.exchanges.values.isEmpty)
        task.resume()
        task.suspend()
        #expect(task.state == .suspended)
        session.exchanges.values.first?.respond()
        #expect(session.exchanges.values.first?.log == ["resume"])
        #expect(done.values.isEmpty)
        task.resume()
        await done.wait()
    }

    // MARK: The deadline

    @Test(
        "The deadline, measured by the injected clock, ends a task whose session never responds")
    func deadline() async {
        let clock = ManualTimekeeper()
        let errors = Collected<WebServiceError.Code?>()
        WebService.make(session, timekeeper: clock).GET("/x").setDeadline(.seconds(5))
            .responseError { errors.add(($0 as? WebServiceError)?.code) }.resume()
        clock.advance(by: .milliseconds(4_999))
        #expect(errors.values.isEmpty)
        clock.advance(by: .milliseconds(1))
        #expect(await errors.wait() == [.deadline])
        #expect(session.exchanges.values.first?.log == ["resume", "cancel"])
        #expect(clock.pending == 0)
    }

    @Test("The deadline is cancelled when the response arrives, and every task has a default deadline")
    func deadlineTakenBack() async {
        let clock = ManualTimekeeper()
        let task = WebService.make(session, timekeeper: clock).GET("/x")
        task.resume()
        #expect(clock.pending == 1)
        session.exchanges.values.first?.respond()
        await eventually { clock.pending == 0 }
        #expect(Request.Options().requestDeadline == .seconds(600))
    }

    @Test("The deadline also applies while a body provider runs")
    func deadlineOfProvider() async {
        let clock = ManualTimekeeper()
        let events = Collected<String>()
        WebService.make(HandSession(), timekeeper: clock).POST("/x").setDeadline(.seconds(1))
            .setBody {
                events.add("began")
                let (stream, continuation) = AsyncStream<Never>.makeStream()
                await withTaskCancellationHandler {
                    for await _ in stream {}
                } onCancel: {
                    continuation.finish()
                }
                return Data()
            }
            .responseError { events.add("\((($0 as? WebServiceError)?.code == .deadline))") }.resume()
        await events.wait()
        clock.advance(by: .seconds(1))
        #expect(await events.wait(for: 2) == ["began", "true"])
    }

    // MARK: Transport errors

    @Test("An NSError of the URL error domain is delivered as a URLError without the failing URL")
    func transportErrors() async throws {
        let url = try #require(URL(string: "https://h/?token=secret"))
        let given = NSError(
            domain: NSURLErrorDomain, code: NSURLErrorCannotConnectToHost, userInfo: [NSURLErrorFailingURLErrorKey: url]
        )
        let errors = Collected<URLError>()
        WebService.make(HandSession { $0.completion(nil, nil, given) }).GET("/x")
            .responseError { ($0 as? URLError).map(errors.add) }.resume()
        let error = try #require(await errors.wait().first)
        #expect(error.code == .cannotConnectToHost)
        #expect(!"\(error) \(error.userInfo)".contains("secret"))
    }

    @Test("A completion without data, response or error is a transport error")
    func emptyAnswer() async {
        let errors = Collected<URLError.Code?>()
        WebService.make(HandSession { $0.completion(nil, nil, nil) }).GET("/x")
            .responseError { errors.add(($0 as? URLError)?.code) }.resume()
        #expect(await errors.wait() == [.badServerResponse])
    }

    // MARK: Metrics

    @Test("Metrics are collected once, after the existing handlers, and contain each stage that took place")
    func metrics() async throws {
        let order = Collected<String>()
        let collected = Collected<ServiceTaskMetrics>()
        let task = WebService.make(HandSession(text: "{}")).GET("/x")
            .metricsCollected {
                order.add("metrics")
                collected.add($0)
            }
            .responseJSON { _, _ in order.add("json") }
            .updateUI { _ in order.add("ui") }
        #expect(task.metrics.fetchStart == nil)
        task.resume()
        let metrics = try #require(await collected.wait().first)
        #expect(order.values == ["json", "ui", "metrics"])
        for time in [metrics.responseTime, metrics.responseJSONTime, metrics.updateUITime] {
            #expect(try #require(time) >= .zero)
        }
        #expect(try #require(metrics.fetchStart) <= (try #require(metrics.responseEnd)))
        #expect(try #require(metrics.responseEnd) <= (try #require(metrics.updateUIStart)))
    }

    @Test("A stage that did not take place has no duration")
    func missingMetrics() async throws {
        let collected = Collected<ServiceTaskMetrics>()
        WebService.make().GET("../up").metricsCollected { collected.add($0) }.resume()
        let metrics = try #require(await collected.wait().first)
        #expect(metrics.fetchStart == nil)
        #expect(metrics.responseEnd == nil)
        #expect(metrics.responseTime == nil)
        #expect(metrics.responseJSONTime == nil)
        #expect(metrics.updateUITime == nil)
    }
}

/// A session whose tasks leave some time for handlers before they are cancelled.
private final class SlowlyCancelledSession: Session, DataTask {
    let isDelivered = OnceFlag()
    let wasDeliveredBefore = Once<Bool>()
    private let delivery = ThreadSignal()

    func deliver() {
        _ = isDelivered.set()
        delivery.signal()
    }

    var state: DataTaskState { .running }
    func resume() {}
    func suspend() {}
    func cancel() { wasDeliveredBefore.set(delivery.wait(milliseconds: 100)) }

    func dataTask(
        request: any URLRequestEncodable, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask { self }
}
