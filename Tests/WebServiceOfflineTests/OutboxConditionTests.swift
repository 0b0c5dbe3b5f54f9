import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

@Suite("The condition for sending the entries of an outbox", .permit)
final class OutboxConditionTests: Sendable {
    private let fixture = OfflineFixture()
    private let isMet = Mutex(false)
    private let evaluated = Collected<String>()

    private func post(_ path: String) -> Request { fixture.service.request(.POST, path: path) }

    /// Opens an outbox that sends the entries of the entity `a` only if the condition is met.
    private func open(
        onFailure: @escaping @Sendable (Outbox.Failure) async -> Outbox.Decision = { _ in .keep }
    ) async throws -> Outbox {
        fixture.mock.on(.POST, "/{n}", .status(200))
        var options = Outbox.Options()
        options.canSend = { [self] entry in
            evaluated.add(entry.entity ?? "")
            return entry.entity != "a" || isMet.withLock(\.self)
        }
        return try await fixture.open(options, onFailure: onFailure)
    }

    @Test("An entry is held until the condition is evaluated again, and others are sent")
    func held() async throws {
        let outbox = try await open()
        let updates = outbox.updates
        try await outbox.submit(post("/0"), entity: "a")
        try await outbox.submit(post("/1"), entity: "a")
        try await outbox.submit(post("/2"), entity: "b")
        await fixture.clock.advance(by: .seconds(1_000))
        #expect(fixture.paths == ["/2"])
        #expect(await outbox.entries.map(\.state) == [.held, .waiting])
        #expect(await outbox.entries.map(\.attempts) == [0, 0])
        #expect(evaluated.values.sorted() == ["a", "b"])
        outbox.reevaluate()
        await fixture.clock.advance(by: .zero)
        #expect(evaluated.values.filter { $0 == "a" }.count == 2)
        #expect(fixture.paths == ["/2"])
        isMet.withLock { $0 = true }
        outbox.reevaluate()
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == ["/2", "/0", "/1"])
        await outbox.close()
        var states: [Outbox.Entry.State] = []
        for await case .entry(let entry) in updates where entry.entity == "b" { states.append(entry.state) }
        #expect(states == [.waiting, .sending, .sent])
    }

    @Test("A retry and a restart evaluate the condition, and a later reading of the folder does not")
    func retry() async throws {
        let first = try await open()
        try await first.submit(post("/0"), entity: "a")
        await fixture.clock.advance(by: .seconds(100))
        #expect(evaluated.values.count == 1)
        first.retry()
        await fixture.clock.advance(by: .seconds(100))
        #expect(evaluated.values.count == 2)
        await first.close()
        let second = try await open()
        #expect(evaluated.values.count == 3)
        #expect(await second.entries.map(\.state) == [.held])
    }

    @Test("A change during an evaluation is not missed")
    func change() async throws {
        fixture.mock.on(.POST, "/0", .status(200))
        let outbox = Mutex<Outbox?>(nil)
        let count = Mutex(0)
        var options = Outbox.Options()
        options.canSend = { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            // The condition is met after it was evaluated.
            if number == 1 { outbox.withLock(\.self)?.reevaluate() }
            return number > 1
        }
        let opened = try await fixture.open(options)
        outbox.withLock { $0 = opened }
        try await opened.submit(post("/0"))
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == ["/0"])
        #expect(count.withLock(\.self) == 2)
        outbox.withLock { $0 = nil }
    }

    @Test("A held entry expires, is replaced, and is removed")
    func ends() async throws {
        let expired = Collected<String>()
        let outbox = try await open { failure in
            expired.add(failure.request.url?.path ?? "")
            return .drop
        }
        try await outbox.submit(post("/0"), entity: "a", expires: fixture.clock.date + 10)
        let id = try await outbox.submit(post("/1"), entity: "a")
        try await outbox.submit(post("/2"), entity: "a", replacing: "k")
        await fixture.clock.advance(by: .seconds(11))
        #expect(expired.values == ["/0"])
        #expect(await outbox.entries.map(\.state) == [.held, .waiting])
        #expect(try await outbox.remove(id))
        await fixture.clock.advance(by: .zero)
        #expect(await outbox.entries.map(\.state) == [.held])
        try await outbox.submit(post("/3"), entity: "a", replacing: "k")
        isMet.withLock { $0 = true }
        outbox.reevaluate()
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == ["/3"])
        #expect(await outbox.entries == [])
    }

    @Test(
        "An entry that is removed or replaced while its condition is evaluated is not sent",
        arguments: [true, false])
    func removal(_ isRemoved: Bool) async throws {
        fixture.mock.on(.POST, "/1", .status(200)).optional()
        let (permits, continuation) = AsyncStream.makeStream(of: Void.self)
        let isFirst = OnceFlag()
        var options = Outbox.Options()
        options.canSend = { _ in
            if isFirst.set() { for await _ in permits {} }
            return true
        }
        let outbox = try fixture.service.outbox(in: fixture.outbox, options: options)
        let id = try await outbox.submit(post("/0"), entity: "a", replacing: "k")
        await eventually { isFirst.isSet }
        if isRemoved {
            #expect(try await outbox.remove(id))
        } else {
            try await outbox.submit(post("/1"), entity: "a", replacing: "k")
        }
        continuation.finish()
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == (isRemoved ? [] : ["/1"]))
        #expect(await outbox.entries == [])
    }

    @Test("An outbox is closed while the condition is evaluated, and its entry remains")
    func closing() async throws {
        let isFirst = OnceFlag()
        var options = Outbox.Options()
        options.canSend = { _ in
            _ = isFirst.set()
            try? await Task.sleep(for: .seconds(60))  // until the task is cancelled
            return true
        }
        let outbox = try fixture.service.outbox(in: fixture.outbox, options: options)
        try await outbox.submit(post("/0"))
        await eventually { isFirst.isSet }
        await outbox.close()
        #expect(fixture.paths == [])
        #expect(try fixture.entryFiles().count == 1)
    }
}
