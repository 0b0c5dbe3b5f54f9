import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

@Suite("Finishing an outbox", .permit)
struct OutboxFinishTests {
    private let fixture = OfflineFixture()
    private var clock: TestClock { fixture.clock }
    private var mock: MockService { fixture.mock }

    private func post(_ path: String) -> Request { fixture.service.request(.POST, path: path) }

    /// Starts to finish the outbox, and returns when it refuses submissions.
    private func finish(_ outbox: Outbox, within limit: Duration = .seconds(60)) async -> Task<Bool, Never> {
        let task = Task(executorPreference: clock.executor) { await outbox.finish(within: limit) }
        await eventually { outbox.state.withLock(\.isEnding) }
        return task
    }

    /// Returns whether another process may take over.
    private func isReleased(_ outbox: Outbox) -> Bool { outbox.state.withLock(\.isReleased) }

    private func paths(_ outbox: Outbox) async -> [String] {
        var paths: [String] = []
        for entry in await outbox.entries {
            guard let request = try? await outbox.request(of: entry.id) else { continue }
            paths.append(request.url?.path ?? "")
        }
        return paths
    }

    private func submissionError(_ outbox: Outbox) async -> WebServiceError? {
        await #expect(throws: WebServiceError.self) { try await outbox.submit(post("/later")) }
    }

    @Test("Without requests in flight, it closes the outbox at once")
    func idle() async throws {
        let outbox = try await fixture.open()
        #expect(await outbox.finish(within: .seconds(1)))
        #expect(await submissionError(outbox)?.code == .outboxClosed)
        #expect(isReleased(outbox))
    }

    @Test("A request in flight ends, no other begins, and the next outbox sends the rest")
    func inFlight() async throws {
        mock.on(.POST, "/a/{n}", MockResponse(statusCode: 204).after(.seconds(10)))
        let outbox = try await fixture.open()
        let updates = outbox.updates
        for number in 0..<3 { try await outbox.submit(post("/a/\(number)"), entity: "a") }
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        #expect(await submissionError(outbox)?.code == .outboxClosed)
        outbox.retry()
        await clock.advance(by: .seconds(10))
        #expect(await finishing.value)
        #expect(fixture.paths == ["/a/0"])
        #expect(try fixture.entryFiles().count == 2)
        var last: [Outbox.Entry.State] = []
        for await case .entry(let entry) in updates { last.append(entry.state) }  // the sequence ends
        #expect(last == [.waiting, .sending, .waiting, .waiting, .sent])

        let next = try await fixture.open()
        await clock.advance(by: .seconds(100))
        #expect(fixture.paths == ["/a/0", "/a/1", "/a/2"])
        #expect(await next.entries == [])
    }

    @Test("A retry of the service is sent")
    func retry() async throws {
        mock.service.interceptors = [.retry()]
        mock.on(.PUT, "/a", [.status(503), .status(204)])
        let outbox = try await fixture.open()
        try await outbox.submit(mock.service.request(.PUT, path: "/a"))
        await eventually { fixture.paths.count == 1 }
        let finishing = await finish(outbox)
        await clock.advance(by: .seconds(30))
        #expect(await finishing.value)
        #expect(fixture.paths == ["/a", "/a"])
        #expect(try fixture.entryFiles() == [])
    }

    @Test("A temporary failure is not followed by another attempt")
    func temporaryFailure() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 503).after(.seconds(10)))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        await clock.advance(by: .seconds(1_000))
        #expect(await finishing.value)
        #expect(fixture.paths == ["/a"])
        #expect(await paths(outbox) == ["/a"])
    }

    @Test("The response is stored, and the next outbox delivers it")
    func response() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 201, data: Data("7".utf8)).after(.seconds(10)))
        let outbox = try await fixture.open()
        let id = try await outbox.submit(post("/a"), storesResponse: true)
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        await clock.advance(by: .seconds(10))
        #expect(await finishing.value)
        let next = try await fixture.open()
        #expect(try await next.response(of: id)?.response.data == Data("7".utf8))
    }

    @Test("A decision is waited for and counts, whether it begins before or during the call", arguments: [false, true])
    func decision(_ beginsBefore: Bool) async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 404).after(beginsBefore ? .zero : .seconds(10)))
        let (began, turn) = (Collected<Int>(), Collected<Int>())
        let outbox = try await fixture.open { _ in
            began.add(0)
            await turn.wait()
            return .drop
        }
        try await outbox.submit(post("/a"))
        if beginsBefore { await began.wait() } else { await clock.advance(by: .zero) }
        let finishing = await finish(outbox)
        let advance = Task { [clock] in await clock.advance(by: .seconds(10)) }
        await began.wait()
        #expect(!isReleased(outbox))
        turn.add(0)
        _ = await advance.value
        #expect(await finishing.value)
        #expect(try fixture.entryFiles() == [])
    }

    @Test("A replacement is stored, and sent the next time")
    func replacement() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 409).after(.seconds(10)))
        mock.on(.POST, "/b", .status(204))
        let replacement = post("/b")
        let outbox = try await fixture.open { _ in .replace(replacement) }
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        await clock.advance(by: .seconds(10))
        #expect(await finishing.value)
        #expect(fixture.paths == ["/a"])
        let next = try await fixture.open()
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a", "/b"])
        #expect(await next.entries == [])
    }

    @Test("At the limit, what is in flight is cancelled, and its entry is sent the next time")
    func limit() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 204).after(.seconds(10)))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let finishing = await finish(outbox, within: .seconds(5))
        await clock.advance(by: .seconds(5))
        #expect(await finishing.value == false)
        #expect(await paths(outbox) == ["/a"])
        #expect(isReleased(outbox))
        let next = try await fixture.open()
        await clock.advance(by: .seconds(10))
        #expect(fixture.paths == ["/a", "/a"])
        #expect(await next.entries == [])
    }

    @Test("A decision that exceeds the limit is not waited for, and has no effect", arguments: [false, true])
    func lateDecision(_ replaces: Bool) async throws {
        mock.on(.POST, "/a", [.status(409), .status(204)])
        let (began, turn, cancelled) = (Collected<Int>(), Collected<Int>(), Collected<Bool>())
        let replacement = post("/b")
        let outbox = try await fixture.open { _ in
            began.add(0)
            await turn.wait()
            cancelled.add(Task.isCancelled)
            return replaces ? .replace(replacement) : .drop
        }
        try await outbox.submit(post("/a"))
        await began.wait()
        let finishing = await finish(outbox, within: .seconds(5))
        await clock.advance(by: .seconds(5))
        #expect(await finishing.value == false)
        let files = try fixture.entryFiles()
        turn.add(0)
        await outbox.close()  // waits for the decision
        #expect(cancelled.values == [true])
        #expect(try fixture.entryFiles() == files)
        let next = try await fixture.open()
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a", "/a"])
        #expect(await next.entries == [])
    }

    @Test("A decision may await it")
    func fromDecision() async throws {
        mock.on(.POST, "/a", .status(404))
        let opened = Mutex<Outbox?>(nil)
        let ended = Collected<Bool>()
        let outbox = try await fixture.open { _ in
            if let outbox = opened.withLock(\.self) { ended.add(await outbox.finish(within: .seconds(5))) }
            return .drop
        }
        opened.withLock { $0 = outbox }
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(5))
        #expect(await ended.wait() == [false])
        #expect(await paths(outbox) == ["/a"])
        opened.withLock { $0 = nil }
    }

    @Test("An entry whose condition is evaluated is not sent")
    func condition() async throws {
        let (began, turn) = (Collected<Int>(), Collected<Int>())
        var options = Outbox.Options()
        options.canSend = { _ in
            began.add(0)
            await turn.wait()
            return true
        }
        let outbox = try await fixture.open(options)
        try await outbox.submit(post("/a"))
        await began.wait()
        let finishing = await finish(outbox)
        turn.add(0)
        #expect(await finishing.value)
        #expect(fixture.paths == [])
        #expect(await outbox.entries.map(\.state) == [.waiting])
    }

    @Test("A condition that exceeds the limit is not waited for")
    func lateCondition() async throws {
        let (began, turn) = (Collected<Int>(), Collected<Int>())
        var options = Outbox.Options()
        options.canSend = { _ in
            began.add(0)
            await turn.wait()
            return true
        }
        let outbox = try await fixture.open(options)
        try await outbox.submit(post("/a"))
        await began.wait()
        let finishing = await finish(outbox, within: .seconds(5))
        await clock.advance(by: .seconds(5))
        #expect(await finishing.value == false)
        turn.add(0)
        await outbox.close()
        #expect(fixture.paths == [])
    }

    @Test("An entry that expires is reported by the next outbox")
    func expiry() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 204).after(.seconds(10)))
        let expired = Collected<String>()
        let outbox = try await fixture.open { failure in
            expired.add("first")
            return .drop
        }
        try await outbox.submit(post("/a"), entity: "a")
        try await outbox.submit(post("/b"), entity: "a", expires: clock.date + 5)
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        await clock.advance(by: .seconds(10))
        #expect(await finishing.value)
        let next = try await fixture.open { failure in
            expired.add("next")
            return .drop
        }
        await clock.advance(by: .zero)
        #expect(expired.values == ["next"])
        #expect(await next.entries == [])
    }

    @Test("Cancelling the Swift task cancels what is in flight")
    func cancelled() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 204).after(.seconds(10)))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        finishing.cancel()
        #expect(await finishing.value == false)
        #expect(await paths(outbox) == ["/a"])
    }

    @Test("Concurrent calls all wait, and the first limit applies")
    func concurrent() async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: 204).after(.seconds(10)))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let (first, second) = (await finish(outbox), await finish(outbox, within: .seconds(5)))
        await clock.advance(by: .zero)  // until both wait
        await clock.advance(by: .seconds(5))
        #expect(await first.value == false)
        #expect(await second.value == false)
    }

    @Test("close() during the call cancels what is in flight, and a call after close() returns at once")
    func closing() async throws {
        mock.on(.POST, "/a", [MockResponse(statusCode: 204).after(.seconds(10)), .status(204)])
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let finishing = await finish(outbox)
        await outbox.close()
        #expect(await finishing.value == false)
        #expect(await outbox.finish(within: .seconds(60)) == false)

        let idle = try await fixture.open()
        await clock.advance(by: .zero)
        await idle.close()
        #expect(await idle.finish(within: .seconds(60)))
    }

    @Test("A request that an invalidated service refuses is neither counted nor reported")
    func invalidated() async throws {
        let failures = Collected<Outbox.Failure.Kind>()
        var options = Outbox.Options()
        options.maximumAttempts = 1
        let outbox = try await fixture.open(options) { failure in
            failures.add(failure.kind)
            return .drop
        }
        mock.service.invalidate()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(100))
        #expect(failures.values == [])
        #expect(await outbox.entries.map(\.attempts) == [0])
    }
}
