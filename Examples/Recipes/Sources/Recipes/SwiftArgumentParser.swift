import ArgumentParser
import WebServiceCore

/// A command that prints the breweries of a state.
///
/// The base URL is an option with an environment variable as its default. An error of the exchange
/// ends the command with the exit code 1 and the description of the error on standard error.
public struct ListBrewers: AsyncParsableCommand {
    /// The name of the command and its help.
    public static let configuration = CommandConfiguration(
        commandName: "brewers", abstract: "Prints the breweries of a state.")

    @Option(help: "The base URL of the service.")
    var url: String

    @Option(help: "The maximum duration of a request in seconds.")
    var timeout: Int = 20

    @Argument(help: "The state.")
    var state: String

    /// Creates a command without values, for the parser.
    public init() {}

    /// Sends the request and prints one name per line.
    public func run() async throws {
        for name in try await names() { print(name) }
    }

    func names() async throws -> [String] {
        struct Brewer: Decodable, Sendable { var name: String }
        let service = WebService(baseURLString: url)
        service.options.timeout = .seconds(timeout)
        return try await service.GET("/brewers").setQueryParameters(["state": state])
            .decode([Brewer].self).value.map(\.name)
    }
}
