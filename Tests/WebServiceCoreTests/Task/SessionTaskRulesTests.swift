import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// Verifies when a request is encoded and sent, and in which order and on which queue handlers run.
@Suite("Requests and handlers of a session task", .permit)
struct SessionTaskRulesTests {
    private let session = HandSession()
    private let done = Collected<Int>()

    // MARK: Resuming and encoding

    @Test("Nothing is sent before resume, and a second resume has no effect")
    func inertUntilResumed() async {
        let task = WebService.make(session).GET("/x").response { _, _ in }
        #expect(session.exchanges.values.isEmpty)
        #expect(task.state == .suspended)
        task.resume()
        task.resume()
        #expect(session.exchanges.values.count == 1)
        #expect(task.state == .running)
        session.exchanges.values.first?.respond()
        await eventually { task.state == .completed }
    }

    @Test("A task that is resumed 1,000 times concurrently sends one request")
    func concurrentResume() async {
        let task = WebService.make(session).GET("/x")
        DispatchQueue.concurrentPerform(iterations: 1_000) { _ in task.resume() }
        #expect(session.exchanges.values.count == 1)
    }

    @Test("The request is encoded at the first resume, and later setters have no effect")
    func encodedOnce() {
        let task = WebService.make(session).POST("/x").setBody(Data("a".utf8))
        task.resume()
        task.setBody(Data("b".utf8)).setHeaderValue("1", forName: "X-Late")
        let sent = session.exchanges.values.first?.request.urlRequestValue
        #expect(sent?.httpBody == Data("a".utf8))
        #expect(task.request.headers.isEmpty)
    }

    @Test(
        "An encoding error is delivered to the error handlers, and nothing is sent",
        arguments: ["../up", "ftp://h/x", "//h/{id}"])
    func encodingError(path: String) async {
        let errors = Collected<WebServiceError.Code?>()
        WebService.make(session).GET(path).response { _, _ in Issue.record("no response") }
            .responseError { errors.add(($0 as? WebServiceError)?.code) }.resume()
        #expect(await errors.wait() == [.invalidURL])
        #expect(session.exchanges.values.isEmpty)
    }

    @Test("JSON that cannot be serialized fails the task with an encoding error")
    func jsonError() async throws {
        let errors = Collected<WebServiceError>()
        WebService.make().POST("/x").setJSON(["n": Double.nan] as [String: Any])
            .responseError { ($0 as? WebServiceError).map(errors.add) }.resume()
        let error = try #require(await errors.wait().first)
        #expect(error.code == .encoding)
        #expect(error.request?.url?.absoluteString == "https://h/v1/x")
    }

    // MARK: Body providers

    @Test("A body provider runs once, after resume, and its bytes are sent")
    func bodyProvider() async {
        let session = HandSession(text: "{}")
        let calls = Collected<Bool>()
        let task = WebService.make(session).POST("/x").setBody(contentType: "application/json") {
            calls.add(true)
            return Data("[1]".utf8)
        }
        #expect(calls.values.isEmpty)
        task.response { _, _ in done.add(1) }.resume()
        await done.wait()
        #expect(calls.values.count == 1)
        let sent = session.exchanges.values.first?.request.urlRequestValue
        #expect(sent?.httpBody == Data("[1]".utf8))
        #expect(sent?.value(forHTTPHeaderField: "Content-Type") == "application/json")
    }

    @Test("The error of a body provider is delivered to the error handlers, and nothing is sent")
    func failingProvider() async {
        let errors = Collected<TestError?>()
        WebService.make(session).POST("/x").setBody { throw TestError(name: "provider") }
            .responseError { errors.add($0 as? TestError) }.resume()
        #expect(await errors.wait() == [TestError(name: "provider")])
        #expect(session.exchanges.values.isEmpty)
    }

    @Test("Cancelling a task cancels its body provider")
    func cancelledProvider() async {
        let events = Collected<String>()
        let task = WebService.make(session).POST("/x").setBody {
            events.add("began")
            let (stream, continuation) = AsyncStream<Never>.makeStream()
            await withTaskCancellationHandler {
                for await _ in stream {}
            } onCancel: {
                continuation.finish()
            }
            events.add(Task.isCancelled ? "cancelled" : "not cancelled")
            return Data()
        }
        task.resume()
        await events.wait()
        task.cancel()
        #expect(await events.wait(for: 2) == ["began", "cancelled"])
        #expect(session.exchanges.values.isEmpty)
    }

    // MARK: Order and queues of handlers

    @Test(
        "Handlers run in the order they were added, including those added in a handler or after the response"
    )
    func order() async {
        let order = Collected<Int>()
        let task = WebService.make(session).GET("/x")
        for index in 0..<50 { task.response { _, _ in order.add(index) } }
        task.response { _, _ in
            order.add(50)
            task.response { _, _ in order.add(52) }
        }
        task.updateUI { _ in order.add(51) }
        task.resume()
        session.exchanges.values.first?.respond()
        await order.wait(for: 53)
        for index in 53..<60 { task.response { _, _ in order.add(index) } }
        #expect(await order.wait(for: 60) == Array(0..<60))
    }

    @Test("10,000 handlers added concurrently while the response arrives run once each, one at a time")
    func concurrentAdders() async {
        let task = WebService.make(session).GET("/x")
        let ran = Collected<Int>()
        let inside = Collected<Int>()
        task.resume()
        DispatchQueue.concurrentPerform(iterations: 10_001) { index in
            if index == 5_000 {
                session.exchanges.values.first?.respond()
            } else {
                task.response { _, _ in
                    inside.add(1)
                    if inside.values.count % 2 != 1 { Issue.record("two handlers ran at the same time") }
                    inside.add(1)
                    ran.add(index)
                }
            }
        }
        #expect(Set(await ran.wait(for: 10_000)).count == 10_000)
    }

    @Test("Background handlers never run on the main queue, and main handlers always do")
    func queues() async {
        let task = WebService.make(HandSession(text: "{}")).GET("/x")
            .response { _, _ in
                dispatchPrecondition(condition: .notOnQueue(.main))
                done.add(1)
            }
            .updateUI { _ in
                MainActor.assertIsolated()
                dispatchPrecondition(condition: .onQueue(.main))
                done.add(2)
            }
            .transform { _ in
                dispatchPrecondition(condition: .notOnQueue(.main))
                done.add(3)
            }
            .responseJSON { _, _ in
                dispatchPrecondition(condition: .notOnQueue(.main))
                done.add(4)
                throw TestError()
            }
            .updateErrorUI { _ in
                MainActor.assertIsolated()
                done.add(5)
            }
            .responseError { _ in
                dispatchPrecondition(condition: .notOnQueue(.main))
                done.add(6)
            }
        _ = await MainActor.run { task.resume() }
        #expect(await done.wait(for: 6) == [1, 2, 3, 4, 5, 6])
    }

    @Test("Background handlers run while the main thread is blocked")
    func blockedMainThread() async {
        let service = WebService.make(HandSession(text: "{}"))
        let result = await MainActor.run {
            let done = DispatchSemaphore(value: 0)
            service.GET("/x").responseJSON { _, _ in .empty }.response { _, _ in done.signal() }.resume()
            return done.wait(timeout: .now() + 60)
        }
        #expect(result == .success)
    }

    @Test("Handlers that follow a main-queue handler run after it returns")
    func mainHandlersHoldBack() async {
        let order = Collected<String>()
        WebService.make(HandSession(text: "{}")).GET("/x")
            .updateUI { _ in order.add("first on main") }
            .updateUI { _ in order.add("second on main") }
            .response { _, _ in order.add("background") }
            .updateUI { _ in order.add("third on main") }
            .resume()
        #expect(await order.wait(for: 4) == ["first on main", "second on main", "background", "third on main"])
    }

    @Test("A blocked handler does not delay other tasks")
    func slowHandler() async {
        let service = WebService.make(HandSession(text: "{}"))
        let release = DispatchSemaphore(value: 0)
        service.GET("/slow").response { _, _ in release.wait() }.response { _, _ in done.add(0) }.resume()
        for index in 1...20 { service.GET("/x").response { _, _ in done.add(index) }.resume() }
        #expect(Set(await done.wait(for: 20)) == Set(1...20))
        release.signal()
        await done.wait(for: 21)
    }

    // MARK: Results and errors of handlers

    @Test("A transform runs only after a result; a Void handler creates an empty result or keeps the existing one")
    func transform() async {
        let seen = Collected<String>()
        WebService.make(HandSession(text: "{}")).GET("/x")
            .transform { _ in seen.add("too early") }
            .response { _, _ in }
            .transform { value in seen.add("after nothing: \(value == nil)") }
            .response { _, _ in .value(1) }
            .response { _, _ in seen.add("looked") }
            .transform { value in seen.add("value \(value as? Int ?? 0)") }
            .response { _, _ in .empty }
            .transform { value in seen.add("after empty: \(value == nil)") }
            .resume()
        #expect(await seen.wait(for: 4) == ["after nothing: true", "looked", "value 1", "after empty: true"])
    }

    @Test("Recover and error handlers run only after a failure, and a recovered value ends the failure")
    func recover() async {
        let seen = Collected<String>()
        WebService.make(HandSession(text: "{}")).GET("/x")
            .recover { _ in .failure(TestError(name: "must not run")) }
            .response { _, _ in throw TestError(name: "a") }
            .response { _, _ in seen.add("must not run") }
            .responseError { seen.add(($0 as? TestError)?.name ?? "") }
            .recover { _ in throw TestError(name: "b") }
            .responseError { seen.add(($0 as? TestError)?.name ?? "") }
            .recover { _ in .value("fine") }
            .responseError { _ in seen.add("must not run") }
            .transform { seen.add($0 as? String ?? "") }
            .updateUI { seen.add("ui \($0 as? String ?? "")") }
            .resume()
        #expect(await seen.wait(for: 4) == ["a", "b", "fine", "ui fine"])
    }

    // MARK: JSON

    @Test("JSON is parsed once for any number of handlers")
    func jsonOnce() async throws {
        let session = HandSession(text: #"{"a":[1,2]}"#)
        let sums = Collected<Int>()
        let metrics = Collected<ServiceTaskMetrics>()
        let sum: @Sendable (Any, URLResponse?) -> Void = { json, _ in
            sums.add(((json as? [String: Any])?["a"] as? [Int])?.reduce(0, +) ?? -1)
        }
        let task = WebService.make(session).GET("/x").responseJSON(sum).responseJSON(sum).metricsCollected {
            metrics.add($0)
        }
        task.resume()
        let first = try #require(await metrics.wait().first)
        task.responseJSON(sum).metricsCollected { metrics.add($0) }
        let second = try #require(await metrics.wait(for: 2).last)
        #expect(sums.values == [3, 3, 3])
        #expect(first.responseJSONStart != nil)
        #expect(first.responseJSONStart == second.responseJSONStart)
        #expect(first.responseJSONEnd == second.responseJSONEnd)
    }

    @Test(
        "An empty body and malformed JSON are typed errors with the response and the body",
        arguments: [("", "emptyResponse"), ("{", "decoding"), ("nope", "decoding")])
    func jsonErrors(body: String, code: String) async throws {
        let errors = Collected<WebServiceError>()
        WebService.make(HandSession(text: body)).GET("/x").responseJSON { _, _ in Issue.record("no JSON") }
            .responseError { ($0 as? WebServiceError).map(errors.add) }.resume()
        let error = try #require(await errors.wait().first)
        #expect(error.code.description == code)
        #expect(error.response?.status == 200)
        #expect(error.body == (body.isEmpty ? nil : Data(body.utf8)))
    }

    @Test("A top-level JSON number is accepted")
    func jsonFragment() async {
        let values = Collected<Int>()
        WebService.make(HandSession(text: "42")).GET("/x").responseJSON { json, _ in values.add(json as? Int ?? 0) }
            .resume()
        #expect(await values.wait() == [42])
    }

    #if WEBSERVICE_THREAD_SANITIZER && canImport(Glibc)
    @Test("An exchange with one handler takes the lock of its task at most 8 times")
    func locks() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let values = Collected<Int>()
        let service = ServiceCore(TaskClock(ManualTimekeeper()))
        service.configure { $0.session = session }
        let task = SessionTask(service, Request(.GET, url: "https://h/x")).response { _, _ in values.add(1) }.resume()
        #expect(await values.wait() == [1])
        #expect((5...8).contains(task.call.lockCount))
    }
    #endif
}
