import Foundation
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

/// The exploration of a deliberately naive client (`--explore`): it runs with each fault of each of
/// its requests.
enum Explore {
    /// A server that stores each brewer that it receives, and the names as of the last change.
    final class Registry: Sendable {
        private let stored = Mutex<[Brewer]>([])

        var brewers: [Brewer] { stored.withLock { $0 } }

        init(_ mock: MockService) {
            mock.on(.GET, "/brewers") { [self] _ in .json(brewers) }
            mock.on(.POST, "/brewers") { [self] request in
                var brewer = try request.decode(Brewer.self)
                brewer.id = stored.withLock { stored in
                    stored.append(brewer)
                    return stored.count
                }
                return .json(brewer, status: 201)
            }
        }
    }

    /// Adds a brewer, and tries again after each failure. A brewer whose response was lost is added
    /// twice.
    struct NaiveClient: BreweryAPI {
        let webService: WebService

        func register(_ brewer: Brewer) async throws -> [Brewer] {
            do { _ = try await add(brewer).data().value } catch {
                _ = try await add(brewer).data().value
            }
            return try await webService.GET("/brewers").decode([Brewer].self).value
        }
    }

    static func run() async -> Bool {
        output("Each fault of each request of a naive client that adds a brewer:\n")
        let explorer = FaultExplorer(stubs: Registry.init)
        let report = await explorer.explore { mock in
            try await NaiveClient(webService: mock.service).register(Brewer(name: "Long Trail", state: "vermont"))
        } check: { run in
            try run.require(run.model.brewers.count <= 1, "the brewer is added twice")
            if run.output != nil { try run.require(!run.model.brewers.isEmpty, "success without a brewer") }
            try run.require(.everyCallEnds)
        }
        output(report.description)
        return report.problems.isEmpty
    }
}
