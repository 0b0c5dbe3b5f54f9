import ArgumentParser
import Foundation
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The options of every subcommand.
struct ServiceOptions: ParsableArguments {
    @Option(help: "The base URL of the API.")
    var baseURL = "https://brewery.example.com/v1"

    @Flag(help: "Use a server within this process instead, which needs no network.")
    var demo = false

    @Option(help: "The maximum duration of a request in seconds.")
    var timeout = 20

    @Flag(name: .shortAndLong, help: "Log each request to standard error, without secrets.")
    var verbose = false

    func validate() throws {
        guard let url = URL(string: baseURL), ["http", "https"].contains(url.scheme), url.host != nil else {
            throw ValidationError("--base-url needs an http or https URL")
        }
        guard timeout > 0 else { throw ValidationError("--timeout needs a positive number") }
    }

    /// Creates the client, and starts the server of the demo.
    func connect(_ console: Console) throws -> Connection {
        let server = demo ? try DemoServer.start() : nil
        let service = WebService(baseURLString: server?.baseURLString ?? baseURL)
        service.options.timeout = .seconds(timeout)
        service.interceptors = [.retry()]
        if verbose { service.observers = [.log(.debug) { console.complain($0.text) }] }
        #if WEBSERVICE_CURL
        service.session = try CurlSession()
        #endif
        return Connection(client: BreweryClient(service: service), server: server)
    }

    /// A client with what it uses.
    struct Connection {
        let client: BreweryClient
        let server: MockServer?

        func close() { server?.stop() }
    }
}
