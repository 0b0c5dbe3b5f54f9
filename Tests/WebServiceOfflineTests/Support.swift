import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

/// A service with a test clock, and a folder for its outbox.
struct OfflineFixture {
    let clock = TestClock()
    let mock: MockService
    let folder = TemporaryFolder.forTest().url.appendingPathComponent("outbox", isDirectory: true)

    init() {
        mock = MockService(clock: clock)
    }

    var service: WebService { mock.service }

    /// Opens an outbox, and waits until it has read its folder.
    func open(
        _ options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) async throws -> Outbox {
        let outbox = try service.outbox(in: folder, options: options, onFailure: onFailure)
        await clock.advance(by: .zero)
        return outbox
    }

    /// Writes entries with an outbox whose requests fail for lack of a connection.
    func leave(_ paths: [String], entity: String? = nil) async throws {
        let offline = MockService(clock: clock)
        offline.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let outbox = try offline.service.outbox(in: folder)
        for path in paths { try await outbox.submit(offline.service.request(.POST, path: path), entity: entity) }
        await outbox.close()
    }

    var paths: [String] { mock.receivedRequests.map(\.path) }

    func entryFiles() throws -> [String] { try names(in: folder).filter { $0.hasSuffix(".entry") } }
}
