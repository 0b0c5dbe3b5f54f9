import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What an exploration concludes from its runs.
@Suite(.permit) struct ConclusionTests {
    @Test("code that sends no request, in a task that the clock does not count, has its turn in each run")
    func silentTask() async {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/a", .status(204))
            mock.on(.GET, "/b", .status(204))
        }
        let report = await explorer.explore { mock in
            let isWarm = Mutex(false)
            Task.detached {
                usleep(2_000)
                isWarm.withLock { $0 = true }
            }
            _ = try await mock.service.GET("/a").data().value
            if isWarm.withLock({ $0 }) { _ = try await mock.service.GET("/b").data().value }
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.exchanges == ["GET /a#1", "GET /b#1"])
    }

    @Test("an alarm that code sets after a wait in real time is waited for")
    func lateAlarm() async {
        var budget = FaultExplorer<Void>.Budget()
        budget.runs = 2
        let explorer = FaultExplorer(budget: budget) { mock in mock.on(.GET, "/a", .status(204)) }
        let report = await explorer.explore { mock in
            let clock = mock.clock
            try await Task.detached {
                try await Task.sleep(for: .milliseconds(100))
                try await clock?.sleep(for: .seconds(5))
            }.value
            _ = try await mock.service.GET("/a").data().value
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.exchanges == ["GET /a#1"])
    }

    @Test(
        "the effects of a request that is received twice are those of both responses",
        arguments: [([204, 404], 1), ([503, 200], 1), ([200, 200], 2), ([404, 404], 0)])
    func duplicated(statuses: [Int], effects: Int) async throws {
        let explorer = FaultExplorer { mock in mock.on(.DELETE, "/cart", statuses.map { MockResponse(statusCode: $0) })
        }
        let run = try await explorer.replay("DELETE /cart#1=duplicated") { mock in
            try await mock.service.DELETE("/cart").data().validateNothing().value
        }
        #expect(run.effects(.DELETE, "/cart") == effects)
    }

    @Test("an empty part of a body is no position of a cut")
    func emptyPart() async {
        let explorer = FaultExplorer { mock in
            let parts = [Data(), Data("ale".utf8), Data()]
            let chunks = AsyncStream { feed in
                for part in parts { feed.yield(part) }
                feed.finish()
            }
            mock.on(.GET, "/a", MockResponse(statusCode: 200, chunks: chunks))
        }
        let report = await explorer.explore { mock in
            try await mock.service.GET("/a").data().value
        } check: { _ in
        }
        #expect(report.problems == [])
        #expect(report.remaining == 0)
    }

    @Test("a JSON body that is produced in parts is replaced", arguments: ["empty", "truncated"])
    func producedBody(fault: String) async throws {
        let explorer = FaultExplorer { mock in
            var response = MockResponse(statusCode: 200) { body in try body.write(Data(#"{"id":1}"#.utf8)) }
            response.headers[.contentType] = "application/json"
            mock.on(.GET, "/a", response)
        }
        let run = try await explorer.replay(FaultPlan("GET /a#1=\(fault)")) { mock in
            try await mock.service.GET("/a").data().value.count
        }
        #expect(run.output == 0)
    }

    @Test("messages that are sent while another one waits are lost one by one")
    func severalMessages() async throws {
        let explorer = FaultExplorer { mock in
            let model = Received()
            mock.on(
                .GET, "/socket",
                .webSocket { socket in
                    while case .text(let text)? = try await socket.next() { model.texts.withLock { $0.append(text) } }
                })
            return model
        }
        let run = try await explorer.replay("GET /socket#1.3=cut") { mock in
            let socket = try await mock.service.webSocket("/socket")
            for text in ["ale", "ox", "rye"] { try await socket.send(text) }
            try? await socket.close()
        }
        #expect(run.model.texts.withLock { $0 } == ["ale", "ox"])
    }

    @Test("plans that are given are the only ones")
    func givenPlans() async {
        var explorer = FaultExplorer { mock in mock.on(.GET, "/a", .text("ale")) }
        explorer.plans = ["GET /a#1=cut@1"]
        let report = await explorer.explore { mock in
            for _ in 0..<2 { _ = try? await mock.service.GET("/a").data().value }
        } check: { _ in
        }
        #expect(report.outcomes == ["returned a value": 1])
    }

    @Test("messages of a connection that was opened before a log-out are no requests with its credential")
    func messages() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.POST, "/logout", .status(204))
            mock.on(.GET, "/socket", .webSocket { socket in while try await socket.next() != nil {} })
        }
        let run = try await explorer.replay(FaultPlan()) { mock in
            let socket = try await mock.service.webSocket("/socket") { $0.headers["Authorization"] = "Bearer 1" }
            _ = try await mock.service.POST("/logout").data().value
            try await socket.send("bye")
        }
        try run.require(.noCredential(after: .POST, "/logout"))
    }

    @Test("a fault that has no effect at a message does not occur")
    func faultOfMessage() async {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/socket", .webSocket { socket in while try await socket.next() != nil {} })
        }
        await #expect(throws: FaultViolation.self) {
            try await explorer.replay("GET /socket#1.1=500") { mock in
                try await mock.service.webSocket("/socket").send("ale")
            }
        }
    }

    @Test("a response after the timeout is recorded as a timeout, and a handshake without a response as nothing")
    func received() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/a", .text("ale"))
            mock.on(.GET, "/socket", .webSocket { _ in })
        }
        for seconds in [15, 30] {
            let slow = try await explorer.replay("GET /a#1=slow") { mock in
                try await mock.service.GET("/a").setTimeout(.seconds(seconds)).data().value
            }
            #expect((slow.error as? URLError)?.code == .timedOut)
            #expect(slow.requests.first?.status == nil)
            #expect(slow.requests.first?.error == "URLError timedOut")
        }
        let late = try await explorer.replay("GET /a#1=slow") { mock in
            try? await mock.service.GET("/a").setDeadline(.seconds(10)).data().value
        }
        #expect(late.requests.first?.status == nil)
        let cut = try await explorer.replay("GET /a#1=cut@1") { mock in
            try? await mock.service.GET("/a").data().value
        }
        #expect(cut.requests.first?.status == nil)
        #expect(cut.requests.first?.error == "URLError networkConnectionLost")
        let silent = try await explorer.replay("GET /socket#1=stalled") { mock in
            _ = try? await mock.service.webSocket("/socket").message(within: .seconds(1))
        }
        #expect(silent.requests.first?.status == nil)
    }

    @Test("the line for a regression test can be pasted for a failure without faults, and for a path with '&'")
    func pasted() async throws {
        let explorer = FaultExplorer { mock in mock.on(.GET, "/a&b", .status(200)) }
        let report = await explorer.explore { mock in
            try await mock.service.GET("/a&b").data().value
        } check: { run in
            try run.require(run.error == nil, "failed")
            try run.require(!run.plan.steps.isEmpty, "without faults")
        }
        #expect(report.failures.map { "\($0.plan)" } == ["no fault", "GET /a%26b#1=refused"])
        for failure in report.failures {
            _ = try await explorer.replay(FaultPlan("\(failure.plan)")) { mock in
                try await mock.service.GET("/a&b").data().value
            }
        }
    }

    @Test("a failure without faults that the second run does not show is not repeatable")
    func onlyOnce() async {
        let explorer = FaultExplorer { mock in mock.on(.GET, "/a", .status(200)) }
        let checks = Mutex(0)
        let report = await explorer.explore { mock in
            try await mock.service.GET("/a").data().value
        } check: { run in
            let isFirst = checks.withLock { count in
                count += 1
                return count == 1
            }
            try run.require(!isFirst, "failed once")
        }
        #expect(report.failures.first?.difference?.contains("keep state between runs") == true)
    }

    @Test("the timeline shows whether a message arrived")
    func timeline() async throws {
        let explorer = FaultExplorer { mock in
            mock.on(.GET, "/socket", .webSocket { socket in while try await socket.next() != nil {} })
        }
        let run = try await explorer.replay("GET /socket#1.2=cut") { mock in
            let socket = try await mock.service.webSocket("/socket")
            try await socket.send("ale")
            try? await socket.send("ox")
        }
        #expect(run.trace.description.contains("GET /socket#1.1  arrived"))
        #expect(run.trace.description.contains("GET /socket#1.2  [cut]  did not arrive"))
    }
}
