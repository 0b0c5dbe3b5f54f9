import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceCurl

@Suite("Curl session: Swift tasks on the thread of the loop", .permit)
struct LoopExecutorTests {
    typealias Waiter = CheckedContinuation<Void, Never>

    /// Set on the thread of a test.
    private static let isOwn = ThreadFlag()

    /// For each task, in the order in which they continue: whether it does so on the own thread.
    private let continued = Collected<Bool>()

    /// Starts a task that waits, on the thread of a loop. The task is suspended when the thread
    /// ends, so that a call that resumes it does so on its executor.
    private func startTask(_ finally: @escaping @Sendable () -> Void = {}) throws -> Waiter {
        let waiters = Collected<Waiter>()
        let thread = try JoinableThread { [continued] in
            LoopExecutor.allowJobs()
            Task(executorPreference: LoopExecutor.shared) {
                await withCheckedContinuation { waiters.add($0) }
                continued.add(Self.isOwn.isSet)
                finally()
            }
        }
        thread.join()
        return try #require(waiters.values.first)
    }

    /// Resumes a task on a thread.
    ///
    /// - Returns: What ``continued`` contains when the call that resumes has returned.
    private func resume(_ waiter: Waiter, isLoop: Bool) throws -> [Bool] {
        let atReturn = Collected<[Bool]>()
        let thread = try JoinableThread { [continued] in
            if isLoop { LoopExecutor.allowJobs() }
            Self.isOwn.isSet = true
            waiter.resume()
            atReturn.add(continued.values)
        }
        thread.join()
        return atReturn.values[0]
    }

    @Test("A task that the thread of a loop resumes continues within the call, on that thread")
    func onLoop() async throws {
        let waiter = try startTask()
        #expect(try resume(waiter, isLoop: true) == [true])
    }

    @Test("A task that another thread resumes continues on the handler pool")
    func elsewhere() async throws {
        let waiter = try startTask()
        _ = try resume(waiter, isLoop: false)
        #expect(await continued.wait() == [false])
    }

    @Test("A task that is resumed by such a task continues on the handler pool, so that jobs are not nested")
    func nested() async throws {
        let second = try startTask()
        let first = try startTask { second.resume() }
        _ = try resume(first, isLoop: true)
        #expect(await continued.wait(for: 2) == [true, false])
    }
}
