import Foundation
import TestSupport
import Testing

@testable import WebServiceOffline

/// Random interleavings of requests, refreshes, stores, streams and log-outs.
@Suite("Model of an account", .permit(minutes: isSoak ? 60 : 5))
struct AccountModelTests {
    @Test("After a log-out no request is sent, and nothing of the account is stored")
    func account() async throws {
        let rounds = isSanitized ? 200 : amount(200, thorough: 1_000, soak: 100_000)
        #expect(try await violations(of: .account, rounds: rounds, until: []) == [:])
    }

    @Test("Without an account, the same model finds requests, entries and cookies after the log-out")
    func byHand() async throws {
        let expected: Set = ["a request was sent", "an entry remains", "a cookie remains"]
        let found = try await violations(of: .byHand, rounds: 5_000, until: expected)
        #expect(Set(found.keys) == expected)
    }

    /// Returns the violations with the number of rounds in which they were found.
    ///
    /// - Parameter expected: The violations after which no further round is needed.
    private func violations(
        of ending: AccountModel.Ending, rounds: Int, until expected: Set<String>
    ) async throws -> [String: Int] {
        let folder = TemporaryFolder(inMemory: true)
        var found: [String: Int] = [:]
        for round in 0..<rounds where expected.isEmpty || Set(found.keys) != expected {
            var generator = SeededGenerator(seed: UInt64(round))
            let model = try AccountModel(ending, in: folder.url.appendingPathComponent("account"))
            try await run(model, &generator)
            for violation in Set(model.violations.values) { found[violation, default: 0] += 1 }
        }
        return found
    }

    private func run(_ model: AccountModel, _ generator: inout SeededGenerator) async throws {
        let steps = 4 + generator.next() % 24
        let end = generator.next() % steps
        var logOut: Task<Void, any Error>?
        for step in 0..<steps {
            let random = generator.next()
            if step == end { logOut = Task { try await model.logOut() } }
            switch random % 4 {
            case 0: model.begin(random >> 8)
            case 1: await Task.yield()
            default: if !model.parked.release(random >> 8) { model.begin(random >> 8) }
            }
        }
        await model.finish(&generator)
        try await logOut?.value
        await model.finish(&generator)
        model.check()
    }
}
