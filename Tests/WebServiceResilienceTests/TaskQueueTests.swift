import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceResilience

@testable import WebServiceCore

@Suite("Queue of tasks", .permit)
struct TaskQueueTests {
    private let clock = ManualTimekeeper()
    private let session = HandSession()
    private let service: WebService

    init() {
        service = WebService.make(session, timekeeper: clock)
    }

    private func task(_ name: String) -> TypedTask<String> { service.GET("/\(name)").string() }

    /// Waits until a number of requests were sent, and returns the last components of their paths.
    private func sent(_ count: Int) async -> [String] {
        await session.exchanges.wait(for: count).map { $0.request.urlRequestValue.url?.lastPathComponent ?? "" }
    }

    /// Responds to the request that was sent at a position.
    private func respond(_ index: Int) { session.exchanges.values[index].respond("\(index)") }

    private func isCancelled(_ task: TypedTask<String>) async -> Bool {
        (await task.result.error as? URLError)?.code == .cancelled
    }

    @Test("At most the maximum is in flight, and tasks start in the order in which they were added")
    func maximum() async throws {
        let queue = TaskQueue(maximumInFlight: 3)
        let tasks = (0..<6).map { queue.add(task("\($0)")) }
        #expect(await sent(3) == ["0", "1", "2"])
        #expect(tasks.map(\.task.state) == [.running, .running, .running, .suspended, .suspended, .suspended])
        for (count, (index, next)) in [(1, "3"), (3, "4"), (0, "5")].enumerated() {
            respond(index)
            #expect(await sent(4 + count).last == next)
        }
        for index in [2, 4, 5] { respond(index) }
        for task in tasks { _ = try await task.value }
        #expect(session.exchanges.values.count == 6)
        withExtendedLifetime(queue) {}
    }

    @Test("A value below 1 counts as 1, and an idle queue starts the next task at once")
    func minimum() async throws {
        let queue = TaskQueue(maximumInFlight: 0)
        for index in 0..<3 {
            let task = queue.add(task("\(index)"))
            #expect(await sent(index + 1).last == "\(index)")
            respond(index)
            #expect(try await task.value == "\(index)")
        }
        withExtendedLifetime(queue) {}
    }

    @Test("Tasks with a higher priority start first, also if it is that of the request")
    func priorities() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let first = queue.add(task("first"))
        queue.add(task("low 1"), priority: .low)
        queue.add(task("normal 1"))
        queue.add(task("high 1"), priority: .high)
        queue.add(task("low 2").configure { $0.options.priority = .low })
        queue.add(task("high 2").configure { $0.options.priority = .high })
        queue.add(task("normal 2").configure { $0.options.priority = .low }, priority: .normal)
        for index in 0..<6 {
            _ = await sent(index + 1)
            respond(index)
        }
        #expect(
            await sent(7) == ["first", "high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"])
        _ = try await first.value
        withExtendedLifetime(queue) {}
    }

    @Test("The priority of a waiting task can be changed; it keeps its order in the new priority")
    func changes() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let tasks = ["a", "b", "c", "d", "e"].map { queue.add(task($0)) }
        queue.setPriority(.high, of: tasks[4])
        queue.setPriority(.high, of: tasks[3])
        queue.setPriority(.low, of: tasks[1])
        queue.setPriority(.low, of: tasks[0])  // it is in flight
        queue.setPriority(.high, of: task("x"))  // it is not in the queue
        for index in 0..<4 {
            _ = await sent(index + 1)
            respond(index)
        }
        #expect(await sent(5) == ["a", "d", "e", "c", "b"])
        withExtendedLifetime(queue) {}
    }

    @Test("A waiting task that is cancelled frees its place, and is not sent")
    func cancelWaiting() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let tasks = ["a", "b", "c"].map { queue.add(task($0)) }
        tasks[1].cancel()
        #expect(await isCancelled(tasks[1]))
        _ = await sent(1)
        respond(0)
        #expect(await sent(2) == ["a", "c"])
        withExtendedLifetime(queue) {}
    }

    @Test("When a task in flight is cancelled or fails, the next one starts")
    func cancelInFlight() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let tasks = ["a", "b", "c"].map { queue.add(task($0)) }
        _ = await sent(1)
        tasks[0].cancel()
        _ = await sent(2)
        session.exchanges.values[1].completion(nil, nil, URLError(.timedOut))
        #expect(await sent(3) == ["a", "b", "c"])
        #expect(await isCancelled(tasks[0]))
        #expect((await tasks[1].result.error as? URLError)?.code == .timedOut)
        withExtendedLifetime(queue) {}
    }

    @Test("cancelAll cancels all tasks, starts none, and accepts further ones")
    func cancelAll() async throws {
        let queue = TaskQueue(maximumInFlight: 2)
        let tasks = (0..<50).map { queue.add(task("\($0)")) }
        _ = await sent(2)
        queue.cancelAll()
        for task in tasks { #expect(await isCancelled(task)) }
        #expect(session.exchanges.values.count == 2)
        queue.add(task("a"))
        queue.add(task("b"))
        queue.add(task("c"))
        #expect(Set(await sent(4).suffix(2)) == ["a", "b"])
        respond(2)
        #expect(await sent(5).last == "c")
        withExtendedLifetime(queue) {}
    }

    @Test("A queue that is deallocated cancels its tasks, and releases them")
    func deallocation() async throws {
        var queue: TaskQueue? = TaskQueue(maximumInFlight: 2)
        weak let freed = queue
        let freedTasks = Collected<Int>()
        let cancelled = Collected<Bool>()
        for index in 0..<4 {
            let canary = Canary { freedTasks.add(index) }
            queue?.add(task("\(index)")).onCompletion { result in
                canary.touch()
                cancelled.add((result.error as? URLError)?.code == .cancelled)
            }
        }
        _ = await sent(2)
        queue = nil
        #expect(freed == nil)
        #expect(await cancelled.wait(for: 4) == [true, true, true, true])
        #expect(await freedTasks.wait(for: 4).count == 4)
        #expect(session.exchanges.values.count == 2)
    }

    @Test("A task is not retained after its end, also while it is suspended")
    func release() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        var task: TypedTask<String>? = queue.add(self.task("a"))
        weak let freed = task?.task
        _ = await sent(1)
        task?.task.suspend()
        respond(0)
        await eventually { task?.task.result != nil }
        task = nil
        session.exchanges.removeAll()
        await eventually("the task is deallocated") { freed == nil }
        withExtendedLifetime(queue) {}
    }

    @Test("A waiting task is not started by await, resume and setters, and can be changed")
    func waiting() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        queue.add(task("a"))
        let second = queue.add(task("b"))
        second.resume()
        let value = Task { try await second.value }
        second.configure { $0.headers["X-A"] = "1" }
        #expect(second.request.url?.lastPathComponent == "b")
        _ = await sent(1)
        #expect(service.exchanges.count == 1)
        #expect(second.task.state == .suspended)
        respond(0)
        #expect(await sent(2) == ["a", "b"])
        #expect(session.exchanges.values[1].request.urlRequestValue.value(forHTTPHeaderField: "X-A") == "1")
        respond(1)
        #expect(try await value.value == "1")
        withExtendedLifetime(queue) {}
    }

    @Test("A task that is suspended while it waits sends nothing in its turn until it is resumed")
    func suspended() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        queue.add(task("a"))
        let second = queue.add(task("b"))
        let third = queue.add(task("c"))
        second.task.suspend()
        _ = await sent(1)
        respond(0)
        await eventually { service.exchanges.count == 1 }
        #expect(session.exchanges.values.count == 1)
        #expect(third.task.state == .suspended)
        second.resume()
        #expect(await sent(2) == ["a", "b"])
        withExtendedLifetime(queue) {}
    }

    @Test("A task that was resumed, or is in a queue, is not added")
    func notAdded() async throws {
        let (queue, other) = (TaskQueue(maximumInFlight: 1), TaskQueue(maximumInFlight: 1))
        let running = task("a").resume()
        _ = await sent(1)
        queue.add(running)
        let waiting = task("c")
        queue.add(task("b"))
        queue.add(waiting)
        queue.add(waiting)
        other.add(waiting)
        other.add(task("d"))
        #expect(await sent(3) == ["a", "b", "d"])
        queue.cancelAll()
        respond(0)
        #expect(try await running.value == "0")
        #expect(await isCancelled(waiting))
        withExtendedLifetime((queue, other)) {}
    }

    @Test("A completion can add a task and await it, in a queue of one")
    func fromCompletion() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let done = Collected<String>()
        let second = task("b")
        let first = task("a")
            .onCompletion { _ in queue.add(second) }
            .mapAsync { value in value + (try await second.value) }
            .onSuccess { done.add($0) }
        queue.add(first)
        _ = await sent(1)
        respond(0)
        #expect(await sent(2) == ["a", "b"])
        respond(1)
        #expect(await done.wait() == ["01"])
    }

    @Test("1,000 tasks that fail before they are sent end one after another")
    func failures() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let tasks = (0..<1_000).map { _ in queue.add(service.GET("https://[").string()) }
        for task in tasks { #expect((await task.result.error as? WebServiceError)?.code == .invalidURL) }
        withExtendedLifetime(queue) {}
    }

    /// The number of requests that a session has not responded to.
    private final class Load: Sendable {
        private let state = Mutex((now: 0, most: 0))

        var most: Int { state.withLock { $0.most } }
        func begin() { state.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
        func end() { state.withLock { $0.now -= 1 } }
    }

    @Test(
        "1,000 tasks that threads add, reorder and cancel complete once each",
        arguments: [false, true])
    func stress(cancels: Bool) async throws {
        let load = Load()
        let session = HandSession { exchange in
            load.begin()
            Task {
                await Task.yield()
                load.end()
                exchange.respond("x")
            }
        }
        let service = WebService.make(session)
        let queue = TaskQueue(maximumInFlight: 8)
        let completions = Collected<Int>()
        let priorities: [Request.Priority] = [.low, .normal, .high]
        await withTaskGroup { group in
            for thread in 0..<10 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(thread))
                    var tasks: [TypedTask<String>] = []
                    for index in 0..<100 {
                        let number = thread * 100 + index
                        let task = service.GET("/\(number)").string().onCompletion { _ in completions.add(number) }
                        tasks.append(queue.add(task, priority: priorities.randomElement(using: &generator)))
                        let other = tasks[Int.random(in: 0..<tasks.count, using: &generator)]
                        if cancels, index % 7 == 0 { other.cancel() }
                        queue.setPriority(.high, of: other)
                    }
                }
            }
        }
        #expect(await completions.wait(for: 1_000).sorted() == Array(0..<1_000))
        queue.add(service.GET("/last").string().onCompletion { _ in completions.add(1_000) })
        #expect(await completions.wait(for: 1_001).last == 1_000)
        // A cancelled request ends before the session responds to it.
        if !cancels { #expect(load.most <= 8) }
        #expect(session.exchanges.values.count <= 1_001)
    }

    @Test("The deadline begins at the start, and that of a scope when the task is added")
    func deadlines() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        queue.add(task("a"))
        let second = queue.add(service.GET("/b").setDeadline(.seconds(5)).string())
        let (third, fourth) = await service.withDeadline(.seconds(15)) {
            (queue.add(task("c")), queue.add(task("d")))
        }
        let fifth = queue.add(task("e"))
        _ = await sent(1)
        clock.advance(by: .seconds(10))
        respond(0)
        _ = await sent(2)
        clock.advance(by: .milliseconds(4_900))
        #expect(second.task.state == .running)
        respond(1)
        _ = await sent(3)
        clock.advance(by: .milliseconds(100))
        #expect((await third.result.error as? WebServiceError)?.code == .deadline)
        #expect((await fourth.result.error as? WebServiceError)?.code == .deadline)
        #expect(await sent(4) == ["a", "b", "c", "e"])
        respond(3)
        #expect(try await fifth.value == "3")
        withExtendedLifetime(queue) {}
    }

    @Test("Typed requests, passive tasks and uploads can be in one queue")
    func kinds() async throws {
        let queue = TaskQueue(maximumInFlight: 1)
        let passive = PassiveTask<Int>()
        queue.add(passive.task)
        let upload = queue.add(service.POST("/upload").setBody(Data("x".utf8)).empty())
        let shared = queue.add(task("shared"))
        #expect(passive.task.task.state == .running)
        passive.complete(1)
        _ = await sent(1)
        respond(0)
        _ = await sent(2)
        respond(1)
        #expect(try await passive.task.value == 1)
        _ = try await upload.value
        #expect(try await shared.value == "1")
        withExtendedLifetime(queue) {}
    }
}

extension Result {
    /// The error; `nil` for a value.
    fileprivate var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
