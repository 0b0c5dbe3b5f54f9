import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache with a storage that hangs", .permit)
struct ResponseCacheHangTests {
    private let storage = HangingStorage()

    /// Advances the clock until the operation ends.
    ///
    /// - Returns: The result of the operation and its duration in seconds.
    private func turning<Value: Sendable>(
        _ clock: WebServiceMocking.TestClock, _ operation: @escaping @Sendable () async throws -> Value
    ) async -> (result: Result<Value, any Error>, seconds: UInt64) {
        let start = clock.instant
        let result = Mutex<Result<Value, any Error>?>(nil)
        let task = Task(executorPreference: clock.executor) {
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await operation()) } catch { outcome = .failure(error) }
            let seconds = (clock.instant - start) / 1_000_000_000
            result.withLock { $0 = outcome }
            return seconds
        }
        await clock.advance(by: .zero)
        for _ in 0..<1_000 where result.withLock({ $0 == nil }) { await clock.advance(by: .milliseconds(50)) }
        let seconds = await task.value
        return (result.withLock { $0 } ?? .failure(TestError()), seconds)
    }

    @Test("A read that hangs is a miss after 10 seconds, and the observer is notified")
    func reading() async throws {
        let clock = WebServiceMocking.TestClock()
        let fixture = CacheFixture(storage, timekeeper: clock)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        storage.hangs(.read, true)
        let (result, seconds) = await turning(clock) { try await fixture.text() }
        #expect(try result.get() == "network one")
        #expect(seconds == 10)
        let failure = try #require(fixture.failures.values.first)
        #expect(failure.operation == .read)
        #expect((failure.error as? WebServiceError)?.code == .storage)
        storage.hangs(.read, false)
        await fixture.cache.finishStoring()
        #expect(try await fixture.text() == "cache one")
    }

    @Test(
        "A write that hangs delays the next request for its key by 10 seconds, but no request for another key"
    )
    func writing() async throws {
        let clock = WebServiceMocking.TestClock()
        let fixture = CacheFixture(storage, timekeeper: clock)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        storage.hangs(.store, true)
        #expect(try await fixture.text() == "network one")
        let other = await turning(clock) { try await fixture.text("/b") }
        #expect(try other.result.get() == "network one")
        #expect(other.seconds == 0)
        let (result, seconds) = await turning(clock) { try await fixture.text() }
        #expect(try result.get() == "network one")
        #expect(seconds == 10)
        storage.hangs(.store, false)
        await fixture.cache.finishStoring()
        #expect(try await fixture.text() == "cache one")
    }

    @Test(
        "The number of changes that wait for a storage is limited, and discarded ones remove the stored response"
    )
    func waitingChanges() async throws {
        let fixture = CacheFixture(storage)
        fixture.serve(["Cache-Control": "max-age=60"], "old")
        _ = try await fixture.get()
        await fixture.cache.finishStoring()
        storage.hangs(.store, true)
        for number in 0..<200 {
            fixture.serve(["Cache-Control": "max-age=60"], "\(number)")
            _ = try await fixture.get(policy: .reloadIgnoringLocalCacheData)
        }
        storage.hangs(.store, false)
        await fixture.cache.finishStoring()
        #expect(storage.stores < 100)
        #expect(fixture.failures.values.filter { $0.operation == .store }.count > 100)
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
        #expect(try await fixture.text() == "network 199")
        #expect(try await fixture.text() == "cache 199")
    }

    @Test("A cancel and a deadline end a request immediately while the storage hangs")
    func ends() async throws {
        let clock = ManualTimekeeper()
        let fixture = CacheFixture(storage, timekeeper: clock)
        storage.hangs(.read, true)
        let ends = Collected<String>()
        func begin(_ deadline: Duration) -> SessionTask {
            var request = fixture.service.request(.GET, path: "/a")
            request.options.deadline = deadline
            return fixture.service.sessionTask(request: request).response { _, _ in .empty }.responseError {
                ends.add(
                    (($0 as? URLError)?.code).map { "\($0.rawValue)" } ?? (($0 as? WebServiceError)?.code).map {
                        "\($0)"
                    } ?? "\($0)")
            }.resume()
        }
        let cancelled = begin(.seconds(100))
        await storage.reads.wait(for: 1)
        cancelled.cancel()
        #expect(await ends.wait(for: 1) == ["-999"])
        _ = begin(.seconds(5))
        await storage.reads.wait(for: 2)
        clock.advance(by: .seconds(5))
        #expect(await ends.wait(for: 2).last == "\(WebServiceError.Code.deadline)")
        clock.advance(by: .seconds(10))
        storage.hangs(.read, false)
        #expect(fixture.sent.values.isEmpty)
        // Neither request waits for the storage any longer.
        #expect(clock.pending == 0)
    }

    @Test(
        "A removal from a storage that hangs fails after 10 seconds and completes when the storage continues",
        arguments: [true, false])
    func removing(isAll: Bool) async throws {
        let clock = WebServiceMocking.TestClock()
        let fixture = CacheFixture(storage, timekeeper: clock)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        #expect(try await fixture.text() == "network one")
        #expect(await fixture.cache.finishStoring())
        storage.hangs(.remove, true)
        let url = try #require(URL(string: "https://h/v1/a"))
        let (result, seconds) = await turning(clock) {
            if isAll { try await fixture.cache.removeAll() } else { try await fixture.cache.remove(url) }
        }
        let error = #expect(throws: WebServiceError.self) { try result.get() }
        #expect(error?.code == .storage)
        #expect(seconds == 10)
        storage.hangs(.remove, false)
        #expect(await fixture.cache.finishStoring())
        #expect(try await fixture.text() == "network one")
    }

    @Test(
        "finishStoring returns false after 10 seconds if the storage hangs, even in a cancelled task"
    )
    func finishing() async throws {
        let clock = WebServiceMocking.TestClock()
        let fixture = CacheFixture(storage, timekeeper: clock)
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        storage.hangs(.store, true)
        #expect(try await fixture.text() == "network one")
        let (result, seconds) = await turning(clock) {
            withUnsafeCurrentTask { $0?.cancel() }
            return await fixture.cache.finishStoring()
        }
        #expect(try result.get() == false)
        #expect(seconds == 10)
        storage.hangs(.store, false)
        #expect(await fixture.cache.finishStoring())
        #expect(try await fixture.text() == "cache one")
    }

    @Test("At most 65 removals wait for a storage that hangs, and the rest fail immediately", arguments: [true, false])
    func waitingRemovals(isAll: Bool) async throws {
        let clock = WebServiceMocking.TestClock()
        let fixture = CacheFixture(storage, timekeeper: clock)
        storage.hangs(.remove, true)
        let url = try #require(URL(string: "https://h/v1/a"))
        // The duration of each removal until its error.
        let (waits, _) = await turning(clock) {
            await withTaskGroup(of: Duration?.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        let start = clock.instant
                        do {
                            if isAll {
                                try await fixture.cache.removeAll()
                            } else {
                                try await fixture.cache.remove(url)
                            }
                            return nil
                        } catch {
                            return (error as? WebServiceError)?.code == .storage
                                ? .nanoseconds(Int64(clock.instant - start)) : nil
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }
        let known = try waits.get().compactMap(\.self)
        #expect(known.count == 200)
        #expect(known.count { $0 < .seconds(5) } == 136)
        #expect(known.count { $0 >= .seconds(10) } == 64)
        storage.hangs(.remove, false)
        #expect(await fixture.cache.finishStoring())
        #expect(storage.removals == 65)
    }

    @Test("The delete methods and finishStoring of a service end after 10 seconds if the storage hangs")
    func service() async throws {
        let clock = WebServiceMocking.TestClock()
        let service = WebService.make(timekeeper: clock)
        service.storages = [storage]
        try await storage.store(StorageEntry(.value(Data()), date: nil), for: StorageKey(identifier: "a"))
        storage.hangs(.remove, true)
        let deletes: [@Sendable () async throws -> Void] = [
            { try await service.deleteStored(NamedRequest()) }, { try await service.deleteAllStored() },
            { try await service.deleteStoredInAnyClassification() },
        ]
        for delete in deletes {
            let (result, seconds) = await turning(clock, delete)
            let error = #expect(throws: WebServiceError.self) { try result.get() }
            #expect(error?.code == .storage)
            #expect(seconds == 10)
        }
        let (finished, seconds) = await turning(clock) { await service.finishStoring() }
        #expect(try finished.get() == false)
        #expect(seconds == 10)
        storage.hangs(.remove, false)
        #expect(await service.finishStoring())
        #expect(storage.removals == 3)
    }

    @Test("A deletion after 65 deletions of other entries is completed when the storage responds again")
    func deletionAfterOthers() async throws {
        let clock = WebServiceMocking.TestClock()
        let service = WebService.make(timekeeper: clock)
        service.storages = [storage]
        storage.hangs(.remove, true)
        _ = await turning(clock) { try await service.deleteAllStored() }
        _ = await turning(clock) {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<65 { group.addTask { try? await service.deleteStored(DataClassification("other")) } }
            }
        }
        let (result, seconds) = await turning(clock) { try await service.deleteAllStored() }
        #expect(throws: WebServiceError.self) { try result.get() }
        #expect(seconds == 10)
        storage.hangs(.remove, false)
        #expect(await service.finishStoring())
        #expect(storage.removals == 2)
    }

    @Test("Reading a stored value fails after 10 seconds if the storage hangs, and the observer is notified")
    func storedValue() async throws {
        let clock = WebServiceMocking.TestClock()
        let service = WebService.make(timekeeper: clock)
        service.storages = [storage]
        let failures = Collected<StorageEntry.Failure>()
        service.storageErrorObserver = { failures.add($0) }
        storage.hangs(.read, true)
        let (result, seconds) = await turning(clock) { try await service.stored(NamedRequest()).value.value }
        let error = #expect(throws: WebServiceError.self) { try result.get() }
        #expect(error?.code == .storage)
        #expect(seconds == 10)
        #expect(failures.values.map(\.operation) == [.read])
    }
}

private struct NamedRequest: ValueStorableRequest {
    typealias Output = String
    var storageIdentifier: String? { "a" }
}

/// A storage whose operations hang when the test specifies it.
final class HangingStorage: ResponseStorage {
    private struct State {
        var hanging: Set<StorageEntry.Failure.Operation> = []
        var waiting: [CheckedContinuation<Void, Never>] = []
        var stores = 0
        var removals = 0
    }

    let reads = Collected<StorageKey>()
    private let memory = MemoryStorage()
    private let state = Mutex(State())

    /// The number of entries that were stored.
    var stores: Int { state.withLock { $0.stores } }

    /// The number of removals of one key or of all keys.
    var removals: Int { state.withLock { $0.removals } }

    func hangs(_ operation: StorageEntry.Failure.Operation, _ hangs: Bool) {
        let waiting = state.withLock { state in
            if hangs { state.hanging.insert(operation) } else { state.hanging.remove(operation) }
            defer { if !hangs { state.waiting = [] } }
            return hangs ? [] : state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func wait(_ operation: StorageEntry.Failure.Operation) async {
        await withCheckedContinuation { continuation in
            let hangs = state.withLock { state in
                guard state.hanging.contains(operation) else { return false }
                state.waiting.append(continuation)
                return true
            }
            if !hangs { continuation.resume() }
        }
    }

    func entry(for key: StorageKey) async throws -> StorageEntry? {
        reads.add(key)
        await wait(.read)
        return memory.entry(for: key)
    }

    func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        await wait(.store)
        state.withLock { $0.stores += 1 }
        try memory.store(entry, for: key)
    }

    func removeEntry(for key: StorageKey) async throws {
        await wait(.remove)
        state.withLock { $0.removals += 1 }
        memory.removeEntry(for: key)
    }

    func removeAll() async throws {
        await wait(.remove)
        state.withLock { $0.removals += 1 }
        memory.removeAll()
    }
}
