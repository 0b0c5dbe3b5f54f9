import ArgumentParser
import Foundation

@main
struct BreweryCLI: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "brewery-cli",
        abstract: "A client of the brewery API.",
        discussion: """
            The exit status is 0 for success, 1 for a response that reports an error, 64 for wrong \
            arguments, 69 if the server cannot be reached, 77 if the token is missing or rejected, \
            and 130 after Ctrl-C.
            """,
        version: "0.1.0",
        subcommands: [List.self, Show.self, PlaceOrder.self, Download.self, Watch.self])
}

/// A subcommand that sends requests.
protocol BreweryCommand: AsyncParsableCommand, Sendable {
    var options: ServiceOptions { get }

    /// Sends the requests of the command and prints the results.
    func run(_ client: BreweryClient, _ console: Console) async throws
}

extension BreweryCommand {
    /// Runs the command until it is complete or Ctrl-C is pressed, and reports an error.
    func run() async throws {
        let console = Console.standard
        do {
            let connection = try options.connect(console)
            defer { connection.close() }
            try await cancelledByInterrupt { try await run(connection.client, console) }
        } catch {
            let failure = Failure(error)
            console.complain("brewery-cli: \(failure.reason)")
            throw failure.exitCode
        }
    }
}

/// Runs work in a Swift task that SIGINT cancels.
///
/// The cancellation of the Swift task cancels its requests, streams and downloads.
private func cancelledByInterrupt(_ work: @escaping @Sendable () async throws -> Void) async throws {
    signal(SIGINT, SIG_IGN)  // otherwise the signal ends the process
    let interrupt = DispatchSource.makeSignalSource(signal: SIGINT)
    let (registration, continuation) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
        for await _ in registration {}  // a signal that arrives earlier would be lost
        try await work()
    }
    interrupt.setEventHandler { task.cancel() }
    interrupt.setRegistrationHandler { continuation.finish() }
    interrupt.resume()
    defer { interrupt.cancel() }
    let result = await task.result
    if task.isCancelled { throw CancellationError() }
    try result.get()
}
