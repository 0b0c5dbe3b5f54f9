import Foundation
import WebServiceCore
import WebServiceMocking

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

@main
struct LiveScores {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let help = "usage: live-scores (--demo | URL) MATCH ..."
        guard !arguments.contains("--help") else { return print(help) }
        guard let address = arguments.first, arguments.count > 1 else {
            FileHandle.standardError.write(Data("\(help)\n".utf8))
            exit(64)
        }
        do {
            let server = address == "--demo" ? try await DemoServer(pause: .seconds(1)).start() : nil
            defer { server?.stop() }
            let service = WebService(baseURLString: server?.baseURLString ?? address)
            #if WEBSERVICE_CURL
            service.session = try CurlSession()
            #endif
            try await ScoreClient(service: service).follow(Array(arguments.dropFirst())) { score in
                print("\(score.match) \(score.home):\(score.away)\(score.isFinal ? " (final)" : "")")
            }
        } catch {
            FileHandle.standardError.write(Data("live-scores: \(error.localizedDescription)\n".utf8))
            exit(1)
        }
    }
}
