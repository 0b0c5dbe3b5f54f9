import ArgumentParser
import Foundation
import Synchronization
import Testing
import WebServiceCore
import WebServiceMocking

@testable import BreweryCLI

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The commands", .timeLimit(.minutes(2)))
struct CommandTests {
    let mock = MockService()

    /// Parses a command line, runs the command with the mock service and returns what it printed.
    private func lines(_ arguments: String..., environment: [String: String] = [:]) async throws -> [String] {
        let lines = LineList()
        let console = Console(
            print: { lines.append($0) }, complain: { _ in }, status: { _ in }, environment: environment)
        let command = try #require(try BreweryCLI.parseAsRoot(arguments) as? any BreweryCommand)
        try await command.run(BreweryClient(service: mock.service), console)
        return lines.all
    }

    @Test("list prints all pages, and requests a page only if its brewers are needed")
    func list() async throws {
        let brewers = (1...25).map { Brewer(id: $0, name: "Brewer \($0)", state: "maine") }
        mock.on(
            .path("/brewers") && .query("offset", "0") && .query("state", "maine"), .json(brewers.prefix(20).map { $0 })
        )
        let second = mock.on(.path("/brewers") && .query("offset", "20"), .json(brewers.suffix(5).map { $0 }))
        #expect(try await lines("list", "--state", "maine", "--limit", "20").count == 20)
        #expect(second.callCount == 0)
        let all = try await lines("list", "--state", "maine")
        #expect(all.count == 25)
        #expect(all.last == "25\tBrewer 25\tmaine")
    }

    @Test("order sends the token of the environment, and prints the number of the order")
    func order() async throws {
        mock.on(
            .method(.POST) && .path("/orders") && .json(["brewer": 3, "kegs": 2])
                && .header("Authorization", "Bearer t1"),
            .json(Receipt(number: 7), status: 201))
        let printed = try await lines("order", "3", "--kegs", "2", environment: ["BREWERY_TOKEN": "t1"])
        #expect(printed == ["order 7"])
    }

    @Test("order without a token sends nothing")
    func orderWithoutToken() async throws {
        let failure = await #expect(throws: Failure.self) { try await lines("order", "3") }
        #expect(failure?.exitCode == .noPermission)
        #expect(mock.receivedRequests.isEmpty)
    }

    @Test("watch prints the events, and stops after the specified number")
    func watch() async throws {
        let events = [(1, "Porter"), (2, "Stout")].map { tap, beer in
            ServerSentEvent(data: "{\"tap\": \(tap), \"beer\": \"\(beer)\"}", id: "\(tap)")
        }
        mock.on(.GET, "/tappings", .events(events))
        #expect(try await lines("watch", "--count", "2") == ["tap 1: Porter", "tap 2: Stout"])
    }

    @Test(
        "An error has an exit code and a reason",
        arguments: [
            (
                MockResponse.problem(404, title: "Unknown", detail: "no brewer 9"), ExitCode.failure,
                "The server responded with 404 Not Found: Unknown. no brewer 9."
            ),
            (.status(401), .noPermission, "the token was rejected"),
        ])
    func failures(response: MockResponse, exitCode: ExitCode, reason: String) async throws {
        mock.on(.GET, "/brewers/9", response)
        let error = await #expect(throws: WebServiceError.self) { try await lines("show", "9") }
        let failure = Failure(try #require(error))
        #expect(failure.exitCode == exitCode)
        #expect(failure.reason == reason)
    }

    @Test("Without a connection, the exit code is 69")
    func offline() {
        #expect(Failure(URLError(.notConnectedToInternet)).exitCode == .unavailable)
        #expect(Failure(CancellationError()).exitCode == .interrupted)
    }
}

private final class LineList: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func append(_ line: String) { lines.withLock { $0.append(line) } }
}
