import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

@Suite("Races between cancel and completion", .serialized, .permit)
struct CancelRaceTests {
    /// Resumes and cancels tasks on different threads and counts the outcomes of each task.
    private func race(_ count: Int, _ service: WebService, cancelFirst: Bool = false) async -> (
        answered: Int, cancelled: Int, wrong: Int
    ) {
        let ends = (0..<count).map { _ in Ends() }
        let drained = Collected<Int>()
        DispatchQueue.global().async {
            DispatchQueue.concurrentPerform(iterations: count) { index in
                let end = ends[index]
                let task = service.GET("/x")
                    .response { _, _ in end.answered.add(1, ordering: .relaxed) }
                    .responseError { error in
                        if (error as? URLError)?.code == .cancelled {
                            end.cancelled.add(1, ordering: .relaxed)
                        } else {
                            end.failed.add(1, ordering: .relaxed)
                        }
                    }
                    .metricsCollected { _ in drained.add(index) }
                if cancelFirst {
                    DispatchQueue.global().async { task.cancel() }
                    task.resume()
                } else {
                    task.resume()
                    if index % 2 == 0 { task.cancel() } else { DispatchQueue.global().async { task.cancel() } }
                }
            }
        }
        await drained.wait(for: count)
        var result = (answered: 0, cancelled: 0, wrong: 0)
        for end in ends {
            switch (
                end.answered.load(ordering: .relaxed), end.cancelled.load(ordering: .relaxed),
                end.failed.load(ordering: .relaxed)
            ) {
            case (1, 0, 0): result.answered += 1
            case (0, 1, 0): result.cancelled += 1
            default: result.wrong += 1
            }
        }
        return result
    }

    private final class Ends: Sendable {
        let answered = Atomic<Int>(0)
        let cancelled = Atomic<Int>(0)
        let failed = Atomic<Int>(0)
    }

    /// The divisor of the number of tasks; a sanitized build runs a tenth of them.
    static let scale = isSanitized ? 10 : 1

    @Test(
        "Each of many tasks cancelled while a mock session responds ends exactly once"
    )
    func mockSession() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let count = amount(1_000, thorough: 10_000, soak: 50_000) / Self.scale
        for cancelFirst in [false, true] {
            let result = await race(count, .make(session), cancelFirst: cancelFirst)
            #expect(result.wrong == 0)
            #expect(result.answered + result.cancelled == count)
            #expect(result.cancelled > 0)
        }
    }

    @Test("Each of many tasks cancelled over real sockets ends exactly once")
    func sockets() async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        let count = amount(1_000, thorough: 10_000) / Self.scale
        let service = WebService(baseURLString: server.baseURLString)
        let result = await race(count, service)
        #expect(result.wrong == 0)
        #expect(result.answered + result.cancelled == count)
        let after = Collected<Int>()
        service.GET("/after").response { _, response in after.add((response as? HTTPURLResponse)?.statusCode ?? 0) }
            .resume()
        #expect(await after.wait() == [200])
    }
}
