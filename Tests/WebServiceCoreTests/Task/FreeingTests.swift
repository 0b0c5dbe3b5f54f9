import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

/// An object of the caller may use the framework in its `deinit`: the framework holds no lock while
/// it releases the object.
@Suite("Deallocation of custom objects", .permit)
struct FreeingTests {
    /// A model that cancels its task and reads the state of the task in `deinit`.
    private final class Model: Sendable {
        let task = Mutex<SessionTask?>(nil)
        let freed: Collected<DataTaskState>

        init(_ freed: Collected<DataTaskState>) { self.freed = freed }

        deinit {
            guard let task = task.withLock({ $0 }) else { return }
            task.cancel()
            freed.add(task.state)
        }

        func touch() {}
    }

    private func run(_ session: any Session, _ attach: (SessionTask, Model) -> Void) async -> DataTaskState? {
        let freed = Collected<DataTaskState>()
        do {
            let model = Model(freed)
            let task = WebService.make(session).GET("/x")
            attach(task, model)
            model.task.withLock { $0 = task }
            task.resume()
        }
        return await freed.wait().first
    }

    @Test("A model that only handlers retain can cancel its task in deinit after the last handler has run")
    func handlers() async {
        let session = HandSession(text: "{}")
        #expect(await run(session) { task, model in task.response { _, _ in model.touch() } } == .completed)
        #expect(
            await run(session) { task, model in
                task.responseJSON { _, _ in model.touch() }.updateUI { _ in model.touch() }
            } == .completed)
        #expect(await run(session) { task, model in _ = task.data().onSuccess { _ in model.touch() } } == .completed)
        #expect(await run(session) { task, model in _ = task.data().mapAsync { _ in model.touch() } } == .completed)
        #expect(await run(session) { task, model in task.metricsCollected { _ in model.touch() } } == .completed)
    }

    @Test("A typed task does not retain its closures, or the values of earlier steps, once they have run")
    func steps() async throws {
        final class Model: Sendable {
            let load = Mutex<TypedTask<Int>?>(nil)
            func count(_ data: Data) -> Int { data.count }
        }
        final class Decoded: Sendable {}
        weak var weakModel: Model?
        weak var weakValue: Decoded?
        let service = WebService.make(HandSession(text: "{}"))
        let counted: TypedTask<Int>
        do {
            let model = Model()
            weakModel = model
            let load = service.GET("/x").data().map { model.count($0) }
            model.load.withLock { $0 = load }
            #expect(try await load.value == 2)
            let decoded = service.GET("/x").decode { _ in Decoded() }
            weakValue = try await decoded.value
            counted = decoded.map { _ in 3 }
            #expect(try await counted.value == 3)
        }
        await eventually("the model is released") { weakModel == nil }
        await eventually("the value of the first step is released") { weakValue == nil }
        #expect(try await counted.value == 3)
    }

    @Test("A model that is the result of a handler can cancel its task in deinit")
    func results() async {
        let freed = Collected<DataTaskState>()
        let task = WebService.make(HandSession(text: "{}")).GET("/x")
        task.response { [weak task] _, _ in
            let model = Model(freed)
            model.task.withLock { $0 = task }
            return .value(model)
        }
        .transform { _ in .empty }
        .resume()
        await freed.wait()
        #expect(freed.values.count == 1)
    }

    @Test("A replaced session can use its service in deinit")
    func sessions() {
        final class Leaving: Session {
            let service: Mutex<WebService?> = Mutex(nil)
            let seen: Collected<Bool>
            init(_ seen: Collected<Bool>) { self.seen = seen }
            deinit { seen.add(service.withLock { $0 }?.session is Leaving) }
            func dataTask(
                request: any URLRequestEncodable,
                completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
            ) -> any DataTask {
                HandSession().dataTask(request: request, completion: completion)
            }
        }
        let seen = Collected<Bool>()
        let service = WebService.make()
        do {
            let leaving = Leaving(seen)
            leaving.service.withLock { $0 = service }
            service.session = leaving
        }
        service.session = HandSession()
        #expect(seen.values == [false])
    }
}
