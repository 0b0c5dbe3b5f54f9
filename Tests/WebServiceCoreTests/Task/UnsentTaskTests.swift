#if DEBUG
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Exclusive, because the reports are those of the whole process.
@Suite("Reports of tasks that are not sent", .exclusive)
struct UnsentTaskTests {
    /// Returns the reports of the tasks that a closure releases.
    private func reports(_ body: (WebService) async throws -> Void) async rethrows -> [String] {
        let reports = Collected<String>()
        let before = UnsentTasks.report.withLock { report in
            defer { report = { reports.add($0) } }
            return report
        }
        defer { UnsentTasks.report.withLock { $0 = before } }
        try await body(WebService.make(HandSession(text: "{}")))
        return reports.values
    }

    @Test("A configured task is reported with its method, its URL without secrets, and the line that created it")
    func setter() async {
        let line: UInt = #line + 2
        let reports = await reports { service in
            service.POST("/orders;v=canary").setQueryParameters(["token": "canary"]).setJSON(["id": 1])
        }
        let place = "WebServiceCoreTests/UnsentTaskTests.swift:\(line)"
        #expect(
            reports == [
                "WebService: POST https://h/v1/orders, created at \(place), was deallocated without being sent; "
                    + "call resume() or await its value"
            ])
    }

    @Test("Each method that creates a task notes the line")
    func methods() async {
        let first: UInt = #line + 2
        let reports = await reports { service in
            _ = service.GET("/a")
            _ = service.PUT("/a").data()
            _ = service.PATCH("/a").response { _, _ in }
            _ = service.DELETE("/a").events()
            _ = service.QUERY("/a").stream()
            _ = service.HEAD("/a").suspend()
            _ = service.OPTIONS("/a").decode(Int.self).map { $0 + 1 }
            _ = service.sessionTask(request: service.request(.GET, path: "/a"))
        }
        #expect(reports.count == 8)
        for (index, report) in reports.enumerated() {
            #expect(report.contains("UnsentTaskTests.swift:\(first + UInt(index)), "))
        }
    }

    @Test("A task that was resumed, awaited, cancelled or read is not reported, nor is one of the library")
    func used() async throws {
        let reports = try await reports { service in
            await service.GET("/a").resume().finished()
            _ = try await service.GET("/a").data().value
            for try await _ in service.GET("/a").lines() {}
            service.GET("/a").cancel()
            let request = service.GET("/a").setTimeout(.seconds(1)).request
            try await service.sessionTask(request: request).empty().value
            _ = PassiveTask<Int>().task
        }
        #expect(reports.isEmpty)
    }

    @Test("Reports are lines on standard error, unless they are switched off")
    func standardError() throws {
        let before = WebService.reportsUnsentTasks
        defer { WebService.reportsUnsentTasks = before }
        let (pipe, saved) = (Pipe(), dup(STDERR_FILENO))
        dup2(pipe.fileHandleForWriting.fileDescriptor, STDERR_FILENO)
        for isOn in [true, false] {
            WebService.reportsUnsentTasks = isOn
            #expect(WebService.reportsUnsentTasks == isOn)
            _ = WebService.make().GET(isOn ? "/reported" : "/silent")
        }
        dup2(saved, STDERR_FILENO)
        close(saved)
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try #require(try pipe.fileHandleForReading.readToEnd()), as: UTF8.self)
        #expect(text.contains("WebService: GET https://h/v1/reported, created at "))
        #expect(text.contains("call resume() or await its value\n"))
        #expect(!text.contains("/silent"))
    }
}
#endif
