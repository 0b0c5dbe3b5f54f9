import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache with storages", .permit)
struct ResponseCacheStorageTests {
    private let fixture = CacheFixture()

    enum Kind: CaseIterable, Sendable { case memory, file, bareFile }

    /// Runs a test with a storage of the kind; the folder of a file storage is removed afterwards.
    private func over(_ kind: Kind, _ test: (any ResponseStorage) async throws -> Void) async throws {
        guard kind != .memory else { return try await test(MemoryStorage()) }
        let folder = TemporaryFolder.forTest().url.appendingPathComponent("http")
        try await test(try FileStorage(folder: folder, format: kind == .file ? .wrapped : .bare))
    }

    @Test(
        "An account never receives the stored response of another for the same URL",
        arguments: Kind.allCases)
    func accounts(kind: Kind) async throws {
        try await over(kind) { storage in
            let fixture = CacheFixture(storage)
            fixture.serve { request in
                CacheFixture.Reply(
                    headers: ["Cache-Control": "max-age=60"], body: request.headers[.authorization] ?? "nobody")
            }
            let accounts: [String?] = ["ann", "bob", "", nil, "ann\u{0}", "Ann"]
            for source in ["network", "cache", "cache"] {
                for (index, account) in accounts.enumerated() {
                    fixture.signIn(account)
                    let token = "Bearer \(index)"
                    #expect(try await fixture.text("/a", ["Authorization": token]) == "\(source) \(token)")
                }
            }
            #expect(fixture.sent.values.count == accounts.count)
            fixture.signIn("bob")
            let url = try #require(URL(string: "https://h/v1/a"))
            try await fixture.cache.remove(url)
            #expect(try await fixture.text("/a", ["Authorization": "b"]) == "network b")
            fixture.signIn("ann")
            #expect(try await fixture.text("/a", ["Authorization": "x"]) == "cache Bearer 0")
        }
    }

    @Test(
        "Without an account, a response is reused only for requests with the same credentials and cookies",
        arguments: Kind.allCases)
    func nobody(kind: Kind) async throws {
        try await over(kind) { storage in
            let fixture = CacheFixture(storage)
            fixture.serve { request in
                let asker = request.headers.map(\.value).joined(separator: ",")
                return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: asker)
            }
            let askers: [Headers] = [
                ["Authorization": "1"], ["Authorization": "2"], [:], ["Cookie": "a=1"], ["Cookie": "a=2"],
            ]
            for source in ["network", "cache"] {
                for headers in askers {
                    let values = headers.map(\.value).joined()
                    let text = try await fixture.text("/a", headers)
                    #expect(text == "\(source) \(values)")
                }
            }
        }
    }

    @Test("A response that arrives after the account has changed is stored for neither account")
    func accountChangesMeanwhile() async throws {
        fixture.signIn("ann")
        fixture.serve { [unowned fixture] _ in
            fixture.signIn("bob")
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: "whose?")
        }
        _ = try await fixture.get()
        for account in ["ann", "bob"] {
            fixture.signIn(account)
            await #expect(throws: URLError(.resourceUnavailable)) {
                try await fixture.get(policy: .returnCacheDataDontLoad)
            }
        }
    }

    @Test(
        "A request sent again after the account has changed neither uses nor changes the cache of the new one"
    )
    func accountChangesBetweenAttempts() async throws {
        let retrying = ClosureInterceptor { request, next in
            let response = try await next(request)
            guard response.status == 503 else { return response }
            return try await next(request)
        }
        for isStored in [false, true] {
            let fixture = CacheFixture(outer: [retrying])
            fixture.signIn("bob")
            fixture.serve(["Cache-Control": "max-age=60"], "bob's")
            if isStored { _ = try await fixture.get() }
            fixture.signIn("ann")
            fixture.serve { [unowned fixture] request in
                if fixture.sent.values.count == (isStored ? 2 : 1) {
                    fixture.signIn("bob")
                    return CacheFixture.Reply(status: 503)
                }
                return CacheFixture.Reply(
                    headers: ["Cache-Control": "max-age=60"], body: request.headers[.authorization] ?? "")
            }
            #expect(try await fixture.text("/a", ["Authorization": "ann's"]) == "network ann's")
            fixture.serve([:], "new")
            #expect(
                try await fixture.text("/a", ["Authorization": "bob's"]) == (isStored ? "cache bob's" : "network new"))
        }
    }

    @Test("A stored response is available to another cache with the same folder")
    func survives() async throws {
        try await over(.file) { storage in
            let first = CacheFixture(storage)
            first.serve(["Cache-Control": "max-age=60", "Vary": "X-A"], "one")
            _ = try await first.get("/a", ["X-A": "1"])
            await first.cache.finishStoring()
            let second = CacheFixture(storage)
            second.advance(by: 30)
            let response = try await second.get("/a", ["X-A": "1"])
            #expect(response.source == .cache)
            #expect(response.age == .seconds(30))
            #expect(response.data == Data("one".utf8))
            #expect(try await second.get("/a", ["X-A": "2"]).source == .network)
        }
    }

    @Test("A damaged or foreign entry is a miss and is replaced or removed")
    func damaged() async throws {
        let storage = MemoryStorage()
        let fixture = CacheFixture(storage)
        let key = StorageKey(identifier: "GET https://h/v1/a", classification: DataClassification("http-cache"))
        for content in [StorageEntry.Content.raw(Data("{}".utf8)), .value(Data()), .live(7)] {
            try storage.store(StorageEntry(content, date: nil), for: key)
            fixture.serve(["Cache-Control": "max-age=60"], "one")
            #expect(try await fixture.text() == "network one")
            #expect(try await fixture.text() == "cache one")
        }
        let whole = try #require(storage.entry(for: key)?.data)
        try storage.store(
            StorageEntry(.value(whole.dropLast() + [whole.last.map { $0 ^ 1 } ?? 0]), date: nil), for: key)
        #expect(try await fixture.text() == "network one")
        await fixture.cache.finishStoring()
        try storage.store(StorageEntry(.value(Data("WSC0".utf8)), date: nil), for: key)
        fixture.serve(["Cache-Control": "no-store"], "two")
        #expect(try await fixture.text() == "network two")
        await fixture.cache.finishStoring()
        #expect(storage.entry(for: key) == nil)
        #expect(fixture.failures.values.isEmpty)
    }

    @Test("A storage failure or a storage that is too small fails no request and is reported to the observer")
    func failing() async throws {
        let fixture = CacheFixture(HandStorage(failure: TestError()))
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        for _ in 0..<2 { #expect(try await fixture.text() == "network one") }
        _ = try await fixture.get(method: .POST)
        await fixture.cache.finishStoring()
        let operations = Set(fixture.failures.values.map(\.operation))
        #expect(operations == [.read, .store, .remove])
        #expect(fixture.failures.values.allSatisfy { $0.error is TestError })
        await #expect(throws: TestError.self) { try await fixture.cache.removeAll() }

        let small = CacheFixture(MemoryStorage(maximumBytes: 10))
        small.serve(["Cache-Control": "max-age=60"], "one")
        for _ in 0..<2 { #expect(try await small.text() == "network one") }
        await small.cache.finishStoring()
        #expect((small.failures.values.first?.error as? WebServiceError)?.code == .entryTooLarge)
    }

    @Test("An outdated response is removed even if it cannot be read")
    func unreadable() async throws {
        let storage = FlakyStorage()
        let fixture = CacheFixture(storage)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        #expect(try await fixture.text() == "network one")
        await fixture.cache.finishStoring()
        storage.failsToRead(true)
        fixture.serve(["Cache-Control": "no-store"], "two")
        #expect(try await fixture.text() == "network two")
        await fixture.cache.finishStoring()
        storage.failsToRead(false)
        #expect(try await fixture.text() == "network two")
    }

    @Test("A response that cannot be stored removes the older one")
    func unwritable() async throws {
        let storage = FlakyStorage()
        let fixture = CacheFixture(storage)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        #expect(try await fixture.text() == "network one")
        await fixture.cache.finishStoring()
        storage.failsToStore(true)
        fixture.serve(["Cache-Control": "max-age=60"], "two")
        #expect(try await fixture.text(policy: .reloadIgnoringLocalCacheData) == "network two")
        await fixture.cache.finishStoring()
        #expect(fixture.failures.values.map(\.operation) == [.store])
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test("A response is returned before it is stored, and the next request waits for the write")
    func behind() async throws {
        let gate = Once<Bool>()
        let storage = HandStorage(gate: gate)
        let fixture = CacheFixture(storage)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        #expect(try await fixture.text() == "network one")
        #expect(storage.calls.values.allSatisfy { $0 == .read })
        async let second = fixture.text()
        gate.set(true)
        #expect(try await second == "cache one")
    }

    @Test("Responses are removed by URL or all together, and one in flight is not stored after a removal")
    func removal() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        for path in ["/a", "/b"] { _ = try await fixture.get(path) }
        let url = try #require(URL(string: "https://H:443/v1/a#x"))
        try await fixture.cache.remove(url)
        #expect(try await fixture.text("/b") == "cache one")
        #expect(try await fixture.text("/a") == "network one")
        let gate = Once<Bool>()
        fixture.serve { _ in
            _ = await gate.value
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: "late")
        }
        async let late = fixture.text("/c")
        await fixture.sent.wait(for: 4)
        try await fixture.cache.removeAll()
        gate.set(true)
        #expect(try await late == "network late")
        for path in ["/a", "/b", "/c"] {
            await #expect(throws: URLError(.resourceUnavailable)) {
                try await fixture.get(path, policy: .returnCacheDataDontLoad)
            }
        }
    }

    @Test("Concurrent requests receive the responses to their own URL and header fields")
    func concurrent() async throws {
        fixture.serve { request in
            CacheFixture.Reply(
                headers: ["Cache-Control": "max-age=60", "Vary": "X-A"],
                body: "\(request.url) \(request.headers["X-A"] ?? "")")
        }
        let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<300 {
                group.addTask {
                    let (path, value) = ("/\(number % 7)", "\(number % 3)")
                    if number % 20 == 0 { _ = try await fixture.get(path, method: .DELETE) }
                    return try await fixture.text(path, ["X-A": value]).hasSuffix("https://h/v1\(path) \(value)")
                        ? 0 : 1
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}

/// A storage whose reads or writes fail when the test specifies it.
private final class FlakyStorage: ResponseStorage {
    private let memory = MemoryStorage()
    private let isUnreadable = Mutex(false)

    private let isReadOnly = Mutex(false)

    func failsToStore(_ fails: Bool) { isReadOnly.withLock { $0 = fails } }
    func failsToRead(_ fails: Bool) { isUnreadable.withLock { $0 = fails } }

    func entry(for key: StorageKey) async throws -> StorageEntry? {
        if isUnreadable.withLock({ $0 }) { throw TestError() }
        return memory.entry(for: key)
    }

    func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        if isReadOnly.withLock({ $0 }) { throw TestError() }
        try memory.store(entry, for: key)
    }

    func removeEntry(for key: StorageKey) async throws { memory.removeEntry(for: key) }
    func removeAll() async throws { memory.removeAll() }
}
