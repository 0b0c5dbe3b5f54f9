import Foundation
import Synchronization
import Testing
import WebServiceMocking

@testable import TodoServer

/// The number of times that the process is killed: 50, or the variable `TODO_KILLS`.
let killCount = ProcessInfo.processInfo.environment["TODO_KILLS"].flatMap { Int($0) } ?? 50

@Suite("The process is killed at any instant", .timeLimit(.minutes(60)))
struct KillTests {
    /// A command that may be killed.
    private enum Command {
        case add(String)
        case done(String)
        case remove(String)
        case sync
    }

    /// A process, and the request at which it is killed.
    private struct Trap {
        var process: pid_t = 0
        /// The number of requests until then; 0 for none.
        var count = 0
        var isAfterEffect = false
        /// The number of all requests.
        var requestCount = 0
        var losesRequests = false

        /// Counts a request.
        ///
        /// - Returns: The process to kill, if any.
        mutating func next() -> pid_t? {
            requestCount += 1
            guard count > 0, process > 0 else { return nil }
            count -= 1
            return count == 0 ? process : nil
        }
    }

    @Test("No change that was acknowledged is lost, made twice, or made before an earlier one of its to-do")
    func kills() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let trap = Mutex(Trap())
        let server = try TodoServer(passwords: ["ann": "secret"]) { request, respond in
            let (process, state) = trap.withLock { ($0.next(), $0) }
            var lost = MockResponse.status(200)
            lost.wire = .disconnect
            if let process, !state.isAfterEffect { kill(process, SIGKILL) }
            if state.losesRequests, state.requestCount.isMultiple(of: 7) { return lost }
            let response = try respond()
            if let process, state.isAfterEffect { kill(process, SIGKILL) }
            return state.losesRequests && state.requestCount.isMultiple(of: 5) ? lost : response
        }
        defer { server.stop() }
        try await todo.run("login", "ann", "--server", server.address, password: "secret")
        trap.withLock { $0.losesRequests = true }

        var model = Model()
        var (killed, round) = (0, 0)
        while killed < killCount {
            round += 1
            if round.isMultiple(of: 5) { server.expireTokens() }
            let command = model.command(round)
            let duration = try await ContinuousClock().measure { try await todo.run("list") }
            let run: TodoProcess.Run
            if case .sync = command, Bool.random() {
                trap.withLock { ($0.count, $0.isAfterEffect) = (.random(in: 1...4), .random()) }
                run = try await todo.run("sync") { id in trap.withLock { $0.process = id } }
                trap.withLock { ($0.count, $0.process) = (0, 0) }
            } else {
                run = try await start(command, todo, killedAfter: duration * Double.random(in: 0.3...1.6))
            }
            if run.status == SIGKILL { killed += 1 }
            let list = try await todo.run("list")
            #expect(list.status == 0)
            let faults = model.update(after: command, run, list)
            #expect(faults == [], "round \(round): \(command), \(run)")
            if !faults.isEmpty { return }
        }

        trap.withLock { $0.losesRequests = false }
        #expect(try await todo.run("sync").status == 0)
        #expect(try await todo.run("list").todos.map(\.text).sorted() == model.lines)
        #expect(server.todos(of: "ann").map { "[\($0.isDone ? "x" : " ")] \($0.text)" }.sorted() == model.lines)
        let changes = server.changes(of: "ann")
        #expect(changes.count == model.changeCount)
        for (id, changes) in Dictionary(grouping: changes, by: \.id) {
            let steps = changes.map { change in change.todo.map { $0.isDone ? "done" : "added" } ?? "removed" }
            #expect(Self.histories.contains(steps.joined(separator: " ")), "\(id): \(steps)")
        }
        let count = trap.withLock { $0.requestCount }
        print("\(killed) kills in \(round) commands, \(changes.count) changes, \(count) requests")
    }

    /// The possible changes of one to-do, in order.
    private static let histories = ["added", "added done", "added removed", "added done removed"]

    private func start(_ command: Command, _ todo: TodoProcess, killedAfter delay: Duration) async throws
        -> TodoProcess.Run
    {
        switch command {
        case .add(let text): try await todo.run("add", text, killedAfter: delay)
        case .done(let id): try await todo.run("done", id, killedAfter: delay)
        case .remove(let id): try await todo.run("remove", id, killedAfter: delay)
        case .sync: try await todo.run("sync", killedAfter: delay)
        }
    }

    /// What the list must contain.
    private struct Model {
        /// The to-dos as the last list showed them, by their identifiers.
        private var todos: [String: String] = [:]
        /// The number of changes that became part of the list.
        private(set) var changeCount = 0

        var lines: [String] { todos.values.sorted() }

        func command(_ round: Int) -> Command {
            switch Int.random(in: 0..<10) {
            case 0..<4: .add("number \(round)")
            case 4..<6: todos.filter { $1.hasPrefix("[ ]") }.keys.randomElement().map { .done($0) } ?? .sync
            case 6: todos.keys.randomElement().map { .remove($0) } ?? .sync
            default: .sync
            }
        }

        /// Compares the list after a command with the one before it.
        ///
        /// An acknowledged change is part of the list. A change that was not acknowledged because
        /// the command was killed is either part of the list or not, and this no longer changes.
        ///
        /// - Returns: The differences.
        mutating func update(after command: Command, _ run: TodoProcess.Run, _ list: TodoProcess.Run) -> [String] {
            let shown = list.todos.map { ($0.id, $0.text.replacingOccurrences(of: "  (not sent)", with: "")) }
            let listed = Dictionary(shown) { $0 + $1 }
            // The word and the identifier of the acknowledged change.
            let acknowledged = run.lines.first.map { $0.split(separator: " ").map(String.init) } ?? []
            var changed = todos
            switch command {
            case .add(let text):
                let id = acknowledged.first == "added" ? acknowledged[1] : listed.first { $1 == "[ ] \(text)" }?.key
                if let id { changed[id] = "[ ] \(text)" }
            case .done(let id):
                if acknowledged.first == "done" || listed[id]?.hasPrefix("[x]") == true {
                    changed[id] = todos[id]?.replacingOccurrences(of: "[ ]", with: "[x]")
                }
            case .remove(let id):
                if acknowledged.first == "removed" || listed[id] == nil { changed[id] = nil }
            case .sync: break
            }
            if changed != todos { changeCount += 1 }
            todos = changed
            let ids = Set(listed.keys).union(todos.keys).sorted()
            return ids.filter { listed[$0] != todos[$0] }.map {
                "\($0): listed \(listed[$0] ?? "nothing"), expected \(todos[$0] ?? "nothing")"
            }
        }
    }
}
