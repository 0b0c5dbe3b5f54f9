import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

/// Code that an exploration must survive.
@Suite(.permit) struct BadInputTests {
    private static func explorer(_ budget: FaultExplorer<Void>.Budget = .init()) -> FaultExplorer<Void> {
        FaultExplorer(budget: budget) { mock in
            mock.on(.where("any") { _ in true }, .json(["id": 1]))
        }
    }

    @Test("code that waits forever without faults is named")
    func hangs() async {
        let report = await Self.explorer().explore { _ in
            await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
        } check: { _ in
        }
        #expect(report.problems.count == 1)
        #expect(report.problems.first?.hasPrefix("without faults, the code waits for something") == true)
    }

    @Test("code that waits forever after a fault is named by the invariant")
    func hangsAfterFault() async {
        let report = await Self.explorer().explore { mock in
            do { _ = try await mock.service.GET("/a").data().value } catch {
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            }
        } check: { run in
            try run.require(.everyCallEnds)
        }
        #expect(report.failures.first?.plan == "GET /a#1=refused")
        #expect(report.failures.first?.message.contains("no request and no alarm can end") == true)
    }

    @Test("code that sends no request is named, because nothing can be explored")
    func silent() async {
        let report = await Self.explorer().explore { _ in
            1
        } check: { _ in
        }
        #expect(report.problems == ["without faults, the code sends no request over the service of the mock"])
    }

    @Test(
        "a check that counts the effects of a request that does not exist is named",
        arguments: [("/odrers", true), ("/orders/*", true), ("/orders", false), ("orders", false), ("/refunds", false)])
    func misspelled(path: String, isNamed: Bool) async {
        let explorer = FaultExplorer { mock in
            mock.on(.POST, "/orders", .status(201))
            mock.on(.POST, "/refunds", .status(201))
        }
        let report = await explorer.explore { mock in
            _ = try await mock.service.POST("/orders").data().value
        } check: { run in
            try run.require(run.effects(.POST, path) <= 1, "twice")
        }
        #expect(report.problems.count == (isNamed ? 1 : 0))
        #expect(
            report.problems.allSatisfy { $0.contains("the effects of POST \(path), but no run has such a request") })
    }

    @Test("an outcome names the error, and other plans of a failure begin with other exchanges")
    func texts() async {
        let explorer = FaultExplorer { mock in mock.on(.where("any") { _ in true }, .status(200)) }
        let report = await explorer.explore { mock in
            _ = try await mock.service.GET("/a").data().value
            _ = try await mock.service.GET("/b").data().value
        } check: { run in
            try run.require(run.error == nil, "failed")
        }
        let failure = report.failures.first?.description ?? ""
        #expect(failure.contains("threw URLError cannotConnectToHost"))
        #expect(failure.contains("fails in the same way with: GET /b#1="))
        #expect(report.outcomes["threw WebServiceError unacceptableStatus"] ?? 0 > 0)
        #expect(
            report.description.contains("\(report.outcomes.values.reduce(0, +)) plans of faults in \(report.runs) runs")
        )
    }

    @Test("a loop of requests ends at the limit of exchanges")
    func endless() async {
        let report = await Self.explorer().explore { mock in
            while true { _ = try? await mock.service.GET("/a").data().value }
        } check: { (_: FaultRun<Void, Never>) in
        }
        #expect(
            report.problems == [
                "without faults, the code sends requests without end, or more than the budget allows"
            ])
    }

    @Test("a loop of requests with different paths ends at the limit of exchanges")
    func different() async {
        let report = await Self.explorer().explore { mock in
            for number in 0..<1_000_000 { _ = try await mock.service.GET("/a/\(number)").data().value }
        } check: { _ in
        }
        #expect(report.problems.first?.contains("more than the budget allows") == true)
    }

    @Test("a poll without end is named after an hour of the test clock")
    func overtime() async {
        let report = await Self.explorer().explore { mock in
            while true {
                _ = try await mock.service.GET("/a").data().value
                try await mock.service.clock.sleep(for: .seconds(60))
            }
        } check: { (_: FaultRun<Void, Never>) in
        }
        #expect(report.problems == ["without faults, the code takes more than an hour by the test clock"])
    }

    @Test("a random number in a path is named")
    func randomPath() async {
        let report = await Self.explorer().explore { mock in
            try await mock.service.GET("/a/\(UInt64.random(in: 0 ... .max))").data().value.count
        } check: { _ in
        }
        #expect(report.problems.first?.contains("a random number, an identifier or Date() in the URL") == true)
    }

    @Test("a random number in a path is no problem with a name for the exchange")
    func named() async {
        var explorer = Self.explorer()
        explorer.name = { "\($0.method) /a/{number}" }
        let report = await explorer.explore { mock in
            try await mock.service.GET("/a/\(UInt64.random(in: 0 ... .max))").data().value.count
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.exchanges == ["GET /a/{number}#1"])
        #expect(report.runs > 20)
    }

    @Test("a name for an exchange may contain '&'")
    func namedWithQuery() async throws {
        var explorer = Self.explorer()
        explorer.name = { "\($0.path)?size=1&page=2" }
        let report = await explorer.explore { mock in
            try await mock.service.GET("/a").data().value
        } check: { run in
            try run.require(run.error == nil, "failed")
        }
        let plan = FaultPlan("\(report.failures.first?.plan ?? FaultPlan())")
        #expect(plan == FaultPlan([.init("/a?size=1%26page=2#1", "refused")]))
        try await explorer.replay(plan) { mock in try? await mock.service.GET("/a").data().value }
    }

    @Test("a loop of requests does not keep another request waiting")
    func starvation() async throws {
        let run = try await Self.explorer().replay(FaultPlan()) { mock in
            let isOver = Mutex(false)
            let poll = Task(executorPreference: mock.clock?.executor) {
                while !isOver.withLock({ $0 }) { _ = try await mock.service.GET("/a").data().value }
            }
            _ = try await mock.service.POST("/b").data().value
            isOver.withLock { $0 = true }
            try await poll.value
        }
        #expect(run.end == .returned)
    }

    @Test("static state is named")
    func staticState() async {
        let isCached = Mutex(false)
        let report = await Self.explorer().explore { mock in
            let needsToken = isCached.withLock { cached in
                defer { cached = true }
                return !cached
            }
            if needsToken { _ = try await mock.service.POST("/token").data().value }
            return try await mock.service.GET("/a").data().value.count
        } check: { _ in
        }
        #expect(report.problems.first?.contains("static state") == true)
    }

    @Test("a thread that sends requests is driven like everything else")
    func threads() async {
        let report = await Self.explorer().explore { mock in
            _ = try await mock.service.GET("/a").data().value
            return await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    Task { continuation.resume(returning: try? await mock.service.GET("/b").data().value.count) }
                }
            }
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.exchanges == ["GET /a#1", "GET /b#1"])
    }

    @Test("code that sleeps for real is driven")
    func sleeps() async {
        let report = await Self.explorer().explore { mock in
            try await Task.sleep(for: .milliseconds(1))
            return try await mock.service.GET("/a").data().value.count
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.runs > 20)
    }

    @Test("a request after the end that only a fault causes is part of the run")
    func requestAfterFault() async {
        let report = await Self.explorer().explore { mock in
            do { _ = try await mock.service.GET("/a").data().value } catch {
                Task { try? await mock.service.POST("/log").data().value }
                throw error
            }
        } check: { run in
            try run.require(run.effects(.POST, "/log") == 0, "the failure is logged")
        }
        #expect(report.failures.map(\.message) == ["the failure is logged"])
        #expect(report.problems == [])
    }

    @Test("a run that is repeated because of a late request is none of the plans that did not run")
    func lateRequest() async {
        var budget = FaultExplorer<Void>.Budget()
        budget.runs = 3
        let refused = Fault.transport.filter { $0.name == "refused" }
        let explorer = FaultExplorer(faults: refused, budget: budget) { mock in
            mock.on(.GET, "/a", .status(204))
            mock.on(.POST, "/log", .status(204))
        }
        let report = await explorer.explore { mock in
            do { _ = try await mock.service.GET("/a").data().value } catch {
                Task {
                    usleep(20_000)
                    _ = try? await mock.service.POST("/log").data().value
                }
            }
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.remaining == 0)
    }

    @Test("requests after the end are part of the run")
    func later() async {
        let report = await Self.explorer().explore { mock in
            Task { try await mock.service.POST("/later").data().value }
            return try await mock.service.GET("/a").data().value.count
        } check: { run in
            try run.require(run.requests.contains { $0.name == "POST /later#1" }, "the later request is missing")
        }
        #expect(report.failures.isEmpty)
        #expect(report.problems == [])
    }

    @Test("stubs that cannot be created are named")
    func stubs() async {
        struct Missing: Error {}
        let report = await FaultExplorer { _ in throw Missing() }.explore { _ in
        } check: { _ in
        }
        #expect(report.problems == ["the stubs could not be created: Missing()"])
        let calls = Mutex(0)
        let later = await FaultExplorer { mock in
            let call = calls.withLock { count in
                count += 1
                return count
            }
            if call > 5 { throw Missing() }
            mock.on(.GET, "/a", 204)
        }.explore { mock in
            try await mock.service.GET("/a").data().value
        } check: { _ in
        }
        #expect(later.problems == ["the stubs could not be created: Missing()"])
        #expect(later.remaining > 0)
        let end = "the exploration could not continue; \(later.remaining) known plans did not run"
        #expect(later.description.hasSuffix(end))
    }

    @Test("a request without a stub is named")
    func noStub() async {
        let report = await FaultExplorer { mock in mock.on(.GET, "/a", 204) }.explore { mock in
            try await mock.service.GET("/b").data().value
        } check: { _ in
        }
        #expect(report.runs == 2)
        #expect(report.problems.first?.contains("no stub matches GET /b") == true)
    }

    @Test("a budget of runs, one of time and one of failures end an exploration")
    func budgets() async {
        func isNamed(_ limit: String, in report: FaultReport) -> Bool {
            let end = "the maximum \(limit) was reached; \(report.remaining) known plans did not run"
            return report.description.hasSuffix(end)
        }
        var budget = FaultExplorer<Void>.Budget()
        budget.runs = 10
        let few = await Self.explorer(budget).explore {
            try await $0.service.GET("/a").data().value
        } check: { _ in
        }
        #expect(few.runs == 10)
        #expect(few.remaining > 0)
        #expect(isNamed("number of runs", in: few))
        budget = .init()
        budget.time = .zero
        let none = await Self.explorer(budget).explore {
            try await $0.service.GET("/a").data().value
        } check: { _ in
        }
        #expect(none.runs == 2)
        #expect(none.remaining > 0)
        #expect(isNamed("duration", in: none))
        budget = .init()
        budget.failures = 1
        let failed = await Self.explorer(budget).explore {
            try await $0.service.GET("/a").data().value
        } check: { run in
            try run.require(run.error == nil, "failed")
        }
        #expect(failed.failures.count == 1)
        #expect(failed.remaining == none.remaining - 1)
        #expect(isNamed("number of failures", in: failed))
    }

    @Test("a plan that does not exist, or does not occur, is an error of a replay")
    func replay() async throws {
        let explorer = Self.explorer()
        await #expect(throws: FaultViolation("the fault 'gone' of the plan 'GET /a#1=gone' does not exist")) {
            try await explorer.replay("GET /a#1=gone") { try await $0.service.GET("/a").data().value }
        }
        await #expect(throws: FaultViolation.self) {
            try await explorer.replay("GET /b#1=lost") { try await $0.service.GET("/a").data().value }
        }
        await #expect(throws: FaultViolation.self) { try await explorer.replay("nonsense") { _ in } }
        let step = "GET /v1.2=lost"
        await #expect(
            throws: FaultViolation("the step '\(step)' of '\(step)' names no exchange such as 'GET /path#1'")
        ) {
            try await explorer.replay(FaultPlan(step)) { _ in }
        }
        let run = try await explorer.replay("GET /a#1=cut@2") { try await $0.service.GET("/a").data().value }
        #expect((run.error as? URLError)?.code == .networkConnectionLost)
    }

    @Test("a trap in a run leaves the plan in progress behind")
    func traps() async throws {
        let result = await #expect(processExitsWith: .failure, observing: []) {
            let explorer = FaultExplorer { mock in mock.on(.GET, "/a", .json(["id": 1])) }
            _ = await explorer.explore(fileID: "Traps", line: 1) { mock in
                do { _ = try await mock.service.GET("/a").data().value } catch { fatalError("trapped") }
            } check: { _ in
            }
        }
        _ = result
        let report = await Self.explorer().explore(fileID: "Traps", line: 1) { mock in
            try await mock.service.GET("/a").data().value
        } check: { _ in
        }
        #expect(
            report.problems == [
                "the process of an earlier exploration ended during the plan 'GET /a#1=refused'"
            ])
    }
}
