import Foundation

/// The words and options of the command line.
struct Arguments {
    static let version = "0.1.0"
    static let help = """
        usage: mcp-client tools URL [TOOL]      lists the tools, or describes one
               mcp-client call URL TOOL [NAME=VALUE ...] [--json]
               mcp-client listen URL            prints changes of the list until Ctrl-C
               mcp-client login URL [--scope SCOPES] | logout URL

        URL is the endpoint of a server of the Model Context Protocol. The values of
        arguments that are not strings are JSON. --json prints the whole result.

        --timeout SECONDS  the longest duration of a request; 60 by default
        --wait SECONDS     how long a connection that is refused is tried again; 2 by
                           default
        --verbose          logs each request to standard error, without secrets

        Log-ins are stored in ~/.mcp-client, or in the folder that the environment
        variable MCP_CLIENT_FOLDER names. MCP_TOKEN is a token to use instead.

        The exit status is 0 for success, 1 for a failure that the server reports, 64
        for wrong arguments, 69 if the server cannot be reached, 75 if a call has no
        result but may have taken effect, 77 if the server requires a log-in, and 130
        after Ctrl-C, which also cancels the call at the server.
        """
    /// The number of words of each command.
    private static let commands = ["tools": 2...3, "call": 3...1_000, "listen": 2...2, "login": 2...2, "logout": 2...2]

    private(set) var words: [String] = []
    private var options: [String: String] = [:]
    let url: URL

    init(_ arguments: some Sequence<String>) throws {
        var iterator = arguments.makeIterator()
        while let argument = iterator.next() {
            switch argument {
            case "--timeout", "--wait":
                guard let value = iterator.next(), let seconds = Int(value), (0...86_400).contains(seconds) else {
                    throw Failure.usage("\(argument) needs a number of seconds")
                }
                options[argument] = value
            case "--scope":
                guard let value = iterator.next() else { throw Failure.usage("\(argument) needs a value") }
                options[argument] = value
            case "--json", "--verbose": options[argument] = ""
            case _ where argument.hasPrefix("--"): throw Failure.usage("there is no option '\(argument)'")
            default: words.append(argument)
            }
        }
        guard let command = words.first else { throw Failure.usage("a command is missing") }
        guard let count = Self.commands[command] else { throw Failure.usage("there is no command '\(command)'") }
        guard count.contains(words.count) else {
            throw Failure.usage("\(command) has \(words.count < count.lowerBound ? "too few" : "too many") arguments")
        }
        guard let url = URL(string: words[1]), ["http", "https"].contains(url.scheme), url.host != nil else {
            throw Failure.usage("'\(words[1])' is not an http or https URL")
        }
        self.url = url
    }

    var scopes: [String]? { options["--scope"]?.split(separator: " ").map(String.init) }
    var timeout: Duration { max(seconds("--timeout") ?? .seconds(60), .seconds(1)) }
    var wait: Duration { seconds("--wait") ?? .seconds(2) }
    var printsJSON: Bool { options["--json"] != nil }
    var isVerbose: Bool { options["--verbose"] != nil }

    private func seconds(_ option: String) -> Duration? { options[option].flatMap { Int($0) }.map { .seconds($0) } }
}
