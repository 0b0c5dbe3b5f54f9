import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

private struct Order: Codable, Sendable, Equatable {
    var id = 1
}

@Suite(.permit) struct ExplorationTests {
    @Test("a shop that orders again after a lost response orders twice")
    func orderedTwice() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.POST, "/orders", .json(Order(), status: 201))
        }
        let report = await explorer.explore { mock in
            let service = mock.service
            do { return try await service.POST("/orders").decode(Order.self).value } catch {
                return try await service.POST("/orders").decode(Order.self).value
            }
        } check: { run in
            try run.require(run.effects(.POST, "/orders") <= 1, "ordered twice")
        }
        print(report)
        #expect(report.failures.first?.plan == "POST /orders#1=lost")
        #expect(report.failures.count == 1)
        #expect(report.problems == [])
    }

    @Test("a client of five exchanges is explored with all faults, and has no fault")
    func fiveExchanges() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/user", .json(Order()))
            mock.on(.GET, "/cart", .json([Order()]))
            mock.on(.POST, "/orders", .json(Order(), status: 201))
            mock.on(.GET, "/orders/1", .json(Order()))
            mock.on(.DELETE, "/cart", .status(204))
        }
        for _ in 0..<amount(1, thorough: 2, soak: 20) {
            let report = await explorer.explore { mock in
                let service = mock.service
                _ = try await service.GET("/user").decode(Order.self).value
                _ = try await service.GET("/cart").decode([Order].self).value
                let order = try await service.POST("/orders").decode(Order.self).value
                _ = try await service.GET("/orders/1").decode(Order.self).value
                _ = try await service.DELETE("/cart").data().value
                return order
            } check: { run in
                try run.require(run.effects(.POST, "/orders") <= 1, "ordered twice")
            }
            print("\(Int(Double(report.runs) / (report.duration / .seconds(1)))) runs per second")
            #expect(report.failures.isEmpty)
            #expect(report.problems == [])
            #expect(report.exchanges.count == 5)
        }
    }
}
