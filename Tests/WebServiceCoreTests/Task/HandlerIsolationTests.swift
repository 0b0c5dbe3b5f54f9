import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceCore

/// Custom code may block, use the service and replace its parts while the framework calls it.
@Suite("Blocking and reentrant handlers and delegates", .exclusive)
struct HandlerIsolationTests {
    private let done = Collected<Int>()

    @Test("Blocked handlers do not delay other tasks, even with twice as many handlers as cores")
    func blockedHandlers() async {
        let service = WebService.make(HandSession(text: "{}"))
        let release = DispatchSemaphore(value: 0)
        let blocked = Collected<Int>()
        let count = max(4, 2 * ProcessInfo.processInfo.activeProcessorCount)
        for index in 0..<count {
            service.GET("/slow").response { _, _ in
                blocked.add(index)
                release.wait()
            }
            .response { _, _ in done.add(-1) }.resume()
        }
        await blocked.wait(for: count)
        for index in 1...20 { service.GET("/x").response { _, _ in done.add(index) }.resume() }
        #expect(Set(await done.wait(for: 20)) == Set(1...20))
        for _ in 0..<count { release.signal() }
        await done.wait(for: 20 + count)
    }

    @Test("Blocked delegates and typed steps do not delay other tasks")
    func blockedElsewhere() async throws {
        final class Slow: PartialDelegate {
            let blocked = Collected<Void>()
            let release = DispatchSemaphore(value: 0)
            func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {
                guard (response as? HTTPURLResponse)?.statusCode == 201 else { return }
                blocked.add(())
                release.wait()
            }
        }
        let slow = Slow()
        let service = WebService.make(HandSession(text: "{}", status: 201), delegate: slow)
        let other = WebService.make(HandSession(text: "{}"), delegate: slow)
        let count = max(4, 2 * ProcessInfo.processInfo.activeProcessorCount)
        for index in 0..<count {
            service.GET("/slow").data().map { data in
                slow.blocked.add(())
                slow.release.wait()
                return data
            }
            .onCompletion { _ in done.add(index) }.resume()
        }
        await slow.blocked.wait(for: count)
        #expect(try await other.GET("/x").data().value.count == 2)
        for _ in 0..<(2 * count) { slow.release.signal() }
        await done.wait(for: count)
    }

    @Test(
        "A handler may start a task, add handlers and a storage, and remove the delegate",
        arguments: ["background", "main", "error", "typed"])
    func reenter(place: String) async throws {
        final class Delegate: PartialDelegate {
            let failures = Collected<Int>()
            func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {
                failures.add(1)
            }
        }
        let delegate = Delegate()
        let service = WebService.make(HandSession(text: "{}"), delegate: delegate)
        let events = Collected<String>()
        let task = service.GET("/x")
        let reenter: @Sendable () -> Void = { [weak task] in
            service.passthroughDelegate = nil
            service.storages.append(MemoryStorage())
            service.interceptors.append(.closure { try await $1($0) })
            service.endpoints = []
            service.session = HandSession(text: "new")
            service.cookieJar = CookieJar()
            service.cancelRequests()
            task?.response { _, _ in events.add("late handler") }.responseError { _ in events.add("late handler") }
            task?.suspend()
            task?.resume()
            task?.cancel()
            service.GET("/y").response { data, _ in events.add(String(decoding: data ?? Data(), as: UTF8.self)) }
                .resume()
        }
        switch place {
        case "background": task.response { _, _ in reenter() }
        case "main": task.updateUI { _ in reenter() }
        case "error": task.response { _, _ in throw TestError() }.responseError { _ in reenter() }
        default:
            _ = task.data().map { data in
                reenter()
                return data
            }
        }
        task.resume()
        #expect(Set(await events.wait(for: 2)) == ["late handler", "new"])
        #expect(service.storages.count == 1)
        #expect(!(service.passthroughDelegate is Delegate))
    }

    @Test(
        "A replaced delegate receives the rest of its exchange, and the new one receives the next exchange"
    )
    func changedDelegate() async throws {
        final class Changing: PartialDelegate {
            let name: String
            let calls: Collected<String>
            let change: @Sendable () -> Void
            init(_ name: String, _ calls: Collected<String>, _ change: @escaping @Sendable () -> Void) {
                (self.name, self.calls, self.change) = (name, calls, change)
            }
            private func add(_ call: String) {
                calls.add("\(name) \(call)")
                change()
            }
            func requestSent(request: URLRequest) { add("sent") }
            func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
                add("received")
            }
            func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws { add("validate") }
            func didFinishCollectingTaskMetrics(
                metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?,
                error: (any Error)?
            ) {
                add("metrics")
            }
        }
        let calls = Collected<String>()
        let service = WebService.make(HandSession(text: "{}"))
        let second = Changing("second", calls) {}
        let first = Changing("first", calls) { [weak service] in service?.passthroughDelegate = second }
        service.passthroughDelegate = first
        _ = try await service.GET("/x").data().value
        #expect(await calls.wait(for: 4) == ["first sent", "first received", "first validate", "first metrics"])
        _ = try await service.GET("/x").data().value
        #expect(
            await calls.wait(for: 8).suffix(4) == [
                "second sent", "second received", "second validate", "second metrics",
            ])
    }

    @Test(
        "No delegate call is lost or unpaired while 8 threads replace the delegate during 2,000 requests")
    func changedOften() async {
        final class Counting: PartialDelegate {
            private let counts = Mutex((sent: 0, received: 0))
            var isEven: Bool { counts.withLock { $0.sent == $0.received } }
            var sent: Int { counts.withLock { $0.sent } }
            func requestSent(request: URLRequest) { counts.withLock { $0.sent += 1 } }
            func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {
                counts.withLock { $0.received += 1 }
            }
        }
        let delegates = (0..<8).map { _ in Counting() }
        let service = WebService.make(HandSession(text: "{}"), delegate: delegates[0])
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<250 {
                service.passthroughDelegate = delegates[(thread + number) % 8]
                service.GET("/x").metricsCollected { _ in done.add(number) }.resume()
            }
        }
        await done.wait(for: 2_000)
        #expect(delegates.allSatisfy { $0.isEven })
        #expect(delegates.map(\.sent).reduce(0, +) == 2_000)
    }

    @Test("The deadline ends a task while its delegate blocks")
    func slowDelegate() async {
        final class Slow: PartialDelegate {
            let entered = Collected<Void>()
            let release = DispatchSemaphore(value: 0)
            func modifiedRequest(request: URLRequest) -> URLRequest? {
                entered.add(())
                release.wait()
                return nil
            }
        }
        let clock = ManualTimekeeper()
        let slow = Slow()
        let session = HandSession(text: "{}")
        let service = WebService.make(session, delegate: slow, timekeeper: clock)
        let ends = Collected<String>()
        let task = service.GET("/x").setDeadline(.seconds(1))
            .response { _, _ in ends.add("response") }.responseError {
                ends.add(($0 as? WebServiceError)?.code.description ?? "other")
            }
        DispatchQueue.global().async { task.resume() }
        await slow.entered.wait()
        clock.advance(by: .seconds(2))
        #expect(await ends.wait() == ["deadline"])
        slow.release.signal()
        // The request that the delegate delayed is never sent.
        let next = WebService.make(session).GET("/y").data()
        _ = await next.result
        #expect(session.exchanges.values.map { $0.request.urlRequestValue.url?.path } == ["/v1/y"])
    }
}
