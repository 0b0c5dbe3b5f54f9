import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A cassette file of one test, and the ways to use it.
final class Tape: Sendable {
    private let temporary = TemporaryFolder()
    var file: URL { temporary.url.appendingPathComponent("chat.json") }

    func text() throws -> String { try String(contentsOf: file, encoding: .utf8) }

    func write(_ text: String) throws { try Data(text.utf8).write(to: file) }

    /// Records a client.
    @discardableResult
    func record<Result>(
        _ transport: SocketTransport, _ stub: MockResponse, recordsUnsearchedBodies: Bool = false,
        secrets: [String] = [],
        willRecord: (@Sendable (CassetteSession.Exchange) throws -> CassetteSession.Exchange?)? = nil,
        _ client: (WebService) async throws -> Result
    ) async throws -> (Result, WebService) {
        let (service, stubs) = try transport.make()
        stubs.on(.any, stub)
        let cassette = try CassetteSession(
            file: file, mode: .record, session: service.session, secrets: secrets,
            recordsUnsearchedBodies: recordsUnsearchedBodies, willRecord: willRecord)
        service.session = cassette
        let result = try await client(service)
        (stubs as? MockServer)?.stop()
        try cassette.finish()
        return (result, service)
    }

    /// Records a client, and replays it without the server.
    func run<Result>(
        _ transport: SocketTransport, _ stub: MockResponse, recordsUnsearchedBodies: Bool = false,
        secrets: [String] = [], _ client: (WebService) async throws -> Result
    ) async throws -> (recorded: Result, replayed: Result) {
        let (recorded, service) = try await record(
            transport, stub, recordsUnsearchedBodies: recordsUnsearchedBodies, secrets: secrets, client)
        let cassette = try CassetteSession(file: file, mode: .replay, secrets: secrets)
        service.session = cassette
        let replayed = try await client(service)
        try cassette.finish()
        return (recorded, replayed)
    }
}
