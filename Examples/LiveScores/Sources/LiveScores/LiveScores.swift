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
        guard let address = arguments.first, arguments.count > 1 else {
            print("usage: live-scores (--demo | URL) MATCH ...")
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
            FileHandle.standardError.write(Data("live-scores: \(error)\n".utf8))
            exit(1)
        }
    }
}
