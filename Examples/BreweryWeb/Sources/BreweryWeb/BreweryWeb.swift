import Foundation
import Hummingbird
import WebServiceCore
import WebServiceCurl

/// A server that calls the brewery API, whose base URL is the value of BREWERY_URL.
@main
struct BreweryWeb {
    static func main() async throws {
        // One session for the process, so that all requests share its connections.
        let session = try CurlSession()
        let address = ProcessInfo.processInfo.environment["BREWERY_URL"] ?? "https://brewery.example.com/v1"
        let service = WebService(baseURLString: address)
        service.session = session
        configure(service)
        _ = try service.absoluteURL("/")  // an invalid base URL is reported at the start
        let app = Application(
            router: breweryRouter(service: service),
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 8080)))
        try await app.runService()  // until SIGINT or SIGTERM
        session.close()
    }
}

/// Sets the interceptors of the service that the handlers use.
func configure(_ service: WebService) {
    // The trace identifier is that of the incoming request. Each attempt has its own span.
    service.interceptors = [ForwardedTraceContext(), .traceContext(), .retry()]
}
