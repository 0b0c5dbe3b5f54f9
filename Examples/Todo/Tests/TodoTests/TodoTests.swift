import Foundation
import Synchronization
import Testing
import WebServiceCore

@testable import TodoClient
@testable import TodoServer

@Suite("The client with its server", .timeLimit(.minutes(5)))
struct TodoTests {
    private let passwords = ["ann": "secret-a", "bob": "secret-b"]

    @Test(
        "Wrong arguments are named, with exit status 64",
        arguments: [
            ([], "a command is missing"), (["lst"], "unknown command 'lst'"),
            (["logn", "ann"], "unknown command 'logn'; did you mean 'login'?"), (["add"], "add needs an argument"),
            (["sync", "now"], "sync has no argument 'now'"), (["login", "ann"], "login needs --server URL"),
            (["list", "--user"], "--user needs a value"),
        ])
    func usage(arguments: [String], reason: String) async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let run = try await todo.run(arguments)
        #expect(run.status == 64)
        #expect(run.errors == "todo: \(reason); 'todo --help' lists the commands\n")
        #expect(run.output == "")
    }

    @Test("The help and the version are printed on standard output")
    func help() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let help = try await todo.run("--help")
        #expect(help.status == 0)
        #expect(help.output.hasPrefix("usage: todo login"))
        #expect(try await todo.run("--version").output == "todo 0.1.0\n")
    }

    @Test("An empty list is said to be empty on standard error")
    func emptyList() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let server = try TodoServer(passwords: passwords)
        defer { server.stop() }
        try await todo.run("login", "ann", "--server", server.address, password: "secret-a")
        let list = try await todo.run("list")
        #expect(list.status == 0)
        #expect(list.output == "")
        #expect(list.errors == "todo: there are no to-dos\n")
    }

    @Test("Commands work without a connection, and their changes are sent later")
    func offline() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("todos-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }  // the file of a test
        let first = try TodoServer(passwords: passwords, file: file)
        let address = first.address
        try #require(try await todo.run("login", "ann", "--server", address, password: "secret-a").status == 0)
        first.stop()

        try await todo.run("add", "Brew")
        try await todo.run("add", "Taste")
        let ids = try await todo.run("list").todos.map(\.id)
        try #require(ids.count == 2)
        try await todo.run("done", ids[0])
        try await todo.run("remove", ids[1])
        try await todo.run("add", "Bottle")
        let offline = try await todo.run("list").todos.map(\.text)
        #expect(offline == ["[x] Brew  (not sent)", "[ ] Bottle  (not sent)"])
        let failed = try await todo.run("sync")
        #expect(failed.status == 69)
        #expect(failed.errors.contains("the server cannot be reached"))

        // The access token is no longer valid after the restart.
        let second = try TodoServer(passwords: passwords, port: first.server.port, file: file)
        defer { second.stop() }
        #expect(try await todo.run("sync").status == 0)
        #expect(second.todos(of: "ann").map(\.text) == ["Brew", "Bottle"])
        #expect(second.changes(of: "ann").count == 5)
        #expect(try await todo.run("list").todos.map(\.text) == ["[x] Brew", "[ ] Bottle"])
    }

    @Test("An unchanged list is not transferred again")
    func entityTag() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let statuses = Mutex<[Int]>([])
        let server = try TodoServer(passwords: passwords) { request, process in
            let response = try process()
            if request.path == "/todos" { statuses.withLock { $0.append(response.statusCode) } }
            return response
        }
        defer { server.stop() }
        try await todo.run("login", "ann", "--server", server.address, password: "secret-a")
        try await todo.run("add", "Brew")
        try await todo.run("sync")
        try await todo.run("sync")
        #expect(statuses.withLock { $0 } == [200, 304])
        #expect(try await todo.run("list").todos.map(\.text) == ["[ ] Brew"])
    }

    @Test("A rejected change is reported and removed")
    func rejection() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let server = try TodoServer(passwords: passwords)
        defer { server.stop() }
        try await todo.run("login", "ann", "--server", server.address, password: "secret-a")
        server.stop()
        try await todo.run("add", String(repeating: "x", count: 1_001))
        let again = try TodoServer(passwords: passwords, port: server.server.port)
        defer { again.stop() }
        try await todo.run("login", "ann", "--server", again.address, password: "secret-a")
        let sync = try await todo.run("sync")
        #expect(sync.output.contains("rejected a change with status 422"))
        #expect(try await todo.run("list").lines == [])
    }

    @Test("After a log-in that is no longer valid, the changes wait for the next log-in")
    func revokedTokens() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let server = try TodoServer(passwords: passwords)
        defer { server.stop() }
        let wrong = try await todo.run("login", "ann", "--server", server.address, password: "wrong")
        #expect(wrong.status == 77)
        try await todo.run("login", "ann", "--server", server.address, password: "secret-a")
        try server.revokeTokens(of: "ann")
        try await todo.run("add", "Brew")
        #expect(try await todo.run("sync").status == 77)
        try await todo.run("login", "ann", "--server", server.address, password: "secret-a")
        #expect(try await todo.run("sync").status == 0)
        #expect(server.todos(of: "ann").map(\.text) == ["Brew"])
    }

    @Test("Two users do not see each other's to-dos, and one remains when the other logs out")
    func twoUsers() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let server = try TodoServer(passwords: passwords)
        defer { server.stop() }
        for (user, text) in [("ann", "Brew"), ("bob", "Drink")] {
            try await todo.run("login", user, "--server", server.address, password: passwords[user])
            try await todo.run("add", text, "--user", user)
        }
        #expect(try await todo.run("list").status == 64)
        for user in ["ann", "bob"] { try await todo.run("sync", "--user", user) }
        #expect(server.todos(of: "ann").map(\.text) == ["Brew"])
        #expect(server.todos(of: "bob").map(\.text) == ["Drink"])
        #expect(try await todo.run("list", "--user", "ann").todos.map(\.text) == ["[ ] Brew"])
        #expect(try await todo.run("list", "--user", "bob").todos.map(\.text) == ["[ ] Drink"])

        #expect(try await todo.run("logout", "--user", "ann").status == 0)
        #expect(try todo.files(containing: ["Brew", "ann"]).matching == [])
        #expect(try await todo.run("list").todos.map(\.text) == ["[ ] Drink"])
    }

    @Test("The server makes a change with the same key once")
    func idempotency() async throws {
        let server = try TodoServer(passwords: passwords)
        defer { server.stop() }
        let service = WebService(baseURLString: server.address)
        let tokens = try await service.POST("/session").setJSON(["name": "ann", "password": "secret-a"])
            .decode(Tokens.self).value
        service.interceptors = [.bearer(tokens.access)]
        let todo = TodoClient.Todo(text: "Brew")
        var statuses: [Int] = []
        for (key, text) in [("\"1\"", "Brew"), ("\"1\"", "Brew"), ("\"1\"", "Taste"), ("\"2\"", "Taste")] {
            var changed = todo
            changed.text = text
            let put = service.PUT("/todos/{id}", pathParameters: ["id": todo.id]).setJSON(changed)
            statuses.append(try await put.setHeaders(["Idempotency-Key": key]).data().response.status)
        }
        #expect(statuses == [204, 204, 422, 204])
        #expect(server.changes(of: "ann").map(\.todo?.text) == ["Brew", "Taste"])
    }
}
