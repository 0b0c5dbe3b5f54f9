import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// Swift tasks on the event loop of a session.
@Suite("Curl session: executor", .permit)
struct CurlExecutorTests {
    private static var threadNumber: UInt { UInt(bitPattern: pthread_self().hashValue) }

    private func service(
        _ session: CurlSession? = nil, _ handler: MockServer.Handler? = nil
    ) throws -> (WebService, CurlSession, MockServer) {
        let server = try MockServer.forTest(handler ?? { _ in MockResponse("beer") })
        let session = try session ?? CurlSession()
        return (WebService(server, session), session, server)
    }

    @Test("A task runs on one thread, also after its requests")
    func thread() async throws {
        let (service, session, server) = try service()
        let threads = try await Task(executorPreference: session.executor) {
            var threads = [Self.threadNumber]
            for _ in 0..<20 {
                _ = try await service.GET("/").string().value
                threads.append(Self.threadNumber)
            }
            return Set(threads)
        }.value
        #expect(threads.count == 1)
        #expect(!threads.contains(Self.threadNumber))
        withExtendedLifetime(server) {}
    }

    @Test("All requests of a group of child tasks complete")
    func group() async throws {
        let (service, session, server) = try service { request in MockResponse(request.path) }
        let paths = await Task(executorPreference: session.executor) {
            await withTaskGroup(of: String?.self) { group in
                for number in 0..<200 {
                    group.addTask { try? await service.GET("/\(number)").string().value }
                }
                return await group.reduce(into: Set<String>()) { $0.insert($1 ?? "") }
            }
        }.value
        #expect(paths == Set((0..<200).map { "/\($0)" }))
        withExtendedLifetime(server) {}
    }

    @Test("Handlers, closures of steps and interceptors do not run on the loop")
    func customCode() async throws {
        let (service, session, server) = try service()
        let threads = Collected<UInt>()
        service.interceptors = [
            .closure { request, next in
                threads.add(Self.threadNumber)
                return try await next(request)
            }
        ]
        let loop = try await Task(executorPreference: session.executor) {
            let task = service.GET("/").response { _, _ in threads.add(Self.threadNumber) }
            _ = try await task.string().map { text in
                threads.add(Self.threadNumber)
                return text
            }.value
            return Self.threadNumber
        }.value
        #expect(threads.values.count == 3)
        #expect(!threads.values.contains(loop))
        withExtendedLifetime(server) {}
    }

    @Test("Code that blocks delays the requests of the session until it returns")
    func blocking() async throws {
        let (service, session, server) = try service()
        let (isBlocking, gate) = (Once<Bool>(), DispatchSemaphore(value: 0))
        func block() { gate.wait() }
        let blocked = Task(executorPreference: session.executor) {
            isBlocking.set(true)
            block()
        }
        _ = await isBlocking.value
        let delayed = service.GET("/delayed").string().resume()
        let (other, otherSession, otherServer) = try self.service()
        #expect(try await other.GET("/").string().value == "beer")
        #expect(server.receivedRequests.isEmpty)
        gate.signal()
        #expect(try await delayed.value == "beer")
        await blocked.value
        withExtendedLifetime((otherSession, otherServer)) {}
    }

    @Test("A part of a task that runs for more than 50 ms is reported")
    func report() {
        let reports = Collected<String>()
        let report = LongJobs.report.withLock { report in
            defer { report = { reports.add($0) } }
            return report
        }
        defer { LongJobs.report.withLock { $0 = report } }
        for duration in [50, 51] { LongJobs.check(.milliseconds(duration)) }
        // On a busy machine, other tests may report their tasks.
        let own = reports.values.filter { $0.contains(" ran for 0.05 ") || $0.contains(" ran for 0.051 ") }
        #expect(own.count == 1)
        #expect(own.first?.hasPrefix("a task on CurlSession.executor ran for 0.051 seconds without suspending") == true)
    }

    @Test("An error and the end of a task do not end the loop")
    func errors() async throws {
        let (service, session, server) = try service { request in
            request.path == "/lost" ? MockResponse("", wire: .disconnect) : MockResponse("beer")
        }
        for _ in 0..<3 {
            let failing = Task(executorPreference: session.executor) { try await service.GET("/lost").string().value }
            await #expect(throws: URLError.self) { try await failing.value }
        }
        #expect(try await service.GET("/").string().value == "beer")
        withExtendedLifetime(server) {}
    }

    @Test("A task stays on one loop, whatever the number of loops", arguments: 1...4)
    func loops(count: Int) async throws {
        let (service, session, server) = try service(CurlSession { $0.loops = count })
        var threads: Set<UInt> = []
        for _ in 0..<count {
            let task = Task(executorPreference: session.executor) {
                var threads = [Self.threadNumber]
                for _ in 0..<5 {
                    _ = try await service.GET("/").string().value
                    threads.append(Self.threadNumber)
                }
                return Set(threads)
            }
            let own = try await task.value
            #expect(own.count == 1)
            threads.formUnion(own)
        }
        #expect(threads.count == count)
        withExtendedLifetime(server) {}
    }

    @Test("After the session is closed, tasks on its executor continue, and their requests fail")
    func closed() async throws {
        let (service, session, server) = try service()
        let (hasResponse, gate) = (Once<Bool>(), Once<Bool>())
        let task = Task(executorPreference: session.executor) {
            _ = try await service.GET("/").string().value
            hasResponse.set(true)
            _ = await gate.value
            return await service.GET("/").string().result.code
        }
        _ = await hasResponse.value
        session.close(.cancelling)
        gate.set(true)
        #expect(try await task.value == .sessionClosed)
        let late = Task(executorPreference: session.executor) { await service.GET("/").string().result.code }
        #expect(await late.value == .sessionClosed)
        #expect(server.receivedRequests.count == 1)
    }

    @Test("A task on the executor can close the session, whose other requests are cancelled")
    func closingOnLoop() async throws {
        let (service, session, server) = try service { request in
            request.path == "/silent" ? MockResponse("", wire: .noResponse) : MockResponse("beer")
        }
        let silent = service.GET("/silent").string().resume()
        await eventually { server.receivedRequests.count == 1 }
        await Task(executorPreference: session.executor) { session.close(.cancelling) }.value
        #expect(await silent.result.urlErrorCode == .cancelled)
    }

    @Test("Tasks on the executors of two sessions may close both sessions")
    func closingEachOther() async throws {
        let sessions = [try CurlSession { $0.loops = 2 }, try CurlSession()]
        let executors = sessions.flatMap { session in [session.executor, session.executor] }
        await withTaskGroup { group in
            for executor in executors {
                group.addTask(executorPreference: executor) { for session in sessions { session.close() } }
            }
        }
        for session in sessions { session.close(.cancelling) }
    }

    @Test("Tasks, service and session may be released in any order")
    func released() async throws {
        let server = try MockServer.forTest { _ in MockResponse("beer") }
        for round in 0..<20 {
            let gate = Once<Bool>()
            let task: Task<Int, Never>
            do {
                let session = try CurlSession()
                let service = WebService(server, session)
                task =
                    round % 2 == 0
                    // This task does not retain the session.
                    ? Task(executorPreference: session.executor) {
                        _ = await gate.value
                        return 4
                    }
                    : Task(executorPreference: session.executor) {
                        _ = await gate.value
                        return (try? await service.GET("/").string().value)?.count ?? 0
                    }
            }
            gate.set(true)
            #expect(await task.value == 4)
        }
    }

    /// An executor that cancels a Swift task before one of its jobs. Another one runs the jobs.
    private final class CancellingExecutor: TaskExecutor {
        private struct State {
            var task: Task<Void, Never>?
            var count = 0
        }

        private let base: any TaskExecutor
        private let part: Int
        private let state = Mutex(State())

        init(_ base: any TaskExecutor, part: Int) { (self.base, self.part) = (base, part) }

        var count: Int { state.withLock { $0.count } }

        func cancelling(_ task: Task<Void, Never>) { state.withLock { $0.task = task } }

        func enqueue(_ job: consuming ExecutorJob) {
            let task = state.withLock { state in
                state.count += 1
                return state.count == part ? state.task : nil
            }
            task?.cancel()
            base.enqueue(job)
        }
    }

    @Test("If a task is cancelled at any suspension, each request ends once, with its value or as cancelled")
    func cancellation() async throws {
        let (service, session, server) = try service()
        var hasEnded = false
        var part = 1
        while !hasEnded, part < 200 {
            let executor = CancellingExecutor(session.executor, part: part)
            let (results, isReady) = (Collected<String>(), Once<Bool>())
            let task = Task(executorPreference: executor) {
                _ = await isReady.value
                for _ in 0..<2 {
                    let result = await service.GET("/").string().result
                    results.add((try? result.get()) ?? "\(result.urlErrorCode?.rawValue ?? 0)")
                }
            }
            executor.cancelling(task)
            isReady.set(true)
            await task.value
            #expect(results.values.count == 2)
            #expect(Set(results.values).isSubset(of: ["beer", "-999"]), "part \(part)")
            hasEnded = executor.count < part
            part += 1
        }
        #expect(hasEnded)
        #expect(try await service.GET("/").string().value == "beer")
        withExtendedLifetime(server) {}
    }
}
