import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTransfers

/// Every kind of credential over every kind of redirect, as the servers receive it.
@Suite("Credentials over redirects", .serialized, .permit)
struct CredentialTableTests {
    /// How the response is consumed.
    enum Consumption: CaseIterable {
        case whole, stream, download
    }

    private func run(_ row: CredentialTable.Row, _ consumption: Consumption, _ task: SessionTask) async -> (any Error)?
    {
        switch consumption {
        case .whole: return await task.delivered().error
        case .stream:
            do {
                for try await _ in try await task.stream().value.body {}
                return nil
            } catch { return error }
        case .download:
            let file = TemporaryFolder.forTest().url.appendingPathComponent("chain")
            do {
                _ = try await task.download(to: file).value
                return nil
            } catch { return error }
        }
    }

    @Test(
        "No credential reaches another origin over a redirect, nor returns, and none is lost at the same origin",
        arguments: RealSession.transports)
    func table(kind: RealSession) async throws {
        let table = try CredentialTable()
        defer { table.stop() }
        let service = table.service(over: try kind.session())
        var rows = CredentialTable.rows.map { ($0, Consumption.whole) }
        for row in CredentialTable.rows where row.method == .GET { rows += [(row, .stream), (row, .download)] }
        let errors = await withTaskGroup(of: (Int, (any Error)?).self) { group in
            var errors: [Int: any Error] = [:]
            for (id, (row, consumption)) in rows.enumerated() {
                if id >= 8, let (id, error) = await group.next() { errors[id] = error }
                let task = table.task(row, id: id, service)
                group.addTask { (id, await run(row, consumption, task)) }
            }
            for await (id, error) in group { errors[id] = error }
            return errors
        }
        let received = Dictionary(grouping: table.home.receivedRequests + table.away.receivedRequests) { $0.chain }
        var checks = 0
        for (id, (row, consumption)) in rows.enumerated() {
            let (hops, isRefused) = row.outcome
            let requests = (received[id] ?? []).sorted { $0.path.utf8.count > $1.path.utf8.count }
            #expect(requests.count == hops.count, "\(row) \(consumption): \(requests.map(\.path))")
            #expect(((errors[id] as? WebServiceError)?.code == .redirectRefused) == isRefused, "\(row) \(consumption)")
            #expect((errors[id] == nil) != isRefused, "\(row) \(consumption): \(String(describing: errors[id]))")
            checks += 3
            for (number, request) in requests.enumerated() {
                let mayHave = hops.prefix(number + 1).allSatisfy { $0 == .home }
                for field in CredentialTable.fields {
                    #expect(
                        (request.headers[field] != nil) == mayHave,
                        "\(field.rawValue) of hop \(number) of \(row) \(consumption)")
                }
                let text = String(decoding: request.rawBytes, as: UTF8.self)
                let body = request.body == Data("canary-body".utf8)
                #expect(text.contains("canary-query") == (number == 0), "\(row) \(consumption)")
                #expect(body == row.sendsBody(atHop: number), "\(row) \(consumption)")
                #expect(request.headers[.accept] == "text/plain", "\(row) \(consumption)")
                #expect(mayHave || !text.replacing("canary-body", with: "").contains("canary"), "\(row) \(consumption)")
                checks += CredentialTable.fields.count + 4
            }
        }
        print("credential checks over \(kind): \(checks), requests: \(rows.count)")
        #expect(checks >= 900)
    }
}

extension ReceivedRequest {
    /// The number in a path such as `/chain/<number>/302-port`.
    fileprivate var chain: Int? {
        path.split(separator: "/").dropFirst().first.flatMap { Int($0) }
    }
}
