import Foundation

/// What the command line asks for.
struct Options {
    var server: String?
    var isVerbose = false
    var servesOnly = false
    var wantsHelp = false

    static let usage = "usage: brewery [--server URL | --serve] [--verbose] [--help]"

    static let help = """
        \(usage)

        Talks to a small brewery API, one request after another, and says what happened.

          --server URL  use a server that is running already; without it one is started on this machine
          --serve       only start the server, print its URL and serve until standard input ends
          --verbose     log every message on the wire, secrets redacted
          --help        print this
        """

    /// Reads the arguments; `nil` when they make no sense.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--server":
                guard let value = rest.popFirst(), let url = URL(string: value), let scheme = url.scheme?.lowercased(),
                    ["http", "https"].contains(scheme), url.host?.isEmpty == false
                else { return nil }
                server = value
            case "--verbose": isVerbose = true
            case "--serve": servesOnly = true
            case "--help": wantsHelp = true
            default: return nil
            }
        }
        if servesOnly, server != nil { return nil }
    }
}
