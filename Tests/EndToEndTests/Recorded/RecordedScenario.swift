import Foundation
import TestSupport
import WebServiceCaching
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceResilience
import WebServiceStorage
import WebServiceTransfers

/// One or more related exchanges whose transcript is recorded.
struct RecordedScenario: Sendable {
    let name: String
    /// Runs the exchanges until they have ended, and returns their tasks.
    let run: @Sendable (MockService, TestClock) async throws -> [SessionTask]

    init(_ name: String, _ run: @escaping @Sendable (MockService, TestClock) async throws -> [SessionTask]) {
        self.name = name
        self.run = run
    }

    /// Creates a scenario of one task, which ends within ten minutes.
    init(_ name: String, task: @escaping @Sendable (MockService) -> SessionTask) {
        self.init(name) { mock, clock in [await Self.finish(task(mock).data().validateNothing(), clock)] }
    }

    static func finish<Value>(_ task: TypedTask<Value>, _ clock: TestClock) async -> SessionTask {
        task.resume()
        await clock.advance(by: .seconds(600))
        _ = await task.result
        return task.task
    }

    static let all = plain + failing + sentAgain + streamed + shared + policies

    private struct Beer: Codable, Sendable { var name: String }

    // MARK: One response

    private static let plain = [
        RecordedScenario("response") { mock in
            mock.on(.GET, "/beers", .text("pale").after(.milliseconds(12)))
            return mock.service.GET("/beers")
        },
        RecordedScenario("decoded") { mock, clock in
            mock.on(.GET, "/beers/1", .json(Beer(name: "pale")).after(.milliseconds(5)))
            return [await finish(mock.service.GET("/beers/1").decode(Beer.self), clock)]
        },
        RecordedScenario("body") { mock in
            mock.on(.POST, "/beers", .status(201).after(.milliseconds(3)))
            return mock.service.POST("/beers").setJSON(["name": "pale"])
        },
        RecordedScenario("handlers") { mock, clock in
            mock.on(.GET, "/", .json(["name": "pale"]).after(.milliseconds(2)))
            let task = mock.service.GET("/").recordHandlers().response { _, _ in .empty }
                .responseJSON { value, _ in .value(value) }.transform { value in .value(value ?? "") }
                .updateUI { _ in }.resume()
            await clock.advance(by: .seconds(1))
            _ = await task.data().result
            return [task]
        },
        RecordedScenario("redirect") { mock in
            mock.on(.GET, "/old", MockResponse.status(302).header(.location, "/new").after(.milliseconds(4)))
            mock.on(.GET, "/new", .text("new").after(.milliseconds(6)))
            return mock.service.GET("/old")
        },
        RecordedScenario("redirect to another origin") { mock in
            mock.on(.GET, "/old", MockResponse.status(307).header(.location, "https://other.test/new"))
            mock.on(.GET, "/new", .text("new"))
            return mock.service.GET("/old").setHeaderValue("canary", forName: .authorization)
        },
        RecordedScenario("deprecated") { mock in
            mock.on(
                .GET, "/",
                MockResponse.text("old").header("Deprecation", "@1767225600").header(
                    "Sunset", "Thu, 31 Dec 2026 23:59:59 GMT"))
            return mock.service.GET("/")
        },
        RecordedScenario("suspended") { mock, clock in
            mock.on(.GET, "/", .text("pale"))
            let task = mock.service.GET("/").suspend().data().resume()
            task.task.suspend()
            await clock.advance(by: .seconds(1))
            return [await finish(task, clock)]
        },
    ]

    // MARK: Failures

    private static let failing = [
        RecordedScenario("status") { mock, clock in
            mock.on(.GET, "/", .problem(404, title: "no such beer"))
            return [await finish(mock.service.GET("/").string(), clock)]
        },
        RecordedScenario("transport error") { mock in
            mock.on(.GET, "/", .error(URLError(.cannotConnectToHost)).after(.milliseconds(7)))
            return mock.service.GET("/")
        },
        RecordedScenario("refused request") { mock in mock.service.GET("/{id}") },
        RecordedScenario("decoding error") { mock, clock in
            mock.on(.GET, "/", .text("<html>"))
            return [await finish(mock.service.GET("/").decode(Beer.self), clock)]
        },
        RecordedScenario("failed step") { mock, clock in
            mock.on(.GET, "/", .text("pale"))
            return [await finish(mock.service.GET("/").string().map { _ -> Int in throw TestError() }, clock)]
        },
        RecordedScenario("response too large") { mock, clock in
            mock.on(.GET, "/", .text("0123456789"))
            return [
                await finish(mock.service.GET("/").configure { $0.options.maximumResponseBytes = 4 }.string(), clock)
            ]
        },
        RecordedScenario("timeout") { mock in
            mock.on(.GET, "/", .text("late").after(.seconds(100)))
            return mock.service.GET("/").setTimeout(.seconds(10))
        },
        RecordedScenario("deadline") { mock in
            mock.on(.GET, "/", .text("late").after(.seconds(100)))
            return mock.service.GET("/").setTimeout(.seconds(200)).setDeadline(.seconds(5))
        },
        RecordedScenario("cancelled") { mock, clock in
            mock.on(.GET, "/", .text("late").after(.seconds(10)))
            let task = mock.service.GET("/").data().resume()
            await clock.advance(by: .seconds(1))
            task.cancel()
            _ = await task.result
            return [task.task]
        },
        RecordedScenario("cancelled before it was resumed") { mock, clock in
            let task = mock.service.GET("/").data()
            task.cancel()
            return [await finish(task, clock)]
        },
        RecordedScenario("invalidated service") { mock in
            let task = mock.service.GET("/")
            mock.service.invalidate()
            return task
        },
    ]

    // MARK: Requests that are sent again

    private static let retry = RetryPolicy(maximumAttempts: 3, baseDelay: .seconds(1), random: { 1 })

    private static let sentAgain = [
        RecordedScenario("retry") { mock in
            mock.on(.GET, "/", [MockResponse.status(503).after(.milliseconds(2)), .text("pale")])
            return mock.service.GET("/").intercepted(by: retry)
        },
        RecordedScenario("retry after") { mock in
            mock.on(.GET, "/", [MockResponse.status(429).header("Retry-After", "7"), .text("pale")])
            return mock.service.GET("/").intercepted(by: retry)
        },
        RecordedScenario("exhausted retries") { mock in
            mock.on(.GET, "/", .error(URLError(.networkConnectionLost)).after(.milliseconds(1)))
            return mock.service.GET("/").intercepted(by: retry)
        },
        RecordedScenario("no retry") { mock in
            mock.on(.POST, "/", .status(503))
            return mock.service.POST("/").intercepted(by: retry)
        },
        RecordedScenario("attempt timeout") { mock in
            mock.on(.GET, "/", [.text("late").after(.seconds(20)), .text("pale")])
            return mock.service.GET("/").configure { $0.options.attemptTimeout = .seconds(2) }.intercepted(by: retry)
        },
        RecordedScenario("refresh") { mock in
            mock.on(.GET, "/", [.status(401), .text("pale")])
            return mock.service.GET("/").intercepted(
                by: Authentication(TokenSource({ .bearer("canary-old") }) { _ in .bearer("canary-new") }))
        },
        RecordedScenario("failed refresh") { mock in
            mock.on(.GET, "/", .status(401))
            return mock.service.GET("/").intercepted(
                by: Authentication(TokenSource({ .bearer("canary-old") }) { _ in throw TestError() }))
        },
        RecordedScenario("digest") { mock in
            mock.on(
                .GET, "/",
                [MockResponse.status(401).header("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\""), .text("pale")])
            return mock.service.GET("/").intercepted(by: .digest(user: "u", password: "canary"))
        },
        RecordedScenario("hedge") { mock in
            mock.on(.GET, "/", [.text("late").after(.seconds(3)), .text("pale").after(.seconds(1))])
            return mock.service.GET("/").intercepted(by: .hedging(after: .fixed(.seconds(1))))
        },
    ]

    // MARK: Streams

    private static let streamed = [
        RecordedScenario("stream") { mock, clock in
            mock.on(.GET, "/", .text("pale ale"))
            let task = mock.service.GET("/").stream().resume()
            await clock.advance(by: .seconds(1))
            _ = try await task.value.body.collect(upTo: 100)
            return [task.task]
        },
        RecordedScenario("stream with a status") { mock, clock in
            mock.on(.GET, "/", .text("no such beer", status: 404))
            return [await finish(mock.service.GET("/").stream(), clock)]
        },
        RecordedScenario("cancelled stream") { mock, clock in
            mock.on(.GET, "/", .text("pale ale"))
            let task = mock.service.GET("/").stream().resume()
            await clock.advance(by: .seconds(1))
            _ = try await task.value
            task.cancel()
            return [task.task]
        },
        RecordedScenario("lines") { mock, clock in
            mock.on(.GET, "/", .text("pale\nale\n"))
            let task = mock.service.GET("/").stream().resume()
            await clock.advance(by: .seconds(1))
            for try await _ in try await task.value.body.lines() {}
            return [task.task]
        },
        RecordedScenario("download") { mock, clock in
            mock.on(.GET, "/", .text("pale ale"))
            let folder = TemporaryFolder()
            let file = folder.url.appendingPathComponent("beer")
            let task = await finish(mock.service.GET("/").download(to: file), clock)
            withExtendedLifetime(folder) {}
            return [task]
        },
    ]

    // MARK: Exchanges that are shared or stored

    private struct Get: HTTPServiceRequest, ValueStorableRequest, Hashable {
        typealias Output = String
        var storageIdentifier: String? { "get" }
        func request(for service: WebService) -> Request { service.request(.GET, path: "/") }
    }

    private static let shared = [
        RecordedScenario("typed request") { mock, clock in
            mock.on(.GET, "/", .text("pale").after(.milliseconds(4)))
            return [await finish(mock.service.perform(Get()), clock)]
        },
        RecordedScenario("joined requests") { mock, clock in
            mock.on(.GET, "/", .text("pale").after(.seconds(2)))
            let first = mock.service.perform(Get()).resume()
            await clock.advance(by: .seconds(1))
            let second = mock.service.perform(Get(), duplicates: .join).resume()
            await clock.advance(by: .seconds(5))
            return [await finish(first, clock), await finish(second, clock)]
        },
        RecordedScenario("queued requests") { mock, clock in
            mock.on(.GET, "/", .text("pale").after(.seconds(2)))
            let first = mock.service.perform(Get()).resume()
            let second = mock.service.perform(Get(), duplicates: .queue).resume()
            await clock.advance(by: .seconds(5))
            return [await finish(first, clock), await finish(second, clock)]
        },
        RecordedScenario("stored value") { mock, clock in
            mock.on(.GET, "/", [MockResponse.text("pale").after(.seconds(1)), .text("dark").after(.seconds(1))])
            mock.service.storages = [MemoryStorage()]
            let first = await finish(mock.service.perform(Get(), fetchPolicy: .cacheThenServer), clock)
            return [first, await finish(mock.service.perform(Get(), fetchPolicy: .cacheThenServer), clock)]
        },
        RecordedScenario("cache") { mock, clock in
            let fields: Headers = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
            mock.on(.GET, "/", [MockResponse.text("pale").headers(fields), MockResponse.status(304).headers(fields)])
            mock.service.interceptors = [ResponseCache(storage: MemoryStorage())]
            var tasks: [SessionTask] = []
            for _ in 0..<3 {
                let task = mock.service.GET("/").string().resume()
                await clock.advance(by: .seconds(50))
                _ = await task.result
                tasks.append(task.task)
            }
            return tasks
        },
    ]

    // MARK: Policies

    private static let policies = [
        RecordedScenario("idempotency key") { mock in
            mock.on(.POST, "/", [.status(503), .status(201)])
            mock.service.interceptors = [.idempotencyKey(), retry]
            return mock.service.POST("/").setHeaderValue("7", forName: "Idempotency-Key")
        },
        RecordedScenario("open circuit") { mock, clock in
            mock.on(.GET, "/", .status(503))
            mock.service.interceptors = [.circuitBreaker(opensAfter: .consecutiveFailures(1))]
            let first = mock.service.GET("/").data().resume()
            await clock.advance(by: .seconds(1))
            return [await finish(first, clock), await finish(mock.service.GET("/").data(), clock)]
        },
        RecordedScenario("rate limit") { mock, clock in
            mock.on(.GET, "/", .text("pale"))
            mock.service.interceptors = [.rateLimit(1)]
            let tasks = [mock.service.GET("/").data().resume(), mock.service.GET("/").data().resume()]
            await clock.advance(by: .seconds(10))
            return [await finish(tasks[0], clock), await finish(tasks[1], clock)]
        },
        RecordedScenario("standard resilience") { mock in
            mock.on(.GET, "/", [.status(503), .error(URLError(.networkConnectionLost)), .text("pale")])
            mock.service.interceptors = .standardResilience()
            return mock.service.GET("/")
        },
    ]
}
