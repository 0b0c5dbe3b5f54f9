import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

/// Applies random sequences of operations to a task and compares it with a model after each one.
///
/// `WEBSERVICE_SOAK=1` runs the full number of sequences.
@Suite("Life cycle of a task compared with a model", .serialized, .exclusive(minutes: 60))
struct LifeCycleModelTests {
    enum Operation: CaseIterable {
        case resume, suspend, cancel, addHandler, complete, fail, redirect, unauthorized, deadline, drop

        /// The relative frequency; operations that end a sequence are rare.
        var weight: Int {
            switch self {
            case .resume, .suspend: 5
            case .addHandler: 4
            case .complete, .redirect, .unauthorized: 3
            case .cancel, .fail: 2
            case .deadline, .drop: 1
            }
        }

        static let weighted = allCases.flatMap { Array(repeating: $0, count: $0.weight) }
    }

    /// The behavior of a task, without threads, locks and callbacks.
    struct Model {
        /// Whether an interceptor sends a request again after a 401.
        let isAuthenticated: Bool
        var isStarted = false
        var isSuspended = false
        var isInFlight = false
        var isHeld = false
        var isDropped = false
        var hasRenewed = false
        var outcome: String?
        var handlers = 0
        var waiting: [Int] = []
        /// The requests and handlers, each with the number of the operation that caused it.
        var events: [String] = []

        var state: DataTaskState {
            if isSuspended || !isStarted && outcome == nil { return .suspended }
            return outcome == nil ? .running : .completed
        }

        mutating func apply(_ operation: Operation, at step: Int) {
            switch operation {
            case .resume:
                isSuspended = false
                if outcome == nil, !isStarted || isHeld { send(step) }
                isStarted = true
                runHandlers(step)
            case .suspend: isSuspended = true
            case .cancel:
                guard outcome == nil else { return }
                isSuspended = false
                end("-999", step)
            case .addHandler:
                waiting.append(handlers)
                handlers += 1
                runHandlers(step)
            case .complete: if isInFlight { end("200", step) }
            case .fail: if isInFlight { end("-1009", step) }
            case .redirect: if isInFlight { sendNext(step) }
            case .unauthorized:
                guard isInFlight else { return }
                if isAuthenticated, !hasRenewed {
                    hasRenewed = true
                    sendNext(step)
                } else {
                    end("401", step)
                }
            case .deadline: if isStarted, outcome == nil { end("deadline", step) }
            case .drop: isDropped = true
            }
            // A task that can no longer be resumed is deallocated with its handlers.
            if isDropped, !isStarted || outcome != nil { waiting = [] }
        }

        private mutating func send(_ step: Int) {
            events.append("send at \(step)")
            isInFlight = true
            isHeld = false
        }

        private mutating func sendNext(_ step: Int) {
            isInFlight = false
            if isSuspended { isHeld = true } else { send(step) }
        }

        private mutating func end(_ outcome: String, _ step: Int) {
            self.outcome = outcome
            isInFlight = false
            isHeld = false
            runHandlers(step)
        }

        private mutating func runHandlers(_ step: Int) {
            guard let outcome, !isSuspended else { return }
            for handler in waiting { events.append("handler \(handler) \(outcome) at \(step)") }
            waiting = []
        }
    }

    /// One task under test and its model.
    private final class Run {
        private var task: SessionTask?
        private weak var watched: SessionTask?
        private var service: WebService?
        private var session: HandSession?
        private let clock = ManualTimekeeper()
        private let box = Box()
        private(set) var model: Model
        private(set) var operations: [Operation] = []
        private let freed = Collected<Void>()

        /// The state that the closures share.
        private final class Box: Sendable {
            let events = Collected<String>()
            let step = Mutex(0)
            func add(_ text: String) { events.add("\(text) at \(step.withLock { $0 })") }
        }

        init(isAuthenticated: Bool) {
            let box = box
            model = Model(isAuthenticated: isAuthenticated)
            let session = HandSession { _ in box.add("send") }
            let service = WebService.make(session, timekeeper: clock)
            (self.session, self.service) = (session, service)
            if isAuthenticated {
                service.interceptors = [
                    .closure { request, next in
                        let response = try await next(request)
                        guard response.status == 401 else { return response }
                        var renewed = request
                        renewed.headers[.authorization] = "t"
                        return try await next(renewed)
                    }
                ]
            }
            let task = service.GET("/x")
            let freed = freed
            let canary = Canary { freed.add(()) }
            task.metricsCollected { _ in canary.touch() }
            self.task = task
            watched = task
        }

        var isDropped: Bool { model.isDropped }
        private var isFreed: Bool { watched == nil && !freed.values.isEmpty }

        func apply(_ operation: Operation) {
            if isDropped, [.resume, .suspend, .cancel, .addHandler, .drop].contains(operation) { return }
            operations.append(operation)
            let step = operations.count
            box.step.withLock { $0 = step }
            let handler = model.handlers
            model.apply(operation, at: step)
            switch operation {
            case .resume: task?.resume()
            case .suspend: task?.suspend()
            case .cancel: task?.cancel()
            case .addHandler:
                task?.response { [box] _, response in
                    box.add("handler \(handler) \((response as? HTTPURLResponse)?.statusCode ?? 0)")
                }
                .responseError { [box] error in
                    let code =
                        (error as? URLError).map { "\($0.code.rawValue)" }
                        ?? (error as? WebServiceError)?.code.description
                    box.add("handler \(handler) \(code ?? "other")")
                }
            // If no request is in flight, the last one is completed again.
            case .complete: complete(200)
            case .fail: session?.exchanges.values.last?.completion(nil, nil, URLError(.notConnectedToInternet))
            case .redirect: complete(307)
            case .unauthorized: complete(401)
            case .deadline: clock.advance(by: .seconds(601))
            case .drop: task = nil
            }
        }

        private func complete(_ status: Int) {
            guard let exchange = session?.exchanges.values.last, let url = URL(string: "https://h/v1/x") else { return }
            let fields = status == 307 ? ["Location": "/v1/x"] : [:]
            exchange.completion(
                Data(), HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields), nil)
        }

        private var isSettled: Bool {
            guard box.events.values.count == model.events.count else { return false }
            guard let task = task ?? watched else { return true }
            guard (task.result != nil) == (model.outcome != nil), task.holdsRequests == model.isHeld else {
                return false
            }
            return model.isDropped || task.state == model.state
        }

        /// Waits until the task matches the model.
        ///
        /// - Returns: A description of the difference, or `nil` if there is none.
        func settle() async -> String? {
            guard await becomesTrue({ isSettled }) else { return divergence }
            return box.events.values == model.events ? nil : divergence
        }

        /// Releases every reference to the task and waits until the task is deallocated.
        func waitUntilFreed() async -> String? {
            session?.exchanges.removeAll()  // the completions retain the task and the session
            (task, service, session) = (nil, nil, nil)
            return await becomesTrue { isFreed } ? nil : "not deallocated after \(operations)"
        }

        private var divergence: String {
            let state =
                (task ?? watched).map { "\($0.state.rawValue) \(($0.result != nil, $0.holdsRequests))" }
                ?? "deallocated"
            return """
                after \(operations): \(box.events.values), \(state); \
                model: \(model.events), \(model.state.rawValue) \((model.outcome != nil, model.isHeld))
                """
        }
    }

    private static let scale = isSanitized ? 10 : 1

    @Test(
        "A task matches the model in random sequences with a session that the test controls",
        arguments: [false, true])
    func model(isAuthenticated: Bool) async {
        let count = amount(500, thorough: 2_000, soak: 500_000) / Self.scale
        let lanes = 50
        for batch in 0..<(count / lanes) {
            var random = SeededGenerator(seed: UInt64(batch) * 2 + (isAuthenticated ? 1 : 0))
            // Several runs at a time, so that the waits for their threads overlap.
            let runs = (0..<lanes).map { _ in Run(isAuthenticated: isAuthenticated) }
            for _ in 0..<14 {
                for run in runs where !run.isDropped || run.model.outcome == nil && run.model.isStarted {
                    run.apply(Operation.weighted[Int(random.next() % UInt64(Operation.weighted.count))])
                }
                if let divergence = await settled(runs) { return fail(divergence, batch) }
            }
            for operation in [Operation.resume, .complete, .deadline] {
                for run in runs where !run.isDropped || operation == .deadline { run.apply(operation) }
                if let divergence = await settled(runs) { return fail(divergence, batch) }
            }
            for run in runs {
                if let leak = await run.waitUntilFreed() { return fail(leak, batch) }
            }
        }
    }

    private func settled(_ runs: [Run]) async -> String? {
        for run in runs {
            if let divergence = await run.settle() { return divergence }
        }
        return nil
    }

    private func fail(_ text: String, _ batch: Int) {
        Issue.record("batch \(batch), \(text)")
    }

    // MARK: Sessions that the test does not control

    /// Applies random operations from two threads and counts the handlers that run for each task.
    private func race(_ count: Int, _ service: WebService, _ paths: [String]) async {
        for number in 0..<count {
            var random = SeededGenerator(seed: UInt64(number))
            let results = Collected<String>()
            let freed = Collected<Void>()
            var handlers = 0
            do {
                let task = service.GET(paths[number % paths.count]).setDeadline(.seconds(60))
                let canary = Canary { freed.add(()) }
                task.metricsCollected { _ in canary.touch() }
                for _ in 0..<10 {
                    let operation = Operation.weighted[Int(random.next() % UInt64(Operation.weighted.count))]
                    let isElsewhere = random.next() % 4 == 0
                    let act: @Sendable () -> Void
                    switch operation {
                    case .resume: act = { task.resume() }
                    case .suspend: act = { task.suspend() }
                    case .cancel: act = { task.cancel() }
                    default:
                        handlers += 1
                        act = {
                            task.response { _, response in
                                results.add("\((response as? HTTPURLResponse)?.statusCode ?? 0)")
                            }
                            .responseError { results.add("\(($0 as? URLError)?.code.rawValue ?? 0)") }
                        }
                    }
                    if isElsewhere { await Task.detached(operation: act).value } else { act() }
                }
                task.resume()
                await eventually { results.values.count >= handlers && task.state == .completed }
                let all = results.values
                #expect(Set(all).count <= 1, "sequence \(number): \(all) of \(handlers)")
                #expect(all.count == handlers, "sequence \(number): \(all) of \(handlers)")
                #expect(all.allSatisfy { $0 == "200" || $0 == "-999" }, "sequence \(number): \(all)")
                #expect(task.state == .completed, "sequence \(number)")
            }
            await eventually { !freed.values.isEmpty }
            #expect(freed.values.count == 1, "sequence \(number)")
        }
    }

    @Test("Every random sequence with a mock session ends once and runs each handler")
    func mock() async {
        let session = MockSession()
        session.addStub { request in
            var response = MockResponse(statusCode: request.urlRequestValue.url?.path == "/v1/away" ? 302 : 200)
            response.headers[.location] = "/v1/x"
            return response
        }
        await race(amount(200, thorough: 1_000, soak: 10_000) / Self.scale, .make(session), ["/x", "/away"])
    }

    @Test("Every random sequence over sockets ends once and runs each handler")
    func sockets() async throws {
        let server = try MockServer.forTest { request in
            var response = MockResponse(statusCode: request.target == "/away" ? 302 : 200)
            response.headers[.location] = "/x"
            return response
        }
        await race(
            amount(30, thorough: 50, soak: 10_000) / Self.scale, WebService(baseURLString: server.baseURLString),
            ["/x", "/away"])
    }
}
