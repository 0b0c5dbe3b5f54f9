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
    /// A Boolean value that indicates whether a web page shows the exchanges.
    var inspects = false
    var servesOnly = false
    var wantsHelp = false

    static let usage = "usage: brewery [OPTION]...; 'brewery --help' lists the options"

    /// Printed by `scripts/demo --help` from the source file, without a build.
    static let help = """
        usage: brewery [--server URL | --serve] [--transport foundation|curl]
                       [--store FOLDER] [--verbose] [--inspect] [--help]
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
          --verbose         log every request and response, secrets redacted
          --inspect         show every request and response in a web page, print its
                            URL, and wait at the end until standard input ends
          --help            print this

        'brewery fetch' downloads a file, and 'brewery chat' prints a reply while the
        server produces it; see 'brewery fetch --help' and 'brewery chat --help'.

        The exit status is 0 if every step had the expected result, 1 if one had not,
        64 for wrong arguments, 69 if the server cannot be reached, and 74 if standard
        output cannot be written.
        """

    /// An argument that is not accepted.
    struct Problem: Error {
        let message: String
    }

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
            case "--help": wantsHelp = true
            default: throw Problem(message: "unknown argument \(Self.quoted(argument))")
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

    /// Returns the string in single quotes on one line, with its control characters escaped.
    static func quoted(_ text: String) -> String {
        "'"
            + text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? $0.escaped(asASCII: true) : String($0) }
            .joined() + "'"
    }
}
