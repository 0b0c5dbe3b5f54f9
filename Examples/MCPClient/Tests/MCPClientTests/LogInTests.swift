import Foundation
import Testing
import WebServiceCore

@testable import MCPClient

@Suite(
    "The log-in at a server of the package mcp", .timeLimit(.minutes(5)),
    .enabled(if: Servers.packages != nil, "requires the package mcp (WEBSERVICE_MCP)"))
struct LogInTests {
    /// A folder for log-ins, and the program with it.
    private struct User {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("mcp-\(UUID().uuidString)")

        func run(_ arguments: String...) async throws -> ProgramRun {
            try await ProgramRun.run(arguments, environment: ["MCP_CLIENT_FOLDER": folder.path])
        }

        /// Logs in, with this test as the browser.
        func logIn(_ arguments: String...) async throws -> ProgramRun {
            let environment = ["MCP_CLIENT_FOLDER": folder.path]
            return try await ProgramRun.run(["login"] + arguments, environment: environment) { _, errors in
                let prompt = try await blocking { readLine(from: errors) }
                #expect(prompt == "Open this URL in a browser:")
                let url = try await blocking { readLine(from: errors) }
                _ = try await WebService(baseURL: nil).GET(url).string().value
            }
        }

        var files: [String] {
            get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
        }

        func remove() { try? FileManager.default.removeItem(at: folder) }  // the files of a test
    }

    private func withServer(_ body: (Script, ServerLog, User) async throws -> Void) async throws {
        let (log, user) = (ServerLog(), User())
        defer {
            log.remove()
            user.remove()
        }
        let server = try await blocking { try Script("oauth", log: log.file) }
        defer { server.stop() }
        try await body(server, log, user)
    }

    @Test("Without a log-in, the exit status is 77, and after one, the tools can be called")
    func logIn() async throws {
        try await withServer { server, log, user in
            let refused = try await user.run("tools", server.url)
            #expect(refused.status == 77)
            #expect(refused.errors == "mcp-client: the server requires a log-in; run 'mcp-client login URL'\n")

            let logIn = try await user.logIn(server.url)
            #expect(logIn.status == 0, "\(logIn.errors)")
            #expect(log.lines == ["register mcp-client", "authorize \(server.url) tools", "exchange"])
            #expect(try await user.run("call", server.url, "add", "a=1", "b=2").output == "3\n")
            for (name, permissions) in [("", 0o700)] + (try user.files.map { ($0, 0o600) }) {
                let path = user.folder.appendingPathComponent(name).path
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.posixPermissions] as? Int == permissions, "\(name)")
            }
        }
    }

    @Test("A rejected token is refreshed, and the call is sent once")
    func refresh() async throws {
        try await withServer { server, log, user in
            _ = try await user.logIn(server.url)
            #expect(try await user.run("call", server.url, "forget").output == "forgotten\n")
            #expect(try await user.run("call", server.url, "count", "id=1").output == "count 1\n")
            #expect(Array(log.lines.dropFirst(3)) == ["refresh", "call count 1", "effect count 1"])
            // The refreshed tokens are stored.
            #expect(try await user.run("call", server.url, "count", "id=2").output == "count 2\n")
            #expect(log.lines.count { $0 == "refresh" } == 1)
        }
    }

    @Test("If the refresh is refused, the exit status is 77")
    func refusedRefresh() async throws {
        try await withServer { server, _, user in
            _ = try await user.logIn(server.url)
            _ = try await user.run("call", server.url, "forget", "refresh_tokens=true")
            let call = try await user.run("call", server.url, "echo", "text=a")
            #expect(call.status == 77, "\(call.errors)")
        }
    }

    // The revocation endpoint of mcp 2.3.0 refuses clients without a secret.
    @Test("A log-out removes the tokens, even if the server refuses to revoke them")
    func logOut() async throws {
        try await withServer { server, log, user in
            _ = try await user.logIn(server.url)
            let logOut = try await user.run("logout", server.url)
            #expect(logOut.status == (log.lines.last == "revoke" ? 0 : 1))
            #expect(try user.files.allSatisfy { $0.hasSuffix(".lock") || $0.hasSuffix(".refresh") })
            #expect(try await user.run("tools", server.url).status == 77)
        }
    }
}
