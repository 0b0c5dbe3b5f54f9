import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceCore
@testable import WebServiceOffline

@Suite("Finishing an account", .permit)
struct AccountFinishTests {
    private let mock = MockService()
    private let folder = TemporaryFolder.forTest().url.appendingPathComponent("anna", isDirectory: true)

    /// Starts to finish the account, and returns when its services refuse requests.
    private func finish(
        _ account: Account, _ services: WebService..., within limit: Duration = .seconds(600)
    ) async -> Task<Bool, Never> {
        let task = Task { await account.finish(within: limit) }
        await eventually { services.allSatisfy { (try? $0.core.checkAccepts()) == nil } }
        return task
    }

    private func code<Value>(_ work: () async throws -> Value) async -> WebServiceError.Code? {
        do { _ = try await work() } catch { return (error as? WebServiceError)?.code }
        return nil
    }

    private func get(_ service: WebService, _ path: String) -> Task<Int, any Error> {
        Task { try await service.GET(path).data().response.status }
    }

    /// Stubs a path whose response waits for a turn.
    private func stub(_ path: String, _ status: Int, _ turn: Collected<Int>) {
        mock.on(.path(path)) { _ in
            await turn.wait()
            return .status(status)
        }
    }

    private func received(_ count: Int) async { await eventually { mock.receivedRequests.count == count } }

    @Test("Requests of services, clones and outboxes in flight end, and later ones are refused")
    func inFlight() async throws {
        let turn = Collected<Int>()
        stub("/a", 204, turn)
        stub("/b", 204, turn)
        stub("/c/{n}", 204, turn)
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let clone = service.clone()
        let outbox = try service.outbox(in: account.file("outbox"))
        for number in 0..<2 { try await outbox.submit(service.request(.POST, path: "/c/\(number)"), entity: "c") }
        let tasks = [get(service, "/a"), get(clone, "/b")]
        await received(3)
        let finishing = await finish(account, service, clone)
        await eventually { outbox.state.withLock(\.isEnding) }
        #expect(await code { try await service.GET("/a").data().response } == .serviceInvalidated)
        #expect(await code { try await clone.GET("/a").data().response } == .serviceInvalidated)
        #expect(await code { try await service.clone().GET("/a").data().response } == .serviceInvalidated)
        #expect(await code { try await outbox.submit(service.request(.POST, path: "/c/2")) } == .outboxClosed)
        turn.add(0)
        for task in tasks { #expect(try await task.value == 204) }
        #expect(await finishing.value)
        #expect(mock.receivedRequests.count == 3)
        let late = account.service(like: mock.service)
        #expect(await code { try await late.GET("/a").data().response } == .serviceInvalidated)
        #expect(await code { try service.outbox(in: account.file("outbox")) } == .serviceInvalidated)
    }

    @Test("No data is removed, the cookies can be written, and the folder can be opened again")
    func data() async throws {
        mock.on(.POST, "/a", .status(503))
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let storage = account.storage(MemoryStorage())
        try await storage.store(StorageEntry(.raw(Data([1])), date: nil), for: StorageKey(identifier: "a"))
        let outbox = try service.outbox(in: account.file("outbox"))
        try await outbox.submit(service.request(.POST, path: "/a"))
        await received(1)
        let url = try #require(URL(string: "https://example.com/"))
        account.cookieJar.store(["sid=1; Max-Age=1000"], from: url)
        #expect(await account.finish(within: .seconds(600)))
        #expect(!account.isLoggedOut)
        #expect(try await storage.entry(for: StorageKey(identifier: "a")) != nil)
        try account.writeCookies()

        mock.on(.POST, "/a", .status(204))
        let next = try Account(in: folder)
        #expect(next.cookieJar.cookies.map(\.name) == ["sid"])
        let nextOutbox = try next.service(like: mock.service).outbox(in: next.file("outbox"))
        await eventually { await nextOutbox.entries.isEmpty && mock.receivedRequests.count == 2 }
        await nextOutbox.close()
    }

    @Test("At the limit, everything is cancelled")
    func limit() async throws {
        let turn = Collected<Int>()
        stub("/a", 204, turn)
        stub("/c", 204, turn)
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let outbox = try service.outbox(in: account.file("outbox"))
        try await outbox.submit(service.request(.POST, path: "/c"))
        let task = get(service, "/a")
        await received(2)
        #expect(await account.finish(within: .zero) == false)
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        let isReleased = outbox.state.withLock(\.isReleased)
        #expect(isReleased)
        #expect(await outbox.entries.count == 1)
        turn.add(0)
    }

    @Test("Cancelling the Swift task cancels what is in flight")
    func cancelled() async throws {
        let turn = Collected<Int>()
        stub("/a", 204, turn)
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let task = get(service, "/a")
        await received(1)
        let finishing = await finish(account, service)
        finishing.cancel()
        #expect(await finishing.value == false)
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        turn.add(0)
    }

    @Test("A refresh over an idle service of the account is sent")
    func refresh() async throws {
        let turn = Collected<Int>()
        stub("/me", 401, turn)
        mock.on(.path("/me") && .header("Authorization", "Bearer b"), .status(204))
        mock.on(.POST, "/token", .status(204))
        let account = try Account(in: folder)
        let (service, other) = (account.service(like: mock.service), account.service(like: mock.service))
        service.interceptors = [
            Authentication(
                TokenSource({ .bearer("a") }) { _ in
                    _ = try await other.POST("/token").empty().value
                    return .bearer("b")
                })
        ]
        let task = get(service, "/me")
        await received(1)
        let finishing = await finish(account, service, other)
        turn.add(0)
        #expect(try await task.value == 204)
        #expect(await finishing.value)
    }

    @Test("A storage's write in progress is waited for", arguments: [false, true])
    func storage(_ exceedsLimit: Bool) async throws {
        let slow = SlowStorage()
        let account = try Account(in: folder)
        let storage = account.storage(slow)
        let write = Task {
            try await storage.store(StorageEntry(.raw(Data([1])), date: nil), for: StorageKey(identifier: "a"))
        }
        await slow.began.wait()
        if exceedsLimit {
            #expect(await account.finish(within: .zero) == false)
            slow.turn.add(0)
        } else {
            let finishing = Task { await account.finish(within: .seconds(600)) }
            await eventually { account.isFinishing }
            slow.turn.add(0)
            #expect(await finishing.value)
        }
        try await write.value  // continues
    }

    @Test("A log-out during the call cancels what is in flight, and one afterwards removes the data")
    func logOut() async throws {
        let turn = Collected<Int>()
        stub("/a", 204, turn)
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let task = get(service, "/a")
        await received(1)
        let finishing = await finish(account, service)
        try await account.logOutAgain()
        #expect(await finishing.value == false)
        await #expect(throws: URLError(.cancelled)) { try await task.value }
        #expect(await account.finish(within: .seconds(600)) == false)
        turn.add(0)

        let next = try Account(in: folder)
        #expect(await next.finish(within: .seconds(600)))
        try await next.logOutAgain()
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("Concurrent calls all wait")
    func concurrent() async throws {
        let turn = Collected<Int>()
        stub("/a", 204, turn)
        let account = try Account(in: folder)
        let service = account.service(like: mock.service)
        let task = get(service, "/a")
        await received(1)
        let (first, second) = (await finish(account, service), await finish(account, service))
        turn.add(0)
        #expect(await first.value)
        #expect(await second.value)
        #expect(try await task.value == 204)
    }
}

/// A storage whose writes wait for a turn.
private final class SlowStorage: ResponseStorage {
    let (began, turn) = (Collected<Int>(), Collected<Int>())
    private let storage = MemoryStorage()

    func entry(for key: StorageKey) -> StorageEntry? { storage.entry(for: key) }

    func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        began.add(0)
        await turn.wait()
        try storage.store(entry, for: key)
    }

    func removeEntry(for key: StorageKey) { storage.removeEntry(for: key) }
    func removeAll() { storage.removeAll() }
}
