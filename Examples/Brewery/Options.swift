import Foundation

/// The options of the command line.
struct Options {
    /// The kind of session that sends the requests.
    enum Transport: String {
        case foundation, curl

        /// The default transport of commands whose bodies are streams: curl where it is available.
        static var ofStreams: Transport {
            #if WEBSERVICE_CURL
            .curl
            #else
            .foundation
            #endif
        }
    }

    var server: String?
    /// The folder in which responses are stored; `nil` to store them in memory.
    var store: String?
    var transport = Transport.foundation
    var isVerbose = false
    /// Whether a web page shows the exchanges.
    var inspects = false
    var servesOnly = false
    /// Whether a naive client is explored in place of the demo.
    var explores = false

    static let version = "0.1.0"

    /// Printed by `scripts/demo --help` from the source file, without a build.
    static let help = """
        usage: brewery [--server URL | --serve] [--transport foundation|curl]
                       [--store FOLDER] [--verbose] [--inspect]
               brewery --explore
               brewery fetch URL [OPTION]...
               brewery chat [QUESTION] [OPTION]...

        Sends requests to a small brewery API, one at a time, and prints the results.

          --server URL      use a server that is running; defaults to a server started
                            for this run on this machine
          --serve           only start the server, print its URL and serve until
                            standard input ends
          --transport NAME  foundation (FoundationSession, the default) or curl
                            (CurlSession)
          --store FOLDER    store the list of brewers there, and show it with its age
                            when the server cannot be reached
          --verbose         log every request and response to standard error, secrets
                            redacted
          --inspect         show every request and response in a web page, print its
                            URL, and wait at the end until standard input ends
          --explore         only run a naive client with each fault of each of its
                            requests, and print what goes wrong
          --version         print the version
          --help            print this

        'brewery fetch' downloads a file, and 'brewery chat' prints a reply while the
        server produces it; see 'brewery fetch --help' and 'brewery chat --help'.

        A terminal shows colors, unless the variable NO_COLOR is set. With
        CLICOLOR_FORCE=1, files have them as well.

        The exit status of all commands:
          0    success
          1    a response or a result is not the expected one
          64   wrong arguments
          69   the server cannot be reached
          74   standard output cannot be written
          130  Ctrl-C
        """

    /// An argument that is not accepted.
    struct Problem: Error {
        let message: String
    }

    private static let names = [
        "fetch", "chat", "--server", "--serve", "--transport", "--store", "--verbose", "--inspect", "--explore",
        "--version", "--help",
    ]

    /// Parses the arguments.
    init(_ arguments: [String]) throws(Problem) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--server": server = try Self.url(of: argument, from: &rest)
            case "--transport": transport = try Self.transport(of: argument, from: &rest)
            case "--store":
                store = try Self.value(of: argument, from: &rest)
            case "--verbose": isVerbose = true
            case "--inspect": inspects = true
            case "--serve": servesOnly = true
            case "--explore": explores = true
            default: throw Self.unknown(argument, amongst: Self.names)
            }
        }
        if servesOnly, server != nil { throw Problem(message: "--serve and --server exclude each other") }
    }

    static func url(of option: String, from rest: inout ArraySlice<String>) throws(Problem) -> String {
        let value = try value(of: option, from: &rest)
        guard let url = URL(string: value), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            url.host?.isEmpty == false
        else { throw Problem(message: "\(option) needs an http or https URL, not \(quoted(value))") }
        return value
    }

    static func transport(of option: String, from rest: inout ArraySlice<String>) throws(Problem) -> Transport {
        let value = try value(of: option, from: &rest)
        guard let transport = Transport(rawValue: value) else {
            throw Problem(message: "\(option) needs 'foundation' or 'curl', not \(quoted(value))")
        }
        return transport
    }

    static func value(of option: String, from rest: inout ArraySlice<String>) throws(Problem) -> String {
        guard let value = rest.popFirst(), !value.isEmpty else { throw Problem(message: "\(option) needs a value") }
        return value
    }

    /// Returns the problem of an unknown argument, with the most similar known one.
    static func unknown(_ argument: String, amongst names: [String]) -> Problem {
        let word = argument.prefix(40)
        let nearest = names.map { ($0, distance($0, word)) }.min { $0.1 < $1.1 }
        let hint = nearest.flatMap { $1 <= 2 ? "; did you mean '\($0)'?" : nil }
        return Problem(message: "unknown argument \(quoted(argument))\(hint ?? "")")
    }

    /// Returns the number of characters that have to be inserted, removed or replaced to change one
    /// word into the other.
    private static func distance(_ first: some StringProtocol, _ second: some StringProtocol) -> Int {
        var row = Array(0...second.count)
        for (i, a) in first.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in second.enumerated() {
                (diagonal, row[j + 1]) = (row[j + 1], min(row[j + 1] + 1, row[j] + 1, diagonal + (a == b ? 0 : 1)))
            }
        }
        return row[second.count]
    }

    /// Returns the string in single quotes on one line, with its control characters escaped.
    static func quoted(_ text: String) -> String {
        "'"
            + text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? $0.escaped(asASCII: true) : String($0) }
            .joined() + "'"
    }
}
