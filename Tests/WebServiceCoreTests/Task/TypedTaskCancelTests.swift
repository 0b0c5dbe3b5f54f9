import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

@Suite("Cancellation of typed tasks", .permit)
struct TypedTaskCancelTests {
    private func isCancelled<Value>(_ result: Result<Value, any Error>) -> Bool {
        if case .failure(let error) = result { (error as? URLError)?.code == .cancelled } else { false }
    }

    @Test("Cancelling the awaiting Swift task cancels the request in flight once")
    func awaiting() async {
        let session = HandSession()
        let work = Task { await WebService.make(session).GET("/x").data().result }
        let exchange = await session.exchanges.wait()[0]
        work.cancel()
        #expect(isCancelled(await work.value))
        #expect(exchange.log == ["resume", "cancel"])
    }

    @Test("An exchange started by a cancelled Swift task is cancelled")
    func cancelledBefore() async {
        let session = HandSession()
        let work = Task {
            while !Task.isCancelled { await Task.yield() }
            return await WebService.make(session).GET("/x").data().result
        }
        work.cancel()
        #expect(isCancelled(await work.value))
        #expect(session.exchanges.values.allSatisfy { $0.log.last == "cancel" })
    }

    @Test("Cancelling a task cancels a running mapAsync step")
    func mapAsync() async {
        let began = Collected<Int>()
        let task = WebService.make(HandSession(text: "1")).GET("/x").decode(Int.self).mapAsync { value -> Int in
            began.add(value)
            let (stream, continuation) = AsyncStream<Never>.makeStream()
            await withTaskCancellationHandler {
                for await _ in stream {}
            } onCancel: {
                continuation.finish()
            }
            try Task.checkCancellation()
            return value
        }
        task.resume()
        await began.wait()
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
    }

    @Test("A mapAsync step that starts after the cancel is cancelled")
    func mapAsyncAfterCancel() async throws {
        let task = WebService.make(HandSession(text: "1")).GET("/x")
        let mapped = task.data().onCompletion { _ in task.cancel() }.mapAsync { _ -> Bool in
            await becomesTrue { Task.isCancelled }
        }
        #expect(try await mapped.value)
    }

    @Test("Cancelling a task cancels the second exchange of a flatMap step")
    func flatMap() async {
        let second = HandSession()
        let first = WebService.make(HandSession(text: "1"))
        let other = WebService.make(second)
        let task = first.GET("/x").decode(Int.self).flatMap { _ in other.GET("/y").data() }
        task.resume()
        let exchange = await second.exchanges.wait()[0]
        task.cancel()
        #expect(isCancelled(await task.result))
        #expect(exchange.log == ["resume", "cancel"])
    }

    @Test("The work of a task that is cancelled while it starts does not run")
    func workCancelledAtStart() async {
        let (began, freed) = (Collected<Bool>(), Collected<Bool>())
        do {
            let service = WebService.make()
            service.observers = [
                EventRecorder { [weak service] event in
                    if case .created = event.kind { service?.cancelAll() }
                }
            ]
            let canary = Canary { freed.add(true) }
            let task = service.GET("/x").perform { _ in
                canary.touch()
                began.add(true)
                return (true, Response(data: Data(), urlResponse: nil))
            }
            #expect(isCancelled(await task.result))
        }
        await freed.wait()
        #expect(began.values.isEmpty)
    }

    @Test("A typed task that is never resumed is deallocated together with its steps and observers")
    func neverResumed() {
        let freed = Collected<String>()
        do {
            let canary = Canary { freed.add("step") }
            let task = WebService.make().GET("/x").data().map { data -> Int in
                canary.touch()
                return data.count
            }
            .onSuccess { _ in canary.touch() }
            _ = task
        }
        #expect(freed.values == ["step"])
    }

    @Test("The steps of a completed typed task are deallocated")
    func ended() async throws {
        let freed = Collected<String>()
        do {
            let canary = Canary { freed.add("step") }
            let value = try await WebService.make(HandSession(text: "1")).GET("/x").data().map { data -> Int in
                canary.touch()
                return data.count
            }.value
            #expect(value == 1)
        }
        #expect(await freed.wait() == ["step"])
    }

    @Test("Each of 20,000 awaited tasks ends exactly once if it is cancelled at any stage")
    func races() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, data: Data("1".utf8)))
        let service = WebService.make(session)
        let count = 20_000 / CancelRaceTests.scale
        let outcomes = await withTaskGroup(of: Int.self) { group in
            for index in 0..<count {
                let work = Task { await service.GET("/x").decode(Int.self).map { $0 + 1 }.result }
                if index % 3 == 0 {
                    work.cancel()
                } else if index % 3 == 1 {
                    DispatchQueue.global().async { work.cancel() }
                }
                group.addTask {
                    switch await work.value {
                    case .success(2): 0
                    case .failure(let error) where (error as? URLError)?.code == .cancelled: 1
                    default: 100_000_000
                    }
                }
            }
            return await group.reduce(into: [0, 0]) { counts, outcome in
                if outcome < 2 { counts[outcome] += 1 }
            }
        }
        #expect(outcomes[0] + outcomes[1] == count)
        #expect(outcomes[0] > 0)
        #expect(outcomes[1] > 0)
    }
}
