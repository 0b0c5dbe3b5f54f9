import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// `brewery chat`: prints a reply while the server produces it.
struct Chat {
    static let help = """
        usage: brewery chat [QUESTION] [--server URL] [--transport foundation|curl]

        Asks the brewery a question, and prints each token of the reply when it
        arrives. The reply consists of server-sent events, as in the APIs of large
        language models, and ends with the event '[DONE]'.

          QUESTION          defaults to 'Which beer do you recommend?'
          --server URL      use a server that is running; defaults to a server started
                            for this run on this machine
          --transport NAME  foundation or curl; defaults to curl where it is available

        'brewery --help' lists the exit statuses.
        """

    /// One piece of a reply.
    struct Token: Codable {
        let token: String
    }

    static let question = "Which beer do you recommend?"

    private var question: String?
    private var server: String?
    private var transport = Options.Transport.ofStreams

    /// Parses the arguments after `chat`.
    init(_ arguments: [String]) throws(Options.Problem) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--server": server = try Options.url(of: argument, from: &rest)
            case "--transport": transport = try Options.transport(of: argument, from: &rest)
            case _ where argument.hasPrefix("-") || question != nil:
                throw Options.unknown(argument, amongst: ["--server", "--transport", "--help"])
            default: question = argument
            }
        }
    }

    /// Prints the reply.
    ///
    /// - Returns: The exit status.
    func run() async -> ExitStatus {
        let own = server == nil ? setUp("the server of the demo", BreweryServer.start) : nil
        defer { own?.stop() }
        let service = WebService(baseURLString: server ?? own?.baseURLString ?? "")
        service.session = setUp("the transport \(transport)") { try session(transport) }
        var isEmpty = true
        do {
            for try await token in BreweryClient(webService: service).chat(question ?? Self.question) {
                isEmpty = false
                output(piece: token.token)
            }
            output("")
            return .success
        } catch {
            if !isEmpty { output("") }
            complain("the reply is not complete: \(error.localizedDescription)")
            return (error as? URLError)?.isConnectionFailure == true ? .unavailable : .failure
        }
    }
}
