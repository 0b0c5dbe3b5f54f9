import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceTesting

@Suite(.permit) struct FaultExplorerTests {
    private static let explorer = FaultExplorer { mock in
        mock.on(.POST, "/orders", .json(["id": 1], status: 201))
    }

    /// Orders again after any failure.
    @Sendable private static func order(_ mock: MockService) async throws -> Int {
        do { return try await mock.service.POST("/orders").data().value.count } catch {
            return try await mock.service.POST("/orders").data().value.count
        }
    }

    /// The issues of explorations, by the first word of their message.
    private static let issues = Mutex<[String]>([])

    /// Keeps the issues of explorations from failing the test, and collects them.
    private static let collecting: IssueHandlingTrait = .compactMapIssues { issue in
        guard let text = issue.comments.first?.rawValue, text.contains("explorer.replay") else { return issue }
        issues.withLock { $0.append(text) }
        return nil
    }

    @Test("expectations of a check are one issue with the first plan", collecting)
    func expect() async {
        await Self.explorer.test(Self.order) { run in
            #expect(run.effects(.POST, "/orders") <= 1, "expected: ordered twice")
        }
        let texts = Self.issues.withLock { $0.filter { $0.contains("expected:") } }
        #expect(texts.count == 1)
        let start = "POST /orders#1=lost: expected: ordered twice (FaultExplorerTests.swift:"
        #expect(texts.first?.hasPrefix(start) == true)
    }

    @Test("requirements of a check are one issue", collecting)
    func require() async {
        await Self.explorer.test(Self.order) { run in
            try #require(run.effects(.POST, "/orders") <= 1, "required: ordered twice")
        }
        let texts = Self.issues.withLock { $0.filter { $0.contains("required:") } }
        #expect(texts.count == 1)
        let start = "POST /orders#1=lost: required: ordered twice (FaultExplorerTests.swift:"
        #expect(texts.first?.hasPrefix(start) == true)
    }

    @Test("expectations at one line without a comment are one issue, regardless of their values", collecting)
    func values() async {
        await Self.explorer.test { mock in
            for _ in 0..<3 { _ = try? await mock.service.POST("/orders").data().value }
        } check: { run in
            let count = run.effects(.POST, "/orders")
            #expect(count == 3)
        }
        let texts = Self.issues.withLock { $0.filter { $0.contains("count") } }
        #expect(texts.count == 1)
    }

    @Test("a check that holds records no issue")
    func holds() async {
        let report = await Self.explorer.test {
            _ = try await $0.service.POST("/orders").setHeaderValue("1", forName: "Idempotency-Key").data().value
        } check: { run in
            #expect(run.effects(.POST, "/orders") <= 1)
        }
        #expect(report.failures.isEmpty)
    }
}
