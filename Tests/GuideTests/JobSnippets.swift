import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

// The snippets of the recipe "Stop a server without losing requests" in the Cookbook.

func work(
    with service: WebService, until stop: some AsyncSequence<Void, Never> & Sendable
) async {
    let (jobs, intake) = AsyncStream.makeStream(of: Job.self)
    let polling = Task {
        while !Task.isCancelled {
            do {
                intake.yield(try await service.GET("/jobs/next").decode(Job.self).value)
            } catch {
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }
    Task {
        for await _ in stop { break }
        polling.cancel()  // cancels the request for the next job
        intake.finish()
    }
    await withDiscardingTaskGroup { group in
        for await job in jobs { group.addTask { await job.run(with: service) } }
    }
    await service.finish(within: .seconds(20))
}

/// Returns a sequence with an element for each SIGTERM and each Ctrl-C.
func terminations() -> AsyncStream<Void> {
    AsyncStream { continuation in
        nonisolated(unsafe) let sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)  // otherwise, the signal ends the process
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
        continuation.onTermination = { _ in sources.forEach { $0.cancel() } }
    }
}

struct Job: Decodable, Sendable {
    let id: Int

    func run(with service: WebService) async {
        do {
            let input = try await service.GET("/inputs/{id}", pathParameters: ["id": id]).string().value
            try await service.PUT("/results/{id}", pathParameters: ["id": id]).setJSON(input).empty().value
        } catch {
            Issue.record(error)
        }
    }
}

@Suite("The snippets about jobs", .permit)
struct JobSnippets {
    @Test("Jobs end with all of their requests after the source of the jobs was stopped")
    func jobs() async throws {
        let mock = MockSession()
        let service = WebService(baseURLString: "https://mock.test")
        service.session = mock
        let (stop, signal) = AsyncStream.makeStream(of: Void.self)
        let stops = Collected<Void>()
        mock.on(.GET, "/jobs/next", [.text("{\"id\": 1}"), .text("{\"id\": 2}"), .text("").after(.seconds(600))])
        mock.on(.GET, "/inputs/{id}") { _ in
            await eventually { !stops.values.isEmpty }
            return .text("ale")
        }
        mock.on(.PUT, "/results/{id}", .status(204))
        let worker = Task { await work(with: service, until: stop) }
        await eventually { mock.receivedRequests.count { $0.path.hasPrefix("/inputs") } == 2 }
        signal.yield()
        await eventually("the request for the next job is cancelled") { service.exchanges.count == 2 }
        stops.add(())
        await worker.value
        #expect(Set(mock.receivedRequests.filter { $0.method == .PUT }.map(\.path)) == ["/results/1", "/results/2"])
        let later = await #expect(throws: WebServiceError.self) { try await service.GET("/inputs/3").empty().value }
        #expect(later?.code == .serviceInvalidated)
    }

    #if os(Linux)
    @Test("SIGTERM is an element of the sequence, and does not end the process")
    func termination() async throws {
        let output = Pipe()
        let process = ChildProcess(
            URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path,
            ["--testing-library", "swift-testing", "--filter", "SignalSnippets"],
            environment: ProcessInfo.processInfo.environment.merging(["WEBSERVICE_CHILD": "signals"]) { $1 },
            input: .null, output: .pipe(output), errors: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        #expect(status == 0, "\(text)")
        #expect(text.contains("Test run with 1 test in 1 suite passed"), "\(text)")
    }
    #endif
}

/// Runs in a process of its own, which then ignores the signals.
@Suite(
    "The snippet about signals",
    .enabled(if: ProcessInfo.processInfo.environment["WEBSERVICE_CHILD"] == "signals", "run by another suite"))
struct SignalSnippets {
    @Test func sequence() async {
        let signals = terminations()
        // A source receives no signal before it is registered.
        let sender = Task {
            while !Task.isCancelled {
                kill(getpid(), SIGTERM)
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        var iterator = signals.makeAsyncIterator()
        #expect(await iterator.next() != nil)
        sender.cancel()
    }
}
