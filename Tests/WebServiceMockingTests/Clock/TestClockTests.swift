import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage
import WebServiceTransfers

@Suite(.permit) struct TestClockTests {
    private let clock: TestClock
    private let mock: MockService
    private var service: WebService { mock.service }

    init() {
        clock = TestClock()
        mock = MockService(clock: clock)
    }

    private static let silence: MockResponse = {
        var response = MockResponse(statusCode: 200)
        response.wire = .noResponse
        return response
    }()

    /// Resumes a task and returns a closure that returns whether it is complete.
    private func completion<Value>(of task: TypedTask<Value>) -> () -> Bool {
        let count = Counter()
        task.onCompletion { _ in count.add() }.resume()
        return { count.value > 0 }
    }

    /// Returns the error of a task, and the instant at which it is the result.
    private func failure<Value>(of task: TypedTask<Value>, within limit: Duration) async -> (any Error)? {
        let isComplete = completion(of: task)
        await clock.advance(by: limit - .milliseconds(1))
        guard !isComplete() else {
            Issue.record("the task ended before \(limit)")
            return nil
        }
        await clock.advance(by: .milliseconds(1))
        do {
            _ = try await task.value
            return nil
        } catch {
            return error
        }
    }

    @Test("Retries give up after their budget of 30 seconds")
    func givesUp() async throws {
        let stub = mock.on(.GET, "/brewers", .status(503))
        service.interceptors = [RetryPolicy(maximumAttempts: 1_000, budget: .seconds(30))]
        let task = service.GET("/brewers").data().validate(statuses: [503]).resume()
        await clock.advance(by: .seconds(30))
        #expect(try await task.response.status == 503)
        #expect(stub.callCount > 4)
        #expect(stub.callCount < 12)
        #expect(clock.elapsed == .seconds(30))
    }

    @Test("The clock of a service is its test clock, and without one it is no test clock")
    func clockOfService() async {
        let clock = TestClock()
        let service = WebService(baseURLString: "", clock: clock)
        #expect(service.clock as? TestClock === clock)
        #expect(service.clone().clock as? TestClock === clock)
        #expect(!(WebService(baseURLString: "").clock is TestClock))
        let hasExpired = Task(executorPreference: clock.executor) {
            try await service.clock.sleep(for: .seconds(30))
            return clock.elapsed
        }
        await clock.advance(by: .seconds(60))
        #expect(await (try? hasExpired.value) == .seconds(30))  // an error is no value
    }

    @Test("A sleep until an instant that has passed returns at once, unless its task is cancelled")
    func pastSleep() async throws {
        await clock.advance(by: .seconds(2))
        try await clock.sleep(until: clock.now.advanced(by: .seconds(-1)))
        try await clock.sleep(for: .zero)
        #expect(clock.elapsed == .seconds(2))
        let cancelled = Task { [clock] in
            withUnsafeCurrentTask { $0?.cancel() }
            try await clock.sleep(for: .zero)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }

    @Test("A task fails at its deadline and not before")
    func deadline() async throws {
        mock.on(.any, Self.silence)
        let task = service.GET("/").setTimeout(.seconds(100)).setDeadline(.seconds(30)).data()
        let error = try #require(await failure(of: task, within: .seconds(30)) as? WebServiceError)
        #expect(error.code == .deadline)
    }

    @Test("A mock session times out after the idle timeout and not before")
    func timeout() async throws {
        mock.on(.any, Self.silence)
        let task = service.GET("/").setTimeout(.seconds(20)).setDeadline(.seconds(100)).data()
        let error = try #require(await failure(of: task, within: .seconds(20)) as? URLError)
        #expect(error.code == .timedOut)
    }

    @Test("A delayed mock responds at its instant and not before")
    func delay() async throws {
        mock.on(.any, .text("late").after(.seconds(5)))
        let task = service.GET("/").string()
        let isComplete = completion(of: task)
        await clock.advance(by: .milliseconds(4_999))
        #expect(!isComplete())
        await clock.advance(by: .milliseconds(1))
        #expect(isComplete())
        #expect(try await task.value == "late")
    }

    @Test("A stored response of the HTTP cache is fresh until it expires")
    func cache() async throws {
        let stub = mock.on(.any, .text("ale").header(.cacheControl, "max-age=60"))
        let cache = ResponseCache(storage: MemoryStorage())
        service.interceptors = [cache]
        for (advance, calls) in [(0, 1), (59, 1), (2, 2), (59, 2)] {
            await clock.advance(by: .seconds(advance))
            #expect(try await service.GET("/").string().value == "ale")
            #expect(await cache.finishStoring())
            #expect(stub.callCount == calls)
        }
    }

    struct Brewers: HTTPServiceRequest, RawStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "brewers" }
        func request(for service: WebService) throws -> Request { service.request(.GET, path: "/brewers") }
    }

    @Test("A stored value has the age of the clock, and is refused after its maximum age")
    func storage() async throws {
        mock.on(.GET, "/brewers", .text("Long Trail"))
        service.storages = [MemoryStorage()]
        service.endpoints = [HTTPEndpoint()]
        _ = try await service.perform(Brewers()).value
        await service.finishStoring()
        await clock.advance(by: .seconds(3_600))
        let stored = try await service.stored(Brewers(), maximumAge: .seconds(3_600)).value
        #expect(stored.age == .seconds(3_600))
        #expect(stored.date == clock.date.addingTimeInterval(-3_600))
        await clock.advance(by: .seconds(1))
        let error = await #expect(throws: WebServiceError.self) {
            try await service.stored(Brewers(), maximumAge: .seconds(3_600)).value
        }
        #expect(error?.code == .noStoredData)
    }

    @Test("A credential is refreshed when it is about to expire by the clock")
    func refreshWindow() async throws {
        mock.on(.any, .status(204))
        let refreshes = Counter()
        let clock = clock
        let first = Credential.bearer("first", expires: clock.date.addingTimeInterval(100))
        service.interceptors = [
            Authentication(
                TokenSource(
                    { first },
                    refresh: { _ in
                        refreshes.add()
                        return .bearer("second", expires: clock.date.addingTimeInterval(100))
                    }), leeway: .seconds(30))
        ]
        for (advance, token, count) in [(0, "first", 0), (69, "first", 0), (2, "second", 1)] {
            await clock.advance(by: .seconds(advance))
            _ = try await service.GET("/").empty().value
            #expect(mock.receivedRequests.last?.headers[.authorization] == "Bearer \(token)")
            #expect(refreshes.value == count)
        }
    }

    @Test("A cookie expires by the clock of the service, and of its jar")
    func cookies() async throws {
        mock.on(.any, .status(204)).times(3)
        mock.on(.GET, "/login", .status(204).header(.setCookie, "flavor=dark; Max-Age=60"))
        let jar = CookieJar(clock: clock)
        for cookieJar in [CookieJar(), jar] {
            service.cookieJar = cookieJar
            _ = try await service.GET("/login").empty().value
            for (advance, cookie) in [(59, "flavor=dark"), (1, nil)] as [(Int, String?)] {
                await clock.advance(by: .seconds(advance))
                mock.on(.GET, "/me", .status(204))
                _ = try await service.GET("/me").empty().value
                #expect(mock.receivedRequests.last?.headers[.cookie] == cookie)
            }
        }
        #expect(jar.cookies.isEmpty)
    }

    @Test("A mock of a typed request is delayed by the clock")
    func endpoint() async throws {
        service.endpoints = [MockRequestEndpoint(delay: .seconds(3)) { (_: Brewers) in "Trillium" }]
        let task = service.perform(Brewers())
        let isComplete = completion(of: task)
        await clock.advance(by: .milliseconds(2_999))
        #expect(!isComplete())
        await clock.advance(by: .milliseconds(1))
        #expect(try await task.value == "Trillium")
    }

    @Test("An event stream reconnects after its delay, and continues after the last event")
    func events() async throws {
        for (number, last) in [(1, String?.none), (2, "1"), (3, "2")] {
            let condition = last.map { RequestMatcher.header("Last-Event-ID", $0) } ?? !.header("Last-Event-ID")
            mock.on(
                condition, .text("id: \(number)\ndata: brew \(number)\n\n").header(.contentType, "text/event-stream"))
        }
        let events = service.GET("/events").events(.reconnecting(baseDelay: .seconds(10)))
        let received = Mutex<[String]>([])
        let reader = Task(executorPreference: clock.executor) {
            for try await event in events.prefix(3) { received.withLock { $0.append(event.data) } }
        }
        await clock.advance(by: .seconds(4))
        #expect(received.withLock { $0 } == ["brew 1"])
        await clock.advance(by: .seconds(26))
        try await reader.value
        #expect(received.withLock { $0 } == ["brew 1", "brew 2", "brew 3"])
    }

    @Test("The rate of a download is limited by the clock")
    func download() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("clock-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        mock.on(.any, MockResponse(statusCode: 200, data: Data(count: 100_000)))
        let task = service.GET("/").download(to: folder.appendingPathComponent("brew"), bytesPerSecond: 10_000)
        let isComplete = completion(of: task)
        await clock.advance(by: .seconds(4))
        #expect(!isComplete())
        await clock.advance(by: .seconds(8))
        #expect(try await task.value.byteCount == 100_000)
    }

    @Test("Work that becomes due during an advance runs at its own instant, in the order of time")
    func order() async throws {
        let log = Log()
        let clock = clock
        let first = Task(executorPreference: clock.executor) { try await log.rest("a", 3, clock) }
        let second = Task(executorPreference: clock.executor) { try await log.rest("b", 2, clock) }
        await clock.advance(by: .seconds(5))
        #expect(log.lines == ["b 2.0 seconds", "a 3.0 seconds", "b 4.0 seconds"])
        await clock.advance(by: .seconds(2))
        #expect(log.lines.last == "a 6.0 seconds")
        #expect(clock.date == Date(timeIntervalSince1970: 1_767_225_607))
        try await first.value
        try await second.value
    }

    @Test("An advance waits for a handler that needs some time to respond")
    func slowHandler() async throws {
        mock.on(.any) { _ in
            var count = 0
            while count < 10_000_000 { count += 1 }
            return .status(count > 0 ? 503 : 200)
        }
        service.interceptors = [RetryPolicy(maximumAttempts: 3)]
        let isComplete = completion(of: service.GET("/").data())
        await clock.advance(by: .seconds(3))
        #expect(isComplete())
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("Pauses of retries depend on the seed of the clock only")
    func seeds() async throws {
        func pauses(seed: UInt64) async throws -> [Duration] {
            let clock = TestClock(seed: seed)
            let mock = MockService(clock: clock)
            mock.service.interceptors = [RetryPolicy(maximumAttempts: 5)]
            mock.on(.any, .status(503))
            let task = mock.service.GET("/").data().resume()
            await clock.advance(by: .seconds(60))
            _ = try? await task.value  // the status is not accepted
            return task.timeline.events.filter { $0.kind == .wait }.compactMap(\.duration)
        }
        let first = try await pauses(seed: 7)
        #expect(first.count == 4)
        #expect(try await pauses(seed: 7) == first)
        #expect(try await pauses(seed: 8) != first)
    }

    @Test("A cancelled advance returns, and a cancelled sleep throws")
    func cancellation() async throws {
        let clock = clock
        let sleeper = Task(executorPreference: clock.executor) { try await clock.sleep(for: .seconds(5)) }
        let driver = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await clock.advance(by: .seconds(10))
        }
        #expect(await !driver.value)
        #expect(clock.elapsed == .zero)
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
    }

    @Test("Something that schedules itself at once stops the clock at that instant")
    func endless() async {
        let loop = Loop(TaskClock(clock))
        _ = TaskClock(clock).schedule(after: .seconds(3), loop)
        #expect(await !clock.advance(by: .seconds(10)))
        #expect(clock.elapsed == .seconds(3))
        loop.end()
        #expect(await clock.advance(by: .seconds(7)))
        #expect(clock.elapsed == .seconds(10))
    }

    @Test("Generic code measures and waits with the clock as with any clock of the standard library")
    func standardClock() async {
        func pause<AnyClock: Clock<Duration>>(by clock: AnyClock) async -> Duration {
            await clock.measure {
                try? await clock.sleep(for: .seconds(5), tolerance: .seconds(1))  // the task is not cancelled
            }
        }
        let clock = clock
        let start = clock.now
        let pause = Task(executorPreference: clock.executor) { await pause(by: clock) }
        await clock.advance(by: .seconds(20))
        #expect(await pause.value == .seconds(5))
        #expect(start.duration(to: clock.now) == .seconds(20))
        #expect(start.advanced(by: .seconds(20)) == clock.now)
        #expect(start < clock.now)
    }

    @Test("An advance waits for a handler and a storage that occupy their threads")
    func slowWork() async throws {
        mock.on(.GET, "/brewers", .text("Long Trail"))
        service.endpoints = [HTTPEndpoint()]
        service.storages = [SlowStorage()]
        let ended = Counter()
        service.perform(Brewers()).onCompletion { _ in
            Self.block()
            ended.add()
        }.resume()
        await clock.advance(by: .seconds(1))
        #expect(ended.value == 1)
        #expect(SlowStorage.count.value == 1)
    }

    @Test("An advance waits for the files of a storage")
    func files() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("clock-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        mock.on(.GET, "/brewers", .text(String(repeating: "x", count: 32 << 20)))
        service.endpoints = [HTTPEndpoint()]
        service.storages = [try FileStorage(folder: folder)]
        service.perform(Brewers()).resume()
        await clock.advance(by: .zero)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.map { $0.hasSuffix(".entry") } == [true])
    }

    @Test("An advance on the clock's executor waits for the child tasks of its task")
    func childTasks() async throws {
        mock.on(.any, .text("late").after(.seconds(20)))
        let text = try await withTaskExecutorPreference(clock.executor) {
            async let text = service.GET("/").string().value
            await clock.advance(by: .seconds(20))
            return try await text
        }
        #expect(text == "late")
        #expect(clock.elapsed == .seconds(20))
    }

    @Test("An advance waits for the main actor")
    func mainActor() async {
        mock.on(.any, .text("ale"))
        let ended = Counter()
        service.GET("/").updateUI { _ in ended.add() }.resume()
        await clock.advance(by: .zero)
        #expect(ended.value == 1)
    }

    @Test("Work with a credential uses the clock of the authentication")
    func credentials() async throws {
        let refreshes = Counter()
        let expired = Credential.bearer("first", expires: clock.date.addingTimeInterval(60))
        let source = TokenSource({ expired }) { _ in
            refreshes.add()
            return .bearer("second")
        }
        let authentication = Authentication(source, leeway: .zero, timekeeper: clock)
        for (advance, token) in [(59, "Bearer first"), (1, "Bearer second")] {
            await clock.advance(by: .seconds(advance))
            let value = try await authentication.withCredential(refreshingAfter: { _ in false }) { $0?.value }
            #expect(value == token)
        }
        #expect(refreshes.value == 1)
    }

    @Test("An advance waits for the handlers of a passive task with the clock")
    func passiveTask() async {
        let passive = PassiveTask<String>(clock: clock)
        let ended = Counter()
        passive.task.onCompletion { _ in
            Self.block()
            ended.add()
        }.resume()
        passive.complete("ale")
        await clock.advance(by: .zero)
        #expect(ended.value == 1)
    }

    @Test("An advance does not wait for an interceptor that awaits something else")
    func awaitingInterceptor() async throws {
        let (stream, feed) = AsyncStream<Void>.makeStream()
        mock.on(.any, .text("ale"))
        service.interceptors = [Gate(stream: stream)]
        let task = service.GET("/").string().resume()
        #expect(await clock.advance(by: .seconds(5)))
        #expect(mock.receivedRequests.isEmpty)
        feed.finish()
        #expect(try await task.value == "ale")
    }

    /// Occupies the thread for a while, which no mechanism can observe as a wait.
    private static func block() {
        var count = 0
        while count < 40_000_000 { count += 1 }
    }

    /// Awaits the end of a stream before each request.
    private struct Gate: Interceptor {
        let stream: AsyncStream<Void>
        func intercept(_ request: Request, next: Next) async throws -> Response {
            for await _ in stream {}
            return try await next(request)
        }
    }

    private struct SlowStorage: ResponseStorage {
        static let count = Counter()
        var classifications: Set<DataClassification>? { nil }
        func supports(_ request: any StorableRequest) -> Bool { true }
        func entry(for key: StorageKey) async throws -> StorageEntry? { nil }
        func store(_ entry: StorageEntry, for key: StorageKey) async throws {
            TestClockTests.block()
            Self.count.add()
        }
        func removeEntry(for key: StorageKey) async throws {}
        func removeAll() async throws {}
    }

    @Test("200 services advance their clocks at the same time")
    func concurrency() async {
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    let clock = TestClock()
                    let mock = MockService(clock: clock)
                    mock.on(.any, .status(503))
                    mock.service.interceptors = [RetryPolicy(maximumAttempts: 4)]
                    let task = mock.service.GET("/").data().resume()
                    await clock.advance(by: .seconds(10))
                    _ = try? await task.value  // the status is not accepted
                    return mock.receivedRequests.count
                }
            }
            for await count in group { #expect(count == 4) }
        }
    }
}

/// Schedules itself without a delay until it ends.
private final class Loop: AlarmTarget {
    private let clock: TaskClock
    private let hasEnded = Mutex(false)

    init(_ clock: TaskClock) { self.clock = clock }

    func end() { hasEnded.withLock { $0 = true } }

    func ring() { if !hasEnded.withLock({ $0 }) { _ = clock.schedule(after: .zero, self) } }
}

/// Records the instants at which tasks continue.
private final class Log: Sendable {
    private let state = Mutex<[String]>([])
    var lines: [String] { state.withLock { $0 } }

    /// Waits twice.
    func rest(_ name: String, _ seconds: Int, _ clock: TestClock) async throws {
        for _ in 0..<2 {
            try await clock.sleep(for: .seconds(seconds))
            state.withLock { $0.append("\(name) \(clock.elapsed)") }
        }
    }
}
