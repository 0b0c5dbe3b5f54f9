import Foundation
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import BreweryModels

@MainActor @Suite("The download of a poster", .timeLimit(.minutes(2)))
struct PosterDownloadTests {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("posters-\(UUID().uuidString)")

    @Test("The progress is shown, and a cancelled download continues where it stopped")
    func continuation() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }  // the folder of a test
        let content = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        // A real connection, because the download is interrupted within the body.
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/brewers/1/poster") { request in
            var response = MockResponse(file: content, eTag: "\"1\"", for: request)
            if request.headers["Range"] == nil { response.wire = .stall(after: 60_000) }
            return response
        }
        let poster = BreweryApp(service: WebService(baseURLString: server.baseURLString)).poster(1, folder: folder)
        let first = Task { await poster.start() }
        await until { if case .running(let fraction?) = poster.state { fraction > 0 } else { false } }
        poster.cancel()
        await first.value
        #expect(poster.state == .idle)

        await poster.start()
        let file = folder.appendingPathComponent("poster-1.jpg")
        #expect(poster.state == .finished(file))
        #expect(try Data(contentsOf: file) == content)
        #expect(server.receivedRequests.last?.headers["Range"] != nil)
    }

    @Test("A failed download is shown with the reason of the server")
    func failure() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }  // the folder of a test
        let mock = MockService()
        mock.on(.GET, "/brewers/1/poster", .problem(404, title: "There is no poster of this brewer"))
        let poster = BreweryApp(service: mock.service).poster(1, folder: folder)
        await poster.start()
        #expect(poster.state == .failed("There is no poster of this brewer"))
    }
}
