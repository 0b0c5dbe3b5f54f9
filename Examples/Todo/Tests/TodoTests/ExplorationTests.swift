import Foundation
import Synchronization
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceOffline

@testable import TodoClient

@Suite("The account with each fault of each request", .timeLimit(.minutes(5)))
struct ExplorationTests {
    /// A server with a list of to-dos.
    private final class Model: Sendable {
        private let todos = Mutex<[String: Todo]>([:])

        var all: Set<Todo> { todos.withLock { Set($0.values) } }

        func respond(to request: ReceivedRequest) throws -> MockResponse {
            switch (request.method, request.path) {
            case (.POST, "/token"): return .json(["access": "2", "refresh": "r"])
            case (.GET, _): return .json(all.sorted { $0.id < $1.id })
            case (.PUT, _):
                let todo: Todo = try request.decode()
                todos.withLock { $0[todo.id] = todo }
                return .status(204)
            default:
                let id = String(request.path.split(separator: "/").last ?? "")
                todos.withLock { $0[id] = nil }
                return .status(204)
            }
        }
    }

    private struct Outcome: Sendable {
        var isSynchronized: Bool
        var todos: Set<Todo>
        var pending: Set<String>
        var rejections: Int
    }

    @Test("Whatever fails, a change is shown, and is on the server, in the outbox, or rejected")
    func synchronize() async throws {
        let parent = FileManager.default.temporaryDirectory.appendingPathComponent("todo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: parent) }
        let number = Mutex(0)
        let (beer, bread) = (Todo(id: "1", text: "beer", created: 1), Todo(id: "2", text: "bread", created: 2))
        var budget = FaultExplorer<Model>.Budget()
        budget.runs = 60
        budget.depth = 1
        let explorer = FaultExplorer(budget: budget) { mock in
            let model = Model()
            mock.on(.where("any request") { _ in true }) { try model.respond(to: $0) }
            return model
        }
        let report = await explorer.explore { mock in
            let name = number.withLock { number in
                number += 1
                return "user\(number)"
            }
            let folder = parent.appendingPathComponent(name)
            let logIn = LogIn(server: "https://mock.test", tokens: Tokens(access: "1", refresh: "r"))
            try logIn.write(to: Account(in: folder).file(LogIn.fileName))
            let rejections = Mutex(0)
            let account = try TodoAccount(in: folder, like: mock.service) { _ in rejections.withLock { $0 += 1 } }
            for change: Change in [.put(beer), .put(bread), .remove(id: beer.id)] { try await account.submit(change) }
            let isSynchronized = await Task { try await account.synchronize() }.result.isSuccess
            let (todos, pending) = try await account.todos
            await account.outbox.close()
            return Outcome(
                isSynchronized: isSynchronized, todos: Set(todos), pending: pending,
                rejections: rejections.withLock { $0 })
        } check: { run in
            try run.require(.everyCallEnds)
            try run.require(.noCredentialElsewhere())
            guard let outcome = run.output, outcome.rejections == 0 else { return }
            try run.require(outcome.todos == [bread], "a change is not shown")
            try run.require(run.model.all == [bread] || !outcome.pending.isEmpty, "a change is lost")
            if outcome.isSynchronized {
                try run.require(outcome.pending.isEmpty, "synchronized with changes that are not sent")
            }
            if run.plan.steps.isEmpty { try run.require(outcome.isSynchronized, "the changes are not sent") }
        }
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 30)
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
