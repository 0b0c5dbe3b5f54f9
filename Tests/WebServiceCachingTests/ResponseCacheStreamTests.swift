import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("Streams in a cache", .permit)
struct ResponseCacheStreamTests {
    typealias Reply = StreamCacheFixture.Reply

    /// The reasons that the tests of this suite expect in a timeline.
    static let refusalReasons = [
        "the length of the body differs from the announced length", "the body has more than 10 bytes",
        "the file of the body could not be written", "the response is an event stream", "the disk is too slow",
        "another cache stores the streamed body",
    ]

    private func explanation(_ task: SessionTask) -> [String] {
        task.timeline.explain().split(separator: "\n").map(String.init)
    }

    // MARK: Storing and serving

    @Test("A stream is stored in one file after its end, and served from it")
    func hit() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("one ", "two ", "three")
        #expect(try await fixture.stream() == "network one two three")
        #expect(try fixture.files() == ["one two three"])
        fixture.advance(by: 5)
        let task = fixture.task()
        let response = try await task.stream().value
        #expect(response.response.source == .cache)
        #expect(response.headers["Age"] == "5")
        #expect(response.response.age == .seconds(5))
        #expect(response.response.data.isEmpty)
        #expect(response.body.expectedLength == 13)
        #expect(try await response.body.collect(upTo: .max) == Data("one two three".utf8))
        #expect(response.body.trailers == [:])
        #expect(fixture.sent.values.count == 1)
        #expect(explanation(task).first == "The cache returned a stored response: 5 s old.")
        #expect(task.timeline.events.contains { $0.kind == .body && $0.detail == "13 bytes" })
        let statistics = fixture.cache.statistics
        #expect((statistics.hits, statistics.misses, statistics.stores) == (1, 1, 1))
        var entries: [ResponseCache.Entry] = []
        for try await entry in fixture.cache.entries { entries.append(entry) }
        #expect(entries.map(\.byteCount) == [13])
    }

    @Test("A body of any size is served from a storage of any kind", arguments: [0, 1, 65_536, 65_537, 1_000_000])
    func sizes(size: Int) async throws {
        let storage = try FileStorage(folder: TemporaryFolder.forTest().url)
        let fixture = try StreamCacheFixture(storage)
        let part = String(repeating: "x", count: size / 4)
        fixture.serve(part, part, part, part + String(repeating: "y", count: size % 4))
        let body = String(repeating: part, count: 4) + String(repeating: "y", count: size % 4)
        #expect(try await fixture.stream() == "network \(body)")
        #expect(try await fixture.stream() == "cache \(body)")
        let other = try StreamCacheFixture(storage, in: fixture.folder)
        #expect(try await other.stream() == "cache \(body)")
    }

    @Test("A stored stream serves a request in memory, and a response in memory serves a stream")
    func bothWays() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        #expect(try await fixture.stream("/a") == "network body")
        #expect(try await fixture.data("/a") == "cache body")
        #expect(try await fixture.data("/b") == "network body")
        #expect(try await fixture.stream("/b") == "cache body")
        #expect(try fixture.files() == ["body"])
    }

    @Test("A stored body that is larger than the limit of a request fails the request, as from a server")
    func limit() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        _ = try await fixture.stream()
        for isStreamed in [false, true] {
            var request = fixture.service.request(.GET, path: "/a")
            request.options.maximumResponseBytes = 3
            let task = fixture.service.sessionTask(request: request)
            let error = await #expect(throws: WebServiceError.self) {
                if isStreamed { _ = try await task.stream().value } else { _ = try await task.data().value }
            }
            #expect(error?.code == .responseTooLarge)
        }
    }

    @Test("Without a folder, streams bypass the cache")
    func noFolder() async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60"], "x")
        for _ in 0..<2 {
            let response = try await fixture.service.GET("/a").stream().value
            #expect(try await response.body.collect(upTo: 9) == Data("x".utf8))
        }
        #expect(fixture.sent.values.count == 2)
        #expect(fixture.cache.statistics == ResponseCache.Statistics())
    }

    @Test("Lines are served from a stored stream")
    func lines() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("a\nb", "c\n")
        for _ in 0..<2 {
            var lines: [String] = []
            for try await line in fixture.task().lines() { lines.append(line) }
            await fixture.cache.finishStoring()
            #expect(lines == ["a", "bc"])
        }
        #expect(fixture.sent.values.count == 1)
    }

    @Test("Event streams and handshakes of other protocols are neither stored nor served")
    func events() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("data: 1\n\n", headers: ["Content-Type": "Text/Event-Stream; charset=utf-8"])
        let task = fixture.task()
        #expect(try await task.stream().value.body.collect(upTo: 99) == Data("data: 1\n\n".utf8))
        #expect(explanation(task).contains("The cache did not store the response: the response is an event stream."))
        #expect(try await fixture.stream() == "network data: 1\n\n")
        fixture.serve("body")
        _ = try await fixture.stream("/b")
        #expect(try await fixture.stream("/b", ["Accept": "text/event-stream"]) == "network body")
        let handshake = fixture.task("/b")
        handshake.configure { $0.options[UpgradeTag.self] = true }
        #expect(try await handshake.stream().value.response.source == .network)
        #expect(try fixture.files() == ["body"])
    }

    // MARK: The rules of a cache

    @Test("A stale stream is validated, and its stored body is served with the new fields")
    func validation() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body", tag: "\"1\"")
        _ = try await fixture.stream()
        fixture.advance(by: 100)
        #expect(try await fixture.stream() == "revalidated body")
        #expect(fixture.sent.values.last?.headers[.ifNoneMatch] == "\"1\"")
        #expect(try await fixture.stream() == "cache body")
        fixture.advance(by: 100)
        #expect(try await fixture.data() == "revalidated body")
        #expect(try await fixture.stream() == "cache body")
        #expect(fixture.sent.values.count == 3)
        fixture.advance(by: 100)
        fixture.serve("new", tag: "\"2\"")
        #expect(try await fixture.stream() == "network new")
        #expect(try fixture.files() == ["new"])
        #expect(fixture.cache.statistics.revalidations == 2)
    }

    @Test("A request with its own condition receives 304 without a body")
    func ownCondition() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body", tag: "\"1\"")
        _ = try await fixture.stream()
        let response = try await fixture.task("/a", ["If-None-Match": "\"1\""]).data().validateNothing().response
        #expect(response.status == 304)
        #expect(fixture.sent.values.count == 1)
    }

    @Test("A stale stream replaces an error of the server or the connection")
    func staleIfError() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body", headers: ["Cache-Control": "max-age=1, stale-if-error=1000"])
        _ = try await fixture.stream()
        fixture.advance(by: 100)
        fixture.serve { _ in Reply(status: 503) }
        #expect(try await fixture.stream() == "cache body")
        fixture.serve { _ in Reply(error: URLError(.cannotConnectToHost)) }
        #expect(try await fixture.stream() == "cache body")
        #expect(try await fixture.data() == "cache body")
    }

    @Test("A stale stream is validated in the background, and a new body is stored there")
    func staleWhileRevalidate() async throws {
        let fixture = try StreamCacheFixture()
        let control = "max-age=10, stale-while-revalidate=1000"
        fixture.serve("old", tag: "\"1\"", control: control)
        _ = try await fixture.stream()
        fixture.advance(by: 20)
        fixture.serve("new", tag: "\"2\"", control: control)
        #expect(try await fixture.stream() == "cache old")
        try await eventually { try fixture.files() == ["new"] }
        #expect(try await fixture.stream() == "cache new")
        #expect(fixture.sent.values.count == 2)
        fixture.advance(by: 20)
        #expect(try await fixture.stream() == "cache new")
        await eventually { fixture.cache.statistics.revalidations == 1 }
        #expect(try await fixture.data() == "cache new")
        #expect(try await fixture.task().stream().value.response.age == .zero)
        #expect(fixture.sent.values.count == 3)
    }

    @Test("The directives of requests apply to streams")
    func demands() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        #expect(try await fixture.stream("/a", ["Cache-Control": "no-store"]) == "network body")
        #expect(try fixture.files() == [])
        let failed = try? await fixture.task("/a", ["Cache-Control": "only-if-cached"]).stream().value
        #expect(failed == nil)
        _ = try await fixture.stream()
        #expect(try await fixture.stream("/a", ["Cache-Control": "only-if-cached"]) == "cache body")
        #expect(try await fixture.stream("/a", ["Range": "bytes=0-1"]) == "network body")
        #expect(try await fixture.stream("/a", policy: .reloadIgnoringLocalCacheData) == "network body")
        #expect(try await fixture.stream("/a", policy: .returnCacheDataDontLoad) == "cache body")
        #expect(try fixture.files() == ["body"])
    }

    @Test("HEAD is served with the fields of a stored stream")
    func head() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body", headers: ["X-Field": "1"])
        _ = try await fixture.stream()
        let response = try await fixture.task("/a", method: .HEAD).data().response
        #expect(response.source == .cache)
        #expect(response.header("X-Field") == "1")
        #expect(response.data.isEmpty)
        #expect(try await fixture.stream("/a", method: .HEAD) == "cache ")
    }

    @Test("A streamed response to QUERY is stored for its content")
    func query() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("body")
        var sources: [Response.Source] = []
        for content in ["1", "1", "2"] {
            let task = fixture.task("/a", method: .QUERY).setBody(.data(Data(content.utf8)))
            let response = try await task.stream().value
            #expect(try await response.body.collect(upTo: 9) == Data("body".utf8))
            await fixture.cache.finishStoring()
            sources.append(response.response.source)
        }
        #expect(sources == [.network, .cache, .network])
    }

    @Test("Vary selects among the streams for one URL, of which 8 are stored")
    func vary() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve { request in
            Reply(
                headers: ["Cache-Control": "max-age=60", "Vary": "Accept-Language"],
                parts: ["in " + (request.headers[.acceptLanguage] ?? "-")])
        }
        let languages = (0..<10).map { "l\($0)" }
        for language in languages {
            #expect(try await fixture.stream("/a", ["Accept-Language": language]) == "network in \(language)")
        }
        for language in languages.suffix(8) {
            #expect(try await fixture.stream("/a", ["Accept-Language": language]) == "cache in \(language)")
        }
        #expect(try fixture.files() == languages.suffix(8).map { "in \($0)" })
    }

    @Test("Streams are not shared between accounts, and not stored after the account has changed")
    func accounts() async throws {
        let fixture = try StreamCacheFixture()
        fixture.signIn("ann")
        fixture.serve("ann's")
        _ = try await fixture.stream()
        fixture.signIn("bob")
        fixture.serve("bob's")
        #expect(try await fixture.stream() == "network bob's")
        fixture.signIn("ann")
        #expect(try await fixture.stream() == "cache ann's")
        let task = fixture.task("/b")
        let response = try await task.stream().value
        fixture.signIn("bob")
        _ = try await response.body.collect(upTo: .max)
        await fixture.cache.finishStoring()
        #expect(
            explanation(task).contains(
                "The cache did not store the response: the account has changed since the exchange started."))
        #expect(try await fixture.remainingFiles() == ["ann's", "bob's"])
    }

    @Test("A response that must not be stored leaves no file")
    func refusals() async throws {
        let fixture = try StreamCacheFixture()
        for headers: Headers in [["Cache-Control": "no-store"], ["Vary": "*"]] {
            fixture.serve("body", headers: headers)
            for _ in 0..<2 { #expect(try await fixture.stream() == "network body") }
        }
        fixture.serve { _ in Reply(status: 206, parts: ["part"]) }
        #expect(try await fixture.stream() == "network part")
        #expect(try fixture.names() == [])
    }

    // MARK: Incomplete bodies

    @Test("A reader that leaves the loop or is cancelled, and a body that fails, leave nothing")
    func incomplete() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve { _ in Reply(headers: ["Cache-Control": "max-age=60"], parts: ["one", "two"], ends: false) }
        let task = fixture.task()
        for try await _ in try await task.stream().value.body { break }
        #expect(try await fixture.remainingFiles() == [])

        let endless = fixture.task()
        let reader = Task { try await endless.stream().value.body.collect(upTo: .max) }
        try await eventually { try fixture.names().count == 1 }
        reader.cancel()
        await #expect(throws: URLError.self) { try await reader.value }
        #expect(try await fixture.remainingFiles() == [])

        let cancelled = fixture.task()
        let body = try await cancelled.stream().value.body
        cancelled.cancel()
        body.cancel()
        await #expect(throws: URLError.self) { _ = try await body.collect(upTo: .max) }

        fixture.serve { _ in
            Reply(headers: ["Cache-Control": "max-age=60"], parts: ["one"], error: URLError(.networkConnectionLost))
        }
        await #expect(throws: URLError.self) { try await fixture.stream() }
        #expect(try await fixture.remainingFiles() == [])
        #expect(fixture.cache.statistics.stores == 0)
    }

    enum Ending: CaseIterable, Sendable { case leaves, cancelsBody, cancelsTask, releases, fails }

    @Test("A stream that ends at any point leaves the stored responses unchanged", arguments: Ending.allCases)
    func endings(_ ending: Ending) async throws {
        let fixture = try StreamCacheFixture()
        let parts = (0..<6).map { String(repeating: "\($0)", count: 1_000) }
        let whole = parts.joined()
        for isStored in [false, true] {
            for count in 0..<parts.count {
                fixture.serve { _ in
                    let fails = ending == .fails && !isStored
                    return Reply(
                        headers: ["Cache-Control": "max-age=60"], parts: fails ? Array(parts.prefix(count)) : parts,
                        error: fails ? URLError(.networkConnectionLost) : nil)
                }
                let task = fixture.task()
                var body: ResponseBody? = try? await task.stream(bufferSize: 1).value.body
                var bytes = body?.makeAsyncIterator()
                var received = Data()
                while received.count < count * 1_000, let part = try await bytes?.next() { received += part }
                #expect(Data(whole.utf8).starts(with: received))
                switch ending {
                case .leaves: bytes = nil
                case .cancelsBody: body?.cancel()
                case .cancelsTask:
                    let reader = Task { [bytes] in
                        var bytes = bytes
                        while try await bytes?.next() != nil {}
                    }
                    reader.cancel()
                    _ = await reader.result
                case .releases: (body, bytes) = (nil, nil)
                case .fails where !isStored: while let part = try? await bytes?.next() { received += part }
                case .fails: try #require(truncate(fixture.file().path, off_t(count)) == 0)
                }
                await fixture.cache.finishStoring()
                if ending == .cancelsTask {
                    // The reader may have finished before its cancellation.
                    #expect(try await [[], [whole]].contains(fixture.remainingFiles()))
                } else if ending != .cancelsBody {
                    let files = try await fixture.remainingFiles()
                    #expect(files == (isStored ? [ending == .fails ? String(whole.prefix(count)) : whole] : []))
                }
                (body, bytes) = (nil, nil)
                if isStored || count == parts.count - 1 {
                    fixture.serve { _ in Reply(headers: ["Cache-Control": "max-age=60"], parts: parts) }
                    let served = try await fixture.stream()
                    #expect(served.hasSuffix(" \(whole)"))
                    #expect(try await fixture.remainingFiles() == [whole])
                }
                withExtendedLifetime(task) {}
            }
        }
    }

    @Test("A stored response remains if the body of a new one is incomplete")
    func incompleteReplacement() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("old")
        _ = try await fixture.stream()
        fixture.serve { _ in
            Reply(headers: ["Cache-Control": "max-age=60"], parts: ["new"], error: URLError(.networkConnectionLost))
        }
        _ = try? await fixture.stream(policy: .reloadIgnoringLocalCacheData)
        #expect(try await fixture.remainingFiles() == ["old"])
        #expect(try await fixture.stream() == "cache old")
    }

    @Test("A body of another length than its head announced is not stored", arguments: [3, 5] as [Int64])
    func length(announced: Int64) async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve { _ in
            Reply(headers: ["Cache-Control": "max-age=60"], parts: ["bo", "dy"], length: announced)
        }
        let task = fixture.task()
        #expect(try await task.stream().value.body.collect(upTo: .max) == Data("body".utf8))
        #expect(
            explanation(task).contains(
                "The cache did not store the response: the length of the body differs from the announced length."))
        #expect(try await fixture.remainingFiles() == [])
    }

    @Test("A body beyond the maximum is delivered and not stored", arguments: [nil, 12] as [Int64?])
    func tooLarge(announced: Int64?) async throws {
        let fixture = try StreamCacheFixture(maximumBytes: 100, maximumBodyBytes: 10)
        fixture.serve("old")
        _ = try await fixture.stream()
        fixture.serve { _ in
            Reply(headers: ["Cache-Control": "max-age=60"], parts: ["123456", "789012"], length: announced)
        }
        var request = fixture.service.request(.GET, path: "/a")
        request.options.cachePolicy = .reloadIgnoringLocalCacheData
        let task = fixture.service.sessionTask(request: request)
        #expect(try await task.stream().value.body.collect(upTo: .max) == Data("123456789012".utf8))
        await fixture.cache.finishStoring()
        #expect(
            explanation(task).contains("The cache did not store the response: the body has more than 10 bytes."))
        #expect(try await fixture.remainingFiles() == [])
    }

    @Test("A full disk does not fail a stream, which is not stored", .enabled(if: SmallDisk.canMount))
    func fullDisk() async throws {
        try await SmallDisk.with(kilobytes: 256) { disk in
            let fixture = try StreamCacheFixture(in: disk.appendingPathComponent("bodies"))
            let part = String(repeating: "x", count: 100_000)
            fixture.serve(part, part, part, part)
            let task = fixture.task()
            #expect(try await task.stream().value.body.collect(upTo: .max).count == 400_000)
            await eventually {
                explanation(task).contains(
                    "The cache did not store the response: the file of the body could not be written.")
            }
            #expect(try await fixture.remainingFiles() == [])
        }
    }

    @Test(
        "A disk that does not respond delays a reader by at most 10 seconds more than its other duration",
        arguments: [0, 30])
    func slowDisk(seconds: Int) async throws {
        let clock = ManualTimekeeper()
        let folder = try BodyFolder(TemporaryFolder.forTest().url, maximumBytes: 1 << 30)
        let refusals = Collected<String>()
        let draft = BodyDraft(
            in: folder, for: StorageKey(identifier: "GET https://h/"), expecting: nil, TaskClock(clock)
        ) { _ in
        } onRefusal: {
            refusals.add($0.reason)
        }
        let disk = DispatchSemaphore(value: 0)
        draft.queue.run { disk.wait() }
        await draft.add(Data(count: 400_000))
        clock.advance(by: .seconds(seconds))
        let start = clock.instant
        let reader = Task { await draft.add(Data(count: 400_000)) }
        await eventually { clock.pending > 0 }
        clock.advance(by: .seconds(seconds + 10) - .nanoseconds(1))
        #expect(refusals.values == [])
        clock.advance(by: .nanoseconds(1))
        await reader.value
        #expect(refusals.values == ["the disk is too slow"])
        #expect(clock.instant - start == UInt64(seconds + 10) * 1_000_000_000)
        disk.signal()
        await draft.add(Data(count: 400_000))
        draft.finish()
        try await draft.queue.result {}
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [])
    }

    @Test("Of two caches in one list, the inner one stores a stream")
    func twoCaches() async throws {
        let (inner, outer) = (try StreamCacheFixture(), try StreamCacheFixture())
        inner.serve("body")
        inner.service.interceptors = [outer.cache, inner.cache]
        let task = inner.task()
        #expect(try await task.stream().value.body.collect(upTo: 9) == Data("body".utf8))
        await inner.cache.finishStoring()
        #expect(
            explanation(task).contains("The cache did not store the response: another cache stores the streamed body."))
        #expect(try inner.files() == ["body"])
        #expect(try outer.files() == [])
    }

    @Test("Two identical streams at once leave one file")
    func concurrent() async throws {
        let fixture = try StreamCacheFixture()
        fixture.serve("one", "two")
        let bodies = try await [fixture.task().stream().value.body, fixture.task().stream().value.body]
        var iterators = bodies.map { $0.makeAsyncIterator() }
        var isOpen = [true, true]
        while isOpen.contains(true) {
            for index in 0...1 where isOpen[index] { isOpen[index] = try await iterators[index].next() != nil }
        }
        await fixture.cache.finishStoring()
        #expect(try await fixture.remainingFiles() == ["onetwo"])
        #expect(try await fixture.stream() == "cache onetwo")
        #expect(fixture.sent.values.count == 2)
    }
}
