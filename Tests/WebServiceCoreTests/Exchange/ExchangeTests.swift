import Dispatch
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Where an exchange runs, and how it ends when the session or custom code does not.
@Suite("Exchange", .permit)
struct ExchangeTests {
    /// Never calls its completion.
    private final class Silent: Session {
        final class Exchange: DataTask {
            let log = Collected<String>()
            var state: DataTaskState { .running }
            func resume() { log.add("resume") }
            func suspend() {}
            func cancel() { log.add("cancel") }
        }

        let exchanges = Collected<Exchange>()

        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask {
            let exchange = Exchange()
            exchanges.add(exchange)
            return exchange
        }
    }

    /// Waits for an event that never occurs, and ignores its cancellation.
    private struct Stuck: Interceptor {
        let entered = Collected<Void>()
        let end = Once<Void>()

        func intercept(_ request: Request, next: Next) async throws -> Response {
            entered.add(())
            await end.value
            return try await next(request)
        }
    }

    private let calls = Collected<String>()

    @Test("A session that completes synchronously on the main thread has its handlers called later and elsewhere")
    @MainActor func synchronousSession() async {
        let service = WebService.make(HandSession(text: "{}"))
        for _ in 0..<20 {
            let hasReturned = Mutex(false)
            let task = service.GET("/x").response { [calls] _, _ in
                calls.add("main \(Thread.isMainThread), returned \(hasReturned.withLock { $0 })")
            }
            // Holds a handler that would run too early until it can be told apart.
            hasReturned.withLock { hasReturned in
                task.resume()
                hasReturned = true
            }
        }
        #expect(Set(await calls.wait(for: 20)) == ["main false, returned true"])
    }

    @Test("Handlers do not run within resume() in a handler, which already runs on the pool")
    func synchronousSessionInHandler() async {
        let service = WebService.make(HandSession(text: "{}"))
        // The thread that is within `resume()`. Another thread may run the handler at the same
        // time.
        let resuming = Mutex<ObjectIdentifier?>(nil)
        service.GET("/outer").response { [calls] _, _ in
            let thread = ObjectIdentifier(Thread.current)
            resuming.withLock { $0 = thread }
            service.GET("/inner").response { _, _ in
                let isWithin = resuming.withLock { $0 } == ObjectIdentifier(Thread.current)
                calls.add(isWithin ? "within" : "later or elsewhere")
            }.resume()
            resuming.withLock { $0 = nil }
        }
        .resume()
        #expect(await calls.wait() == ["later or elsewhere"])
    }

    @Test("A session that never completes after cancel() delays neither the handlers nor the awaiting task")
    func silentSession() async {
        let session = Silent()
        let service = WebService.make(session)
        let task = service.GET("/x").responseError { [calls] error in
            calls.add("\((error as? URLError)?.code == .cancelled)")
        }
        task.resume()
        task.cancel()
        #expect(await calls.wait() == ["true"])
        let awaited = Task { await service.GET("/y").data().result }
        await session.exchanges.wait(for: 2)[1].log.wait()
        awaited.cancel()
        await #expect { try await awaited.value.get() } throws: { ($0 as? URLError)?.code == .cancelled }
        #expect(session.exchanges.values.map(\.log.values) == [["resume", "cancel"], ["resume", "cancel"]])
    }

    @Test("A session that completes twice after cancel() changes nothing")
    func completesTwice() async {
        let session = HandSession()
        let task = WebService.make(session).GET("/x").response { [calls] _, _ in calls.add("response") }
            .responseError { [calls] _ in calls.add("error") }
        task.resume()
        task.cancel()
        for _ in 0..<2 { session.exchanges.values[0].respond() }
        task.response { [calls] _, _ in calls.add("late response") }.responseError { [calls] _ in
            calls.add("late error")
        }
        #expect(await calls.wait(for: 2) == ["error", "late error"])
        #expect(task.timeline.events.filter { $0.kind == .attempt }.count == 1)
    }

    @Test("An interceptor that never returns does not delay cancel()")
    func stuckWhenCancelled() async {
        let stuck = Stuck()
        let service = WebService.make(HandSession(text: "{}"))
        service.interceptors = [stuck]
        let task = service.GET("/x").data().recover { _ in Data("recovered".utf8) }.resume()
        await stuck.entered.wait()
        task.cancel()
        #expect(await task.settledValue() == Data("recovered".utf8))
        stuck.end.set(())
    }

    @Test(
        "An interceptor that never returns does not delay the deadline, and an asynchronous recovery is not cancelled")
    func stuckAtDeadline() async throws {
        let stuck = Stuck()
        let clock = ManualTimekeeper()
        let service = WebService.make(HandSession(text: "{}"), timekeeper: clock)
        service.interceptors = [stuck]
        let task = service.GET("/x").setDeadline(.seconds(1)).data().thenAsync { result in
            let isCancelled = Task.isCancelled
            return result.map { _ in "" }.flatMapError {
                .success("\($0 is WebServiceError), cancelled \(isCancelled)")
            }
        }
        .resume()
        await stuck.entered.wait()
        clock.advance(by: .seconds(1))
        #expect(try await task.value == "true, cancelled false")
        stuck.end.set(())
    }

    @Test("A task that is suspended before its request is sent and then dropped is deallocated")
    func droppedWhileSuspended() async {
        let service = WebService.make(HandSession())
        weak var dropped: SessionTask?
        do {
            let task = service.GET("/x").response { _, _ in }
            task.suspend()
            dropped = task
        }
        #expect(dropped == nil)
    }

    @Test("Tasks that are resumed one after another are sent in that order, before resume() returns")
    func order() {
        let session = HandSession()
        let service = WebService.make(session)
        for index in 1...50 {
            service.GET("/\(index)").response { _, _ in }.resume()
            #expect(session.exchanges.values.count == index)
        }
        let paths = session.exchanges.values.compactMap {
            ($0.request as? EncodedRequest)?.url.split(separator: "/").last
        }
        #expect(paths.map(String.init) == (1...50).map(String.init))
    }
}

extension TypedTask {
    /// The value; `nil` after an error.
    fileprivate func settledValue() async -> Value? { try? await value }
}
