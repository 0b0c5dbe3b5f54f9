import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("Folder with bodies", .permit)
struct BodyFolderTests {
    // MARK: Damage

    enum Damage: CaseIterable, Sendable { case removed, truncated, extended, link, folder, fifo, unreadable }

    @Test("A file that is missing, of another size or of another kind counts as not stored", arguments: Damage.allCases)
    func damage(_ damage: Damage) async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        _ = try await fixture.stream()
        let file = try fixture.file()
        let other = try TemporaryFolder.forTest().file("other", Data("evil".utf8))
        switch damage {
        case .removed: try FileManager.default.removeItem(at: file)
        case .truncated: try #require(truncate(file.path, 3) == 0)
        case .extended: try #require(truncate(file.path, 5) == 0)
        case .link:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createSymbolicLink(at: file, withDestinationURL: other)
        case .folder:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        case .fifo:
            try FileManager.default.removeItem(at: file)
            try #require(mkfifo(file.path, 0o600) == 0)
        case .unreadable:
            try FileManager.default.removeItem(at: fixture.folder)
        }
        let task = fixture.task()
        #expect(try await task.data().value == Data("body".utf8))
        #expect(
            task.timeline.events.contains { $0.detail == "the file of the stored body is missing or damaged" })
        #expect(fixture.sent.values.count == 2)
        // Now the response is stored in memory.
        #expect(try await fixture.stream() == "cache body")
    }

    @Test("A file that is truncated while it is read ends the stream with an error, without other bytes")
    func truncatedMeanwhile() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve(String(repeating: "x", count: 1_000_000))
        _ = try await fixture.stream()
        let body = try await fixture.task().stream(bufferSize: 1).value.body
        var bytes = body.makeAsyncIterator()
        #expect(try await bytes.next()?.isEmpty == false)
        try #require(truncate(fixture.file().path, 500_000) == 0)
        let error = await #expect(throws: WebServiceError.self) {
            while let part = try await bytes.next() { #expect(part.allSatisfy { $0 == UInt8(ascii: "x") }) }
        }
        #expect(error?.code == .storage)
    }

    @Test("A reader receives the old body to its end while the file is replaced or removed", arguments: [true, false])
    func openReader(isReplaced: Bool) async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve(String(repeating: "o", count: 1_000_000))
        _ = try await fixture.stream()
        let body = try await fixture.task().stream(bufferSize: 1).value.body
        var bytes = body.makeAsyncIterator()
        var received = try #require(try await bytes.next())
        if isReplaced {
            fixture.serve("new")
            _ = try await fixture.stream(policy: .reloadIgnoringLocalCacheData)
            #expect(try fixture.files() == ["new"])
        } else {
            try await fixture.cache.removeAll()
            #expect(try fixture.names() == [])
        }
        while let part = try await bytes.next() { received += part }
        #expect(received == Data(repeating: UInt8(ascii: "o"), count: 1_000_000))
    }

    @Test("finishStoring waits for the folder, even in a cancelled task")
    func finishing() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        #expect(try await fixture.task().stream().value.body.collect(upTo: .max) == Data("body".utf8))
        let isFinished = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await fixture.cache.finishStoring()
        }.value
        #expect(isFinished)
        #expect(try fixture.files() == ["body"])
    }

    @Test("A stored body is read only as its reader takes it, and its reader can be cancelled")
    func demand() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve(String(repeating: "x", count: 10_000_000))
        _ = try await fixture.stream()
        let task = fixture.task().onProgress { _ in }
        let body = try await task.stream(bufferSize: 100_000).value.body
        var bytes = body.makeAsyncIterator()
        #expect(try #require(try await bytes.next()).count <= 200_000)
        #expect(fixture.service.exchanges.map(\.kind) == [.stream])
        let progress = fixture.service.exchanges.first?.progress
        #expect(progress?.bytesReceived ?? .max <= 400_000)
        #expect(progress?.bytesToReceive == 10_000_000)
        fixture.service.cancelAll()
        await #expect(throws: URLError(.cancelled)) { while try await bytes.next() != nil {} }
        #expect(fixture.service.exchanges.isEmpty)
    }

    #if os(Linux)
    @Test("A file is closed after it has been stored or read, even if the task is retained")
    func descriptors() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        var tasks: [SessionTask] = []
        var responses: [StreamedResponse] = []
        for _ in 0..<3 {
            tasks.append(fixture.task())
            responses.append(try await tasks[tasks.count - 1].stream().value)
            _ = try await responses[responses.count - 1].body.collect(upTo: .max)
            await fixture.cache.finishStoring()
        }
        let path = fixture.folder.resolvingSymlinksInPath().path + "/"
        await eventually {
            let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
            return !open.contains { number in
                // Another test may have closed the descriptor.
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"))?
                    .hasPrefix(path) == true
            }
        }
        withExtendedLifetime((tasks, responses)) {}
    }
    #endif

    // MARK: Removal

    @Test("The removal, the invalidation and the clearing of responses remove their files")
    func removal() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body", headers: ["Cache-Groups": "\"g\""])
        for path in ["/a", "/b", "/c", "/d"] { _ = try await fixture.stream(path) }
        #expect(try fixture.files().count == 4)
        try await fixture.cache.remove(try #require(URL(string: "https://h/v1/a")))
        await fixture.cache.finishStoring()
        #expect(try fixture.files().count == 3)
        _ = try await fixture.task("/b", method: .DELETE).data().response
        await fixture.cache.finishStoring()
        #expect(try fixture.files().count == 2)
        fixture.serve("new", headers: ["Cache-Control": "no-store"])
        _ = try await fixture.stream("/c", policy: .reloadIgnoringLocalCacheData)
        #expect(try fixture.files().count == 1)
        fixture.serve("group")
        try await fixture.cache.invalidate(group: "g", for: try #require(URL(string: "https://h/")))
        #expect(try await fixture.stream("/d") == "network group")
        #expect(try fixture.files() == ["group"])
        try await fixture.cache.removeAll()
        #expect(try fixture.names() == [])
        #expect(try await fixture.stream("/d") == "network group")
    }

    @Test("A response is not stored if the stored ones are removed while its body arrives", arguments: [true, false])
    func overtaken(isAll: Bool) async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("one", "two")
        let body = try await fixture.task().stream().value.body
        var bytes = body.makeAsyncIterator()
        _ = try await bytes.next()
        if isAll {
            try await fixture.cache.removeAll()
        } else {
            _ = try await fixture.task("/a", method: .PUT).data().response
        }
        while try await bytes.next() != nil {}
        await fixture.cache.finishStoring()
        #expect(try await fixture.remainingFiles() == [])
        #expect(try await fixture.stream() == "network onetwo")
    }

    @Test("An entry that the storage does not accept leaves no file")
    func storageFailure() async throws {
        let fixture = try StreamCacheFixture(try FileStorage(folder: TemporaryFolder.forTest().url, maximumBytes: 10))
        fixture.serve("body")
        #expect(try await fixture.stream() == "network body")
        #expect(try fixture.names() == [])
        #expect(fixture.cache.statistics.storageFailures == 1)
    }

    @Test("The least recently used bodies are removed beyond the maximum")
    func leastRecentlyUsed() async throws {
        let fixture = try StreamCacheFixture(maximumBytes: 30, maximumBodyBytes: 10)
        fixture.serve { request in
            .init(headers: ["Cache-Control": "max-age=60"], parts: ["body of " + request.url.suffix(2)])
        }
        for path in ["/a", "/b", "/c"] { _ = try await fixture.stream(path) }
        #expect(try await fixture.stream("/a") == "cache body of /a")
        _ = try await fixture.stream("/d")
        #expect(try fixture.files() == ["/a", "/c", "/d"].map { "body of " + $0 })
        #expect(fixture.cache.statistics.evictions == 1)
        #expect(try await fixture.stream("/b") == "network body of /b")
        #expect(try fixture.files() == ["/a", "/b", "/d"].map { "body of " + $0 })
    }

    // MARK: Processes

    @Test("Files that no response refers to are removed when a cache is created, and others remain")
    func orphans() async throws {
        let storage = try FileStorage(folder: TemporaryFolder.forTest().url)
        let fixture = try StreamCacheFixture(storage)
        fixture.serve("body")
        _ = try await fixture.stream("/a")
        let stored = try #require(try fixture.names().first)
        let key = String(stored.prefix(32))
        let orphans = [
            "\(key)-0123456789abcdef.body", "\(String(repeating: "0", count: 32))-0123456789abcdef.body",
            "0123456789abcdef.part",
        ]
        let others = ["notes.txt", "x.body", "\(key)-0123456789abcdeX.body", ".part"]
        for name in orphans + others {
            try Data("x".utf8).write(to: fixture.folder.appendingPathComponent(name))
        }
        let bodies = try BodyFolder(fixture.folder, maximumBytes: 100)
        let draft = try bodies.makeDraft()
        let next = try StreamCacheFixture(storage, in: fixture.folder)
        await next.cache.removeOrphans()
        await next.cache.finishStoring()
        #expect(try Set(fixture.names()) == Set(others + [stored, draft.name]))
        #expect(try await next.stream("/a") == "cache body")
    }

    @Test("A body is not removed between its completion and the storing of its response")
    func publication() async throws {
        let storage = try FileStorage(folder: TemporaryFolder.forTest().url)
        let fixture = try StreamCacheFixture(storage)
        let bodies = try BodyFolder(fixture.folder, maximumBytes: 100)
        let draft = BodyDraft(
            in: bodies, for: StorageKey(identifier: "GET https://h/"), expecting: nil, .system, onFinish: { _ in },
            onRefusal: { _ in })
        await draft.add(Data("x".utf8))
        draft.finish()
        try await draft.publish()
        await fixture.cache.removeOrphans()
        await fixture.cache.finishStoring()
        #expect(try fixture.names() == [draft.file.name])
    }

    @Test("With a storage in memory, the files of an earlier process are removed")
    func memory() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        _ = try await fixture.stream()
        let next = try StreamCacheFixture(in: fixture.folder)
        await next.cache.removeOrphans()
        await next.cache.finishStoring()
        #expect(try fixture.names() == [])
        #expect(try await fixture.stream() == "network body")
    }

    @Test("Two caches over one storage and one folder never serve mixed or incomplete bodies", .permit(minutes: 5))
    func twoCaches() async throws {
        let storage = try FileStorage(folder: TemporaryFolder.forTest().url)
        let fixtures = try [StreamCacheFixture(storage, maximumBytes: 300_000)]
        let all = try fixtures + [StreamCacheFixture(storage, in: fixtures[0].folder, maximumBytes: 300_000)]
        for fixture in all {
            fixture.serve { request in
                let digit = String(request.url.suffix(1))
                let mark = String(Int.random(in: 0...9))
                return .init(
                    headers: ["Cache-Control": "max-age=60"],
                    parts: [digit] + Array(repeating: String(repeating: mark, count: 10_000), count: 5))
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, fixture) in all.enumerated() {
                group.addTask {
                    for round in 0..<amount(60, thorough: isSanitized ? 200 : 2_000) {
                        let path = "/\((round * (index + 2)) % 9)"
                        let policy: URLRequest.CachePolicy =
                            round % 3 == 0 ? .reloadIgnoringLocalCacheData : .useProtocolCachePolicy
                        if round % 7 == 1 {
                            for try await _ in try await fixture.task(path).stream().value.body { break }
                        }
                        if round % 11 == 1 { _ = try await fixture.task(path, method: .PUT).data().response }
                        let text = try await fixture.stream(path, policy: policy).split(separator: " ")[1]
                        #expect(text.count == 50_001)
                        #expect(text.first == path.last)
                        #expect(Set(text.dropFirst()).count == 1)
                    }
                }
            }
            try await group.waitForAll()
        }
        // The file of a stream that was abandoned may be removed later.
        try await eventually { try all[0].names().allSatisfy { $0.hasSuffix(".body") } }
        let size = try all[0].files().reduce(0) { $0 + $1.utf8.count }
        #expect(size <= 400_000)
    }

    @Test("10,000 bodies are stored, limited and opened again in linear time", .permit(minutes: 10))
    func many() async throws {
        let count = amount(1_000, thorough: 10_000)
        let storage = try FileStorage(folder: TemporaryFolder.forTest().url)
        let fixture = try StreamCacheFixture(storage, maximumBytes: Int64(count) * 5, maximumBodyBytes: 100)
        fixture.serve("0123456789")
        let start = ContinuousClock.now
        for index in 0..<count {
            let body = try await fixture.task("/\(index)").stream().value.body
            for try await _ in body {}
        }
        await eventually("the bodies are stored") { await fixture.cache.finishStoring() }
        print("\(count) bodies: \(ContinuousClock.now - start)")
        #expect(try fixture.names().count == count / 2)
        #expect(fixture.cache.statistics.evictions == count / 2)
        let opening = ContinuousClock.now
        let next = try StreamCacheFixture(storage, in: fixture.folder)
        await next.cache.removeOrphans()
        print("\(count / 2) bodies opened: \(ContinuousClock.now - opening)")
        #expect(try fixture.names().count == count / 2)
        #expect(try await next.stream("/\(count - 1)") == "cache 0123456789")
    }

    @Test("A folder that cannot be used is an error")
    func invalidFolder() throws {
        let file = try TemporaryFolder.forTest().file("file")
        let link = file.deletingLastPathComponent().appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file.deletingLastPathComponent())
        for url in [file, link, URL(string: "https://h/")] {
            let error = #expect(throws: WebServiceError.self) {
                _ = try BodyFolder(try #require(url), maximumBytes: 1)
            }
            #expect(error?.code == .storage)
        }
    }
}
