import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

/// The places where an outbox stores its entries.
enum OutboxPlace: String, CaseIterable, Sendable {
    case folder
    #if WEBSERVICE_SQLITE
    case database
    #endif

    /// The URL of the folder or of the database, in another folder.
    func url(in parent: URL) -> URL {
        let folder = parent.appendingPathComponent("outbox", isDirectory: true)
        return self == .folder ? folder : folder.appendingPathComponent("outbox.sqlite")
    }

    func outbox(
        of service: WebService, at url: URL, options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) throws -> Outbox {
        #if WEBSERVICE_SQLITE
        if self == .database { return try service.outbox(inDatabase: url, options: options, onFailure: onFailure) }
        #endif
        return try service.outbox(in: url, options: options, onFailure: onFailure)
    }
}

extension Account {
    /// Opens an account whose log-out waits for a minute, because other tests may keep the threads of
    /// Swift tasks busy for longer than the default limit.
    convenience init(in folder: URL) throws { try self.init(in: folder, logOutLimit: .seconds(60)) }

    /// Logs out again until the work ends within the limit, which may be too short for busy
    /// processors.
    func logOutAgain() async throws {
        try await eventually("the log-out ends within its limit") {
            do { try await logOut() } catch let error as WebServiceError {
                guard error.message.contains("its work did not end within") else { throw error }
                return false
            }
            return true
        }
    }
}

/// A service with a test clock, and a folder for its outbox.
struct OfflineFixture {
    let clock = TestClock()
    let mock: MockService
    let folder: URL
    /// The URL of the folder, or of the database.
    let outbox: URL
    private let place: OutboxPlace

    init(_ place: OutboxPlace = .folder) {
        mock = MockService(clock: clock)
        self.place = place
        outbox = place.url(in: TemporaryFolder.forTest().url)
        folder = place == .folder ? outbox : outbox.deletingLastPathComponent()
    }

    var service: WebService { mock.service }

    /// Opens an outbox, and waits until it has read its folder.
    func open(
        _ options: Outbox.Options = Outbox.Options(),
        onFailure: @escaping @Sendable (Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) async throws -> Outbox {
        let outbox = try place.outbox(of: service, at: outbox, options: options, onFailure: onFailure)
        await clock.advance(by: .zero)
        return outbox
    }

    /// Writes entries with an outbox whose requests fail for lack of a connection.
    func leave(_ paths: [String], entity: String? = nil) async throws {
        let offline = MockService(clock: clock)
        offline.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let outbox = try place.outbox(of: offline.service, at: outbox)
        for path in paths { try await outbox.submit(offline.service.request(.POST, path: path), entity: entity) }
        await outbox.close()
    }

    var paths: [String] { mock.receivedRequests.map(\.path) }

    func entryFiles() throws -> [String] { try names(in: folder).filter { $0.hasSuffix(".entry") } }
}
