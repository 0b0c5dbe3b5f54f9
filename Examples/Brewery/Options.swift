import Foundation

/// What the command line asks for.
struct Options {
    /// What moves the bytes.
    enum Transport: String {
        case foundation, curl
    }

    var server: String?
    /// Where answers are kept; `nil` for nowhere.
    var store: String?
    var transport = Transport.foundation
    var isVerbose = false
    var servesOnly = false
    var wantsHelp = false

    static let usage = "usage: brewery [--server URL | --serve] [--transport foundation|curl] [--store FOLDER] [--verbose] [--help]"

    static let help = """
        \(usage)

        Talks to a small brewery API, one request after another, and says what happened.

          --server URL     use a server that is running already; without it one is started on this machine
          --serve          only start the server, print its URL and serve until standard input ends
          --transport NAME what moves the bytes: foundation (FoundationSession, the default) or curl (CurlSession)
          --store FOLDER   keep the list of brewers there, and show it with its age when the server cannot be reached
          --verbose        log every message on the wire, secrets redacted
          --help           print this
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
            case "--transport":
                guard let transport = rest.popFirst().flatMap(Transport.init) else { return nil }
                self.transport = transport
            case "--store":
                guard let value = rest.popFirst(), !value.isEmpty else { return nil }
                store = value
            case "--verbose": isVerbose = true
            case "--serve": servesOnly = true
            case "--help": wantsHelp = true
            default: return nil
            }
        }
        if servesOnly, server != nil { return nil }
    }
}
