import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceTesting

// The snippets of the section "All faults" of Guide.md, and of the articles of WebServiceFaults.

/// A suite whose test fails on purpose.
@Suite("Snippets of faults", .permit, .filterIssues { _ in false }) struct FaultSnippets {
    struct Shop {
        var service: WebService

        func checkout() async throws {
            do { _ = try await service.POST("/orders").data().value } catch {
                _ = try await service.POST("/orders").data().value  // a second order?
            }
        }
    }

    @Test func checkout() async {
        let explorer = FaultExplorer { mock in mock.on(.POST, "/orders", .status(201)) }
        await explorer.test { mock in
            try await Shop(service: mock.service).checkout()
        } check: { run in
            #expect(run.effects(.POST, "/orders") <= 1, "ordered twice")
        }
    }
}

@Suite("Snippets of the articles about faults", .permit) struct FaultArticleSnippets {
    typealias Shop = FaultSnippets.Shop

    @Test("The explorer of the overview finds the second order")
    func overview() async {
        let explorer = FaultExplorer { mock in
            mock.on(.POST, "/orders", .json(["id": 1], status: 201))
        }
        let report = await explorer.explore { mock in
            try await Shop(service: mock.service).checkout()
        } check: { run in
            try run.require(run.effects(.POST, "/orders") <= 1, "ordered twice")
        }
        print(report)

        #expect(report.failures.map(\.plan) == ["POST /orders#1=lost"])
    }

    final class OrderBook: Sendable {
        let keys = Mutex<Set<String>>([])
    }

    @Test("A model of the server is created for each run")
    func model() async {
        let explorer = FaultExplorer { mock in
            let book = OrderBook()
            mock.on(.POST, "/orders") { request in
                let key = request.headers["Idempotency-Key"] ?? UUID().uuidString
                _ = book.keys.withLock { $0.insert(key) }
                return .status(201)
            }
            return book
        }

        let report = await explorer.explore { mock in
            try await Shop(service: mock.service).checkout()
        } check: { run in
            try run.require(run.model.keys.withLock { $0.count } <= 1, "ordered twice")
        }
        #expect(report.failures.map(\.plan) == ["POST /orders#1=lost"])
    }
}
