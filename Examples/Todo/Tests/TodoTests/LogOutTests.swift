import Foundation
import Synchronization
import Testing

@testable import TodoServer

@Suite("Log-out", .timeLimit(.minutes(5)))
struct LogOutTests {
    /// The strings that belong to the user: the text of the to-dos, the tokens, and the name.
    private func secrets(_ todo: TodoProcess) throws -> [String] {
        let logIn = try Data(contentsOf: todo.folder.appendingPathComponent("accounts/ann/log-in.json"))
        let strings = String(decoding: logIn, as: UTF8.self).split(separator: "\"").map(String.init)
        let tokens = strings.filter { UUID(uuidString: $0) != nil }
        try #require(tokens.count == 2)
        return tokens + ["Brew", "ann"]
    }

    /// Logs in, and leaves one to-do that was sent and one that was not.
    private func prepare(_ todo: TodoProcess, _ server: TodoServer) async throws -> [String] {
        try await todo.run("login", "ann", "--server", server.address, password: "secret")
        try await todo.run("add", "Brew ale")
        try await todo.run("sync")
        try await todo.run("add", "Brew porter")
        let secrets = try secrets(todo)
        let isFound = try !todo.files(containing: secrets).matching.isEmpty
        try #require(isFound)
        return secrets
    }

    @Test("A log-out leaves nothing of the user on the disk, and revokes the token")
    func nothingRemains() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let server = try TodoServer(passwords: ["ann": "secret"])
        defer { server.stop() }
        let secrets = try await prepare(todo, server)
        server.expireTokens()
        #expect(try await todo.run("logout", "--discard").status == 0)
        let files = try todo.files(containing: secrets)
        #expect(files.all == ["accounts", "lock"])
        #expect(files.matching == [])
        #expect(server.logInCount == 0)
        #expect(try await todo.run("list").status == 77)
    }

    @Test("Unsent changes prevent a log-out without --discard")
    func unsentChanges() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let server = try TodoServer(passwords: ["ann": "secret"])
        try await todo.run("login", "ann", "--server", server.address, password: "secret")
        server.stop()
        try await todo.run("add", "Brew")
        let refused = try await todo.run("logout")
        #expect(refused.status == 1)
        #expect(refused.errors.contains("1 change is not sent"))
        #expect(try await todo.run("list").todos.count == 1)
        #expect(try await todo.run("logout", "--discard").status == 0)
    }

    @Test("When a log-out revokes the token, nothing of the user is on the disk any more")
    func revocation() async throws {
        let todo = TodoProcess()
        defer { todo.remove() }
        let process = Mutex<pid_t>(0)
        let server = try TodoServer(passwords: ["ann": "secret"]) { request, respond in
            if request.path == "/revoke" {
                // The request may arrive before the test knows the process.
                while process.withLock({ $0 }) == 0 { usleep(1_000) }
                kill(process.withLock { $0 }, SIGKILL)
            }
            return try respond()
        }
        defer { server.stop() }
        let secrets = try await prepare(todo, server)
        let logOut = try await todo.run("logout", "--discard") { id in process.withLock { $0 = id } }
        #expect(logOut.status == SIGKILL)
        #expect(try todo.files(containing: secrets).all == ["accounts", "lock"])
    }

    @Test("After a kill at any instant of a log-out, the next command finds the account complete or removed")
    func killed() async throws {
        let server = try TodoServer(passwords: ["ann": "secret"])
        defer { server.stop() }
        var (killed, complete, removed, completed) = (0, 0, 0, 0)
        for _ in 0..<max(10, killCount / 5) {
            let todo = TodoProcess()
            defer { todo.remove() }
            // A log-in that was killed is repeated.
            let instant = Duration.milliseconds(.random(in: 0...60))
            try await todo.run(
                "login", "ann", "--server", server.address, password: "secret", killedAfter: instant)
            let secrets = try await prepare(todo, server)
            let duration = try await ContinuousClock().measure { try await todo.run("list") }
            let delay = duration * Double.random(in: 0.3...1.5)
            let logOut = try await todo.run("logout", "--discard", killedAfter: delay)
            if logOut.status == SIGKILL { killed += 1 }
            let isIncomplete = try !todo.files(containing: secrets).matching.isEmpty
            let list = try await todo.run("list")
            if list.status == 0 {
                complete += 1
                #expect(logOut.status == SIGKILL)
                #expect(list.todos.suffix(2).map(\.id.count) == [36, 36])
            } else {
                removed += 1
                if isIncomplete { completed += 1 }
                #expect(try todo.files(containing: secrets).all == ["accounts", "lock"])
            }
        }
        print(
            "\(killed) kills in log-outs: \(complete) accounts complete, \(removed) removed, "
                + "\(completed) of them by the next command")
    }
}
